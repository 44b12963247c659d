#include "exchange/shared_number.h"

#include <bit>
#include <chrono>
#include <climits>
#include <thread>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif

namespace lapjoint {

namespace {

#ifdef __linux__
constexpr long kSleepNs = 2'000'000;

std::uint32_t* low_half(std::atomic<std::uint64_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word) + (std::endian::native == std::endian::big ? 1 : 0);
}
#endif

}  // namespace

void SharedNumber::set(std::uint64_t value) {
  if (store(value)) wake();
}

bool SharedNumber::store(std::uint64_t value) {
  number.store(value, std::memory_order_seq_cst);
  return sleeping.load(std::memory_order_seq_cst) != 0;
}

void SharedNumber::wake() {
#ifdef __linux__
  syscall(SYS_futex, low_half(number), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

void SharedNumber::sleep(std::uint64_t value) {
#ifdef __linux__
  const timespec limit{0, kSleepNs};
  syscall(SYS_futex, low_half(number), FUTEX_WAIT, static_cast<std::uint32_t>(value), &limit, nullptr, 0);
#else
  if (number.load() == value) std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
}

}  // namespace lapjoint
