#include "exchange/mailboxes.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "assertions.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace lapjoint {

namespace {

constexpr std::uint64_t kInStep = 1u << 20;  // messages to one worker in a step, at most
constexpr int kYield = 64;                   // after so many looks whoever needs the core more has it

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

}  // namespace

std::size_t Mailboxes::slot_size(std::size_t room) { return kLine + (room + kLine - 1) / kLine * kLine; }

std::size_t Mailboxes::byte_count(int worker_count, std::size_t room) {
  const auto count = static_cast<std::size_t>(worker_count);
  return kHeads + 2 * count * count * slot_size(room);
}

Mailboxes::Mailboxes(void* memory, int worker_count, std::size_t room, int self, int spins, int bell)
    : memory_(static_cast<std::byte*>(memory)),
      worker_count_(worker_count),
      self_(self),
      room_(room),
      spins_(spins),
      bell_(bell),
      sent_(worker_count),
      received_(worker_count),
      not_counted_(worker_count) {
  static_assert(sizeof(Slot) <= kLine && sizeof(Head) <= kLine && sizeof(Worker) <= kLine);
  LAPJOINT_ASSERT(worker_count <= kMostWorkers && self >= 0 && self < worker_count);
}

void Mailboxes::begin_step(std::uint64_t attempt, bool first) {
  LAPJOINT_ASSERT(attempt > attempt_);  // 0 is what the memory begins with
  attempt_ = attempt;
  put_before_ = outbox(memory_, self_).put.load(std::memory_order_relaxed);
  std::fill(sent_.begin(), sent_.end(), std::uint64_t(0));
  std::fill(received_.begin(), received_.end(), std::uint64_t(0));
  std::fill(not_counted_.begin(), not_counted_.end(), std::uint64_t(0));
  if (first) {
    counts_ = {};
    between_meetings_.clear();
    last_cpu_ = thread_cpu();
  }
  meeting_ = 0;
  counts_.exchanges = counts_.bytes = 0;
}

void Mailboxes::count_from_here() {
  not_counted_ = sent_;
  counts_.exchanges = 0;
}

void Mailboxes::even_out() {
  for (int worker = 0; worker < worker_count_; ++worker) {
    if (worker == self_ || sent_[worker] % 2) continue;
    outgoing(worker);
    send(worker, 0);
  }
  for (int worker = 0; worker < worker_count_; ++worker)
    if (worker != self_ && received_[worker] % 2 == 0) receive(worker, 0);
  for (int worker = 0; worker < worker_count_; ++worker)
    LAPJOINT_ASSERT(worker == self_ || (sent_[worker] % 2 == 1 && received_[worker] % 2 == 1));
}

void Mailboxes::meet() {
  LAPJOINT_ASSERT(meeting_ <= between_meetings_.size());  // the same places in every step
  const double now = thread_cpu() - counts_.wait_cpu;
  if (meeting_ == between_meetings_.size()) between_meetings_.push_back(0);
  between_meetings_[meeting_++] += now - last_cpu_;
  last_cpu_ = now;
}

// Pairs with the workers 0 to n come before all that have n + 1.
Mailboxes::Slot& Mailboxes::slot(void* memory, std::size_t room, int from, int to, std::uint64_t number) {
  LAPJOINT_ASSERT(from >= 0 && to >= 0 && from != to);
  const std::size_t a = from, b = to, pair = a < b ? b * b + a : a * a + a + b;
  return *reinterpret_cast<Slot*>(static_cast<std::byte*>(memory) + kHeads + (2 * pair + number % 2) * slot_size(room));
}

std::byte* Mailboxes::content(void* memory, std::size_t room, int from, int to, std::uint64_t number) {
  return reinterpret_cast<std::byte*>(&slot(memory, room, from, to, number)) + kLine;
}

void Mailboxes::deliver(void* memory, std::size_t room, int from, int to, std::uint64_t number, std::size_t size) {
  Slot& into = slot(memory, room, from, to, number);
  into.size = size;
  into.message.set(number);
}

void Mailboxes::finish(void* memory, int number, std::uint64_t attempt, unsigned says) {
  Worker& finished = worker(memory, number);
  LAPJOINT_ASSERT(says <= kMostSaid);
  finished.said[attempt % 2].store(attempt * (kMostSaid + 1) + says, std::memory_order_seq_cst);
  finished.finished.set(attempt);
}

