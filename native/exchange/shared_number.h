// A number in memory, perhaps in that of several processes, that somebody waits for.
#pragma once

#include <atomic>
#include <cstdint>

namespace lapjoint {

struct SharedNumber {
  std::atomic<std::uint64_t> number{0};
  std::atomic<std::uint32_t> sleeping{0};  // how many wait in `sleep`

  void set(std::uint64_t value);
  bool store(std::uint64_t value);  // returns whether somebody may sleep, and has to be woken
  void wake();
  // Until the number is another, or some milliseconds have passed.
  void sleep(std::uint64_t value);
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace lapjoint
