// What goes from a worker to one on another machine: through memory to the thread that carries it, then through a
// socket. In the byte order of the machine: all have the same.
#pragma once

#include <atomic>
#include <cstdint>

namespace lapjoint {

// `size` bytes follow in a socket; in memory they lie in the mailbox.
struct MailFrame {
  enum Kind : std::uint32_t { kMessage = 1, kAbandoned, kFinished = 4 };  // and up: with what a worker says
  static constexpr std::uint16_t kEverybody = 0xffff;
  std::uint32_t kind;
  std::uint16_t from, to;      // workers; what is no message is for everybody
  std::uint64_t number, size;  // number: of the message, or of the attempt
};
static_assert(sizeof(MailFrame) == 24);

// What one worker has for workers on other machines, oldest first. The worker puts, the thread that carries takes.
struct Outbox {
  static constexpr std::uint64_t kRoom = 256;
  alignas(64) std::atomic<std::uint64_t> put;
  alignas(64) std::atomic<std::uint64_t> taken;
  MailFrame frames[kRoom];
};

}  // namespace lapjoint