void Mailboxes::set_elsewhere(void* memory, int number, bool is_elsewhere) {
  worker(memory, number).elsewhere.store(is_elsewhere, std::memory_order_seq_cst);
}

bool Mailboxes::is_elsewhere(const void* memory, int number) {
  return worker(memory, number).elsewhere.load(std::memory_order_relaxed) != 0;
}

Outbox& Mailboxes::outbox(void* memory, int number) {
  auto* boxes = static_cast<std::byte*>(memory) + kOutboxes;
  return *reinterpret_cast<Outbox*>(boxes + sizeof(Outbox) * static_cast<std::size_t>(number));
}

void Mailboxes::set_carrier_sleeps(void* memory, bool sleeps) {
  static_cast<Head*>(memory)->carrier_sleeps.store(sleeps, std::memory_order_seq_cst);
}

Mailboxes::Worker& Mailboxes::worker(const void* memory, int number) {
  auto* heads = static_cast<std::byte*>(const_cast<void*>(memory));
  return *reinterpret_cast<Worker*>(heads + kLine * static_cast<std::size_t>(1 + number));
}

// Of an attempt that was abandoned something may still have to be carried from where the next message is written to.
void Mailboxes::await_carrier() const {
  const Outbox& box = outbox(memory_, self_);
  while (box.taken.load(std::memory_order_acquire) < put_before_) {
    if (is_abandoned()) throw StepAbandoned();
    std::this_thread::yield();
  }
}

void* Mailboxes::outgoing(int worker) {
  LAPJOINT_ASSERT(worker >= 0 && worker < worker_count_ && worker != self_);
  if (is_elsewhere(memory_, worker)) await_carrier();
  return content(memory_, room_, self_, worker, attempt_ * kInStep + sent_[worker]);
}

void Mailboxes::send(int worker, std::size_t size) {
  const std::uint64_t number = attempt_ * kInStep + sent_[worker]++;
  if (sent_[worker] >= kInStep) throw std::runtime_error("too many messages in a step");
  LAPJOINT_ASSERT(size <= room_);
  LAPJOINT_ASSERT(sent_[worker] <= received_[worker] + 2);  // the slot has been read
  counts_.exchanges = std::max(counts_.exchanges, sent_[worker] - not_counted_[worker]);
  counts_.bytes += size;
  if (is_elsewhere(memory_, worker)) {
    put_out({MailFrame::kMessage, 0, static_cast<std::uint16_t>(worker), number, size});
  } else {
    Slot& into = slot(memory_, room_, self_, worker, number);
    LAPJOINT_ASSERT(into.message.number.load(std::memory_order_relaxed) < number);
    into.size = size;
    signal(into.message, number);
  }
}

// The thread that carries never waits for anybody: an outbox is full only where it has had no core for a while.
void Mailboxes::put_out(const MailFrame& frame) {
  LAPJOINT_ASSERT(bell_ >= 0);  // who has workers elsewhere has a carrier to wake
  Outbox& box = outbox(memory_, self_);
  const std::uint64_t place = box.put.load(std::memory_order_relaxed);
  while (place - box.taken.load(std::memory_order_acquire) >= Outbox::kRoom) {
    if (is_abandoned()) throw StepAbandoned();
    std::this_thread::yield();
  }
  box.frames[place % Outbox::kRoom] = frame;
  box.put.store(place + 1, std::memory_order_seq_cst);
  if (reinterpret_cast<Head*>(memory_)->carrier_sleeps.exchange(0, std::memory_order_seq_cst) == 0) return;
  const double cpu = thread_cpu();
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(bell_, &byte, 1);  // full: it wakes anyway
  counts_.wait_cpu += thread_cpu() - cpu;
}

// To wake who sleeps counts as waiting: with a core for every worker nobody sleeps for long.
void Mailboxes::signal(SharedNumber& to, std::uint64_t number) {
  if (!to.store(number)) return;
  const double cpu = thread_cpu();
  to.wake();
  counts_.wait_cpu += thread_cpu() - cpu;
}

