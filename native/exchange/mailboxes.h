// What workers send each other within a step, through memory that all workers of a machine see; to those on other
// machines through an outbox in that memory, from which a thread carries it there (machine_links.h). What they send
// comes into the memory as if they saw it.
//
// Every worker has a mailbox for every other one, with two slots that messages take in turns: who sends the next but
// one has received the answer to the last, so the slot it writes into has been read. A slot's number says which message
// lies in it. Numbers go on from step to step: what is left of a step that was abandoned is never taken for a newer
// one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "exchange/mail_frame.h"
#include "exchange/shared_number.h"

namespace lapjoint {

// The step cannot be finished, because of somebody else. Whoever waits for a message throws it.
class StepAbandoned : public std::runtime_error {
 public:
  StepAbandoned() : std::runtime_error("the step is abandoned") {}
};

// What a step took of messages.
struct MailCounts {
  double wait_wall = 0, wait_cpu = 0;  // for those of others, and, of CPU time, to wake those that sleep [s]
  std::uint64_t exchanges = 0;         // sent to one other worker, at most, since the last `count_from_here`
  std::uint64_t bytes = 0;             // sent to all of them
};

class Mailboxes {
 public:
  static constexpr int kMostWorkers = 1024;
  // Of worker number `self`. `memory` is zero before the first use, and of `byte_count` bytes. Where there are to be
  // more workers, more zeros follow: what is there stays where it is.
  static std::size_t byte_count(int worker_count, std::size_t room);
  // `room`: most bytes that a message can have. `spins`: how often to look before going to sleep. `bell`: where to
  // write a byte when the thread that carries to other machines sleeps, if there are any.
  Mailboxes(void* memory, int worker_count, std::size_t room, int self, int spins, int bell = -1);

  int worker_count() const { return worker_count_; }
  int self() const { return self_; }
  std::size_t room() const { return room_; }

  // Steps that are tried are numbered by who starts them; a number is never used again. `first`: of several that are
  // taken one after the other; waits are those of all of them.
  void begin_step(std::uint64_t attempt, bool first = true);
  // Where to write the next message to a worker, and that it is written.
  void* outgoing(int worker);
  void send(int worker, std::size_t size);
  // The next message of a worker, of exactly this size, until the next but one is received.
  const void* receive(int worker, std::size_t size);
  const void* receive_any(int worker);  // of any size
  // Returns once all workers have come so far, with every message read: nobody can fail in this step any more. Each
  // says something of its own, in bits up to kMostSaid; returns what all have said.
  static constexpr unsigned kMostSaid = 3;
  unsigned finish_step(unsigned says = 0);
  // After that, if all workers do so: whoever exchanges one more message with all others may go on to the next step at
  // once. Its first message there goes into the first slot, so the one before is to be in the second.
  void even_out();
  const MailCounts& counts() const { return counts_; }  // of the last step
  void count_from_here();
  // Workers wait for each other here, all in the same order: what each computes between two such places counts for
  // itself. Of all steps since the first [s].
  void meet();
  const std::vector<double>& between_meetings() const { return between_meetings_; }

  // For whoever watches the workers: all that still wait in this attempt or an earlier one give it up; and whether a
  // worker waits for another: one for which something has come, and which has no core to go on, does not.
  static void abandon(void* memory, std::uint64_t attempt);
  static bool is_waiting(const void* memory, int worker);

  // For whoever carries messages between machines: who is on another one; what a worker has for those; that the carrier
  // sleeps, and has to be woken; where the bytes of a message belong, and that they are there; that a worker has
  // finished an attempt.
  static void set_elsewhere(void* memory, int worker, bool is_elsewhere);
  static bool is_elsewhere(const void* memory, int worker);
  static Outbox& outbox(void* memory, int worker);
  static void set_carrier_sleeps(void* memory, bool sleeps);
  static std::byte* content(void* memory, std::size_t room, int from, int to, std::uint64_t number);
  static void deliver(void* memory, std::size_t room, int from, int to, std::uint64_t number, std::size_t size);
  static void finish(void* memory, int worker, std::uint64_t attempt, unsigned says);

 private:
  struct Slot {
    SharedNumber message;  // which one lies in it
    std::uint64_t size;
  };
  struct Worker {
    SharedNumber finished;  // the last attempt that it has
    // At its end, and the attempt; of the one before too, for others may still have to read that.
    std::atomic<std::uint64_t> said[2];
    // Where the number is that it waits for to change, from the memory's begin, and what it was: 0 while it does not.
    std::atomic<std::uint64_t> waits_at, waits_beyond;
    std::atomic<std::uint32_t> elsewhere;
  };
  struct Head {
    std::atomic<std::uint64_t> abandoned;  // the last attempt that was
    std::atomic<std::uint32_t> carrier_sleeps;
  };
  static constexpr std::size_t kLine = 64, kOutboxes = kLine * (1 + kMostWorkers);
  static constexpr std::size_t kHeads = kOutboxes + sizeof(Outbox) * kMostWorkers;

  static std::size_t slot_size(std::size_t room);
  static Worker& worker(const void* memory, int number);
  static Slot& slot(void* memory, std::size_t room, int from, int to, std::uint64_t number);
  bool is_abandoned() const;
  void signal(SharedNumber& to, std::uint64_t number);
  template <typename IsThere>
  void wait_for(SharedNumber& signal, IsThere&& is_there);
  template <typename IsThere>
  bool sleep_until(SharedNumber& signal, IsThere&& is_there);
  void put_out(const MailFrame& frame);
  void await_carrier() const;

  std::byte* memory_;
  int worker_count_, self_;
  std::size_t room_;
  int spins_, bell_;
  std::uint64_t attempt_ = 0;
  std::uint64_t put_before_ = 0;                // into the outbox, before this step
  std::vector<std::uint64_t> sent_, received_;  // messages of this step, by worker
  std::vector<std::uint64_t> not_counted_;      // of those that were sent
  MailCounts counts_;
  std::vector<double> between_meetings_;
  std::size_t meeting_ = 0;
  double last_cpu_ = 0;  // at the last of them, without waits
};

}  // namespace lapjoint
