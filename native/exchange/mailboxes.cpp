#include "exchange/mailboxes.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <ctime>
#include <string>
#include <thread>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace lapjoint {

namespace {

constexpr std::uint64_t kInStep = 1u << 20;  // messages to one worker in a step, at most
constexpr long kLookUpNs = 2'000'000;        // how long a sleeper does not look whether the step is abandoned

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

double thread_cpu() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

#ifdef __linux__
std::uint32_t* low_half(std::atomic<std::uint64_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word) + (std::endian::native == std::endian::big ? 1 : 0);
}
#endif

// Until the word is another, somebody wakes us, or some time has passed.
void sleep_on(std::atomic<std::uint64_t>& word, std::uint64_t value) {
#ifdef __linux__
  const timespec limit{0, kLookUpNs};
  syscall(SYS_futex, low_half(word), FUTEX_WAIT, static_cast<std::uint32_t>(value), &limit, nullptr, 0);
#else
  if (word.load() == value) std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
}

void wake(std::atomic<std::uint64_t>& word) {
#ifdef __linux__
  syscall(SYS_futex, low_half(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#else
  (void)word;
#endif
}

}  // namespace

std::size_t Mailboxes::slot_size(std::size_t room) { return kLine + (room + kLine - 1) / kLine * kLine; }

std::size_t Mailboxes::byte_count(int worker_count, std::size_t room) {
  const auto count = static_cast<std::size_t>(worker_count);
  return kHeads + 2 * count * count * slot_size(room);
}

Mailboxes::Mailboxes(void* memory, int worker_count, std::size_t room, int self, int spins)
    : memory_(static_cast<std::byte*>(memory)),
      worker_count_(worker_count),
      self_(self),
      room_(room),
      spins_(spins),
      sent_(worker_count),
      received_(worker_count) {
  static_assert(sizeof(Slot) <= kLine && sizeof(Head) <= kLine && sizeof(Worker) <= kLine);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
}

void Mailboxes::begin_step(std::uint64_t attempt) {
  attempt_ = attempt;
  std::fill(sent_.begin(), sent_.end(), std::uint64_t(0));
  std::fill(received_.begin(), received_.end(), std::uint64_t(0));
  counts_ = {};
}

// Pairs with the workers 0 to n come before all that have n + 1.
Mailboxes::Slot& Mailboxes::slot(int from, int to, std::uint64_t number) const {
  const std::size_t a = from, b = to, pair = a < b ? b * b + a : a * a + a + b;
  return *reinterpret_cast<Slot*>(memory_ + kHeads + (2 * pair + number % 2) * slot_size(room_));
}

Mailboxes::Worker& Mailboxes::worker(const void* memory, int number) {
  auto* heads = static_cast<std::byte*>(const_cast<void*>(memory));
  return *reinterpret_cast<Worker*>(heads + kLine * static_cast<std::size_t>(1 + number));
}

void* Mailboxes::outgoing(int worker) {
  return reinterpret_cast<std::byte*>(&slot(self_, worker, attempt_ * kInStep + sent_[worker])) + kLine;
}

void Mailboxes::send(int worker, std::size_t size) {
  const std::uint64_t number = attempt_ * kInStep + sent_[worker]++;
  if (sent_[worker] >= kInStep) throw std::runtime_error("too many messages in a step");
  counts_.exchanges = std::max(counts_.exchanges, sent_[worker]);
  counts_.bytes += size;
  Slot& into = slot(self_, worker, number);
  into.size = size;
  set(into.message, number);
}

const void* Mailboxes::receive_any(int worker) {
  const std::uint64_t number = attempt_ * kInStep + received_[worker]++;
  Slot& from = slot(worker, self_, number);
  wait_for(from.message, number);
  return reinterpret_cast<const std::byte*>(&from) + kLine;
}

const void* Mailboxes::receive(int worker, std::size_t size) {
  const Slot& from = slot(worker, self_, attempt_ * kInStep + received_[worker]);
  const void* message = receive_any(worker);
  if (from.size != size)
    throw std::runtime_error("worker " + std::to_string(worker) + " has sent " + std::to_string(from.size) +
                             " bytes to worker " + std::to_string(self_) + ", expected " + std::to_string(size));
  return message;
}

void Mailboxes::finish_step() {
  set(worker(memory_, self_).finished, attempt_);
  for (int other = 0; other < worker_count_; ++other) wait_for(worker(memory_, other).finished, attempt_);
}

void Mailboxes::set(Signal& signal, std::uint64_t number) {
  signal.number.store(number, std::memory_order_seq_cst);
  if (signal.sleeping.load(std::memory_order_seq_cst) != 0) wake(signal.number);
}

void Mailboxes::wait_for(Signal& signal, std::uint64_t number) {
  const auto is_there = [&] { return signal.number.load(std::memory_order_acquire) == number; };
  if (is_there()) return;
  const auto start = std::chrono::steady_clock::now();
  const double cpu = thread_cpu();
  for (int spin = 0; spin < spins_ && !is_there(); ++spin) pause();
  const bool came = is_there() || sleep_until(signal, number);
  counts_.wait_wall += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  counts_.wait_cpu += thread_cpu() - cpu;
  if (!came) throw StepAbandoned();
}

// False if the step is abandoned.
bool Mailboxes::sleep_until(Signal& signal, std::uint64_t number) {
  const auto& abandoned = reinterpret_cast<Head*>(memory_)->abandoned;
  auto& waits = worker(memory_, self_).waits;
  waits.store(1, std::memory_order_relaxed);
  signal.sleeping.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t before;
  while ((before = signal.number.load(std::memory_order_seq_cst)) != number &&
         abandoned.load(std::memory_order_seq_cst) != attempt_)
    sleep_on(signal.number, before);
  signal.sleeping.fetch_sub(1, std::memory_order_seq_cst);
  waits.store(0, std::memory_order_relaxed);
  return before == number;
}

void Mailboxes::abandon(void* memory, std::uint64_t attempt) {
  static_cast<Head*>(memory)->abandoned.store(attempt, std::memory_order_seq_cst);
}

bool Mailboxes::is_waiting(const void* memory, int number) {
  return worker(memory, number).waits.load(std::memory_order_seq_cst) != 0;
}

}  // namespace lapjoint