const void* Mailboxes::receive_any(int worker) {
  LAPJOINT_ASSERT(worker >= 0 && worker < worker_count_ && worker != self_);
  const std::uint64_t number = attempt_ * kInStep + received_[worker]++;
  wait_for(slot(memory_, room_, worker, self_, number).message,
           [number](std::uint64_t seen) { return seen == number; });
  LAPJOINT_ASSERT(slot(memory_, room_, worker, self_, number).size <= room_);
  return content(memory_, room_, worker, self_, number);
}

const void* Mailboxes::receive(int worker, std::size_t size) {
  const Slot& from = slot(memory_, room_, worker, self_, attempt_ * kInStep + received_[worker]);
  const void* message = receive_any(worker);
  if (from.size != size)
    throw std::runtime_error("worker " + std::to_string(worker) + " has sent " + std::to_string(from.size) +
                             " bytes to worker " + std::to_string(self_) + ", expected " + std::to_string(size));
  return message;
}

unsigned Mailboxes::finish_step(unsigned says) {
  meet();
  Worker& own = worker(memory_, self_);
  own.said[attempt_ % 2].store(attempt_ * (kMostSaid + 1) + says, std::memory_order_seq_cst);
  signal(own.finished, attempt_);
  bool some_elsewhere = false;
  for (int other = 0; other < worker_count_; ++other) some_elsewhere |= is_elsewhere(memory_, other);
  if (some_elsewhere) put_out({MailFrame::kFinished + says, 0, MailFrame::kEverybody, attempt_, 0});
  unsigned all = says;
  for (int other = 0; other < worker_count_; ++other) {
    Worker& theirs = worker(memory_, other);
    wait_for(theirs.finished, [this](std::uint64_t seen) { return seen >= attempt_; });
    const std::uint64_t said = theirs.said[attempt_ % 2].load(std::memory_order_seq_cst);
    if (said / (kMostSaid + 1) == attempt_) all |= static_cast<unsigned>(said % (kMostSaid + 1));
  }
  return all;
}

bool Mailboxes::is_abandoned() const {
  return reinterpret_cast<Head*>(memory_)->abandoned.load(std::memory_order_seq_cst) >= attempt_;
}

template <typename IsThere>
void Mailboxes::wait_for(SharedNumber& signal, IsThere&& is_there) {
  const auto has_come = [&] { return is_there(signal.number.load(std::memory_order_acquire)); };
  if (has_come()) return;
  const auto start = std::chrono::steady_clock::now();
  const double cpu = thread_cpu();
  for (int spin = 0; spin < spins_ && !has_come(); ++spin) {
    pause();
    if (spin % kYield == kYield - 1) std::this_thread::yield();
  }
  const bool came = has_come() || sleep_until(signal, is_there);
  counts_.wait_wall += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  counts_.wait_cpu += thread_cpu() - cpu;
  if (!came) throw StepAbandoned();
}

// False if the step is abandoned.
template <typename IsThere>
bool Mailboxes::sleep_until(SharedNumber& signal, IsThere&& is_there) {
  Worker& own = worker(memory_, self_);
  signal.sleeping.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t before;
  while (!is_there(before = signal.number.load(std::memory_order_seq_cst)) && !is_abandoned()) {
    own.waits_beyond.store(before, std::memory_order_relaxed);
    own.waits_at.store(static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&signal) - memory_),
                       std::memory_order_release);
    signal.sleep(before);
  }
  signal.sleeping.fetch_sub(1, std::memory_order_seq_cst);
  own.waits_at.store(0, std::memory_order_relaxed);
  return is_there(before);
}

void Mailboxes::abandon(void* memory, std::uint64_t attempt) {
  auto& last = static_cast<Head*>(memory)->abandoned;
  std::uint64_t before = last.load(std::memory_order_seq_cst);
  while (before < attempt && !last.compare_exchange_weak(before, attempt, std::memory_order_seq_cst)) {
  }
}

bool Mailboxes::is_waiting(const void* memory, int number) {
  const Worker& one = worker(memory, number);
  const std::uint64_t at = one.waits_at.load(std::memory_order_acquire);
  if (at == 0) return false;
  const auto& awaited = *reinterpret_cast<const SharedNumber*>(static_cast<const std::byte*>(memory) + at);
  return awaited.number.load(std::memory_order_seq_cst) == one.waits_beyond.load(std::memory_order_relaxed);
}

}  // namespace lapjoint
