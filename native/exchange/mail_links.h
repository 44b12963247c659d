// Sockets to workers that do not see this one's mailboxes. A thread puts what they send into the mailboxes' memory, as
// a worker that sees it would. It never waits for anybody to read, so no two workers can wait for each other to do so.
//
// A link that is lost is no error here: whoever watches the workers notices who is gone, and abandons the step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exchange/shared_number.h"

namespace lapjoint {

// What goes through a socket. `size` bytes follow. In the byte order of the machine: all have the same.
struct MailFrame {
  enum Kind : std::uint64_t { kMessage = 1, kFinished, kAbandoned, kAgreed };
  std::uint64_t kind, number, size;  // number: of the message, or of the attempt
};

// To one worker. One thread sends, that of the links receives.
class MailLink {
 public:
  MailLink(int worker, int socket) : worker(worker), socket(socket) {}
  ~MailLink();
  MailLink(const MailLink&) = delete;
  MailLink& operator=(const MailLink&) = delete;

  const int worker, socket;
  SharedNumber finished;                    // the last attempt that it has
  std::atomic<std::uint64_t> abandoned{0};  // the last attempt that it has given up
  std::atomic<std::uint64_t> agreed{0};     // the last attempt at whose end it has said yes
  std::atomic<bool> is_open{true};

  void put(const MailFrame& frame, const void* content);
  // Send what was put in, as far as that needs no waiting. True: all of it is gone, or the link is.
  bool flush();
  void close();

 private:
  friend class MailLinks;
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;  // of `out_`
  MailFrame frame_{};     // that is being received, and how much of it has come, with its content
  std::size_t received_ = 0;
};

class MailLinks {
 public:
  explicit MailLinks(int self);  // of worker number `self`
  ~MailLinks();
  MailLinks(const MailLinks&) = delete;
  MailLinks& operator=(const MailLinks&) = delete;

  std::size_t room() const { return room_; }

  // The mailboxes' memory, and the room of each, between two steps. Links beyond the number of workers are closed.
  void set_memory(void* memory, int worker_count, std::size_t room);
  // Reach a worker through this socket, which is closed with the link, and no longer by another way.
  void connect(int worker, int socket);
  void disconnect(int worker);
  // Notify all of them, without waiting for any, that this worker has given up.
  void abandon(std::uint64_t attempt);

  std::shared_ptr<MailLink> find(int worker) const;  // none: it sees the memory
  std::vector<std::shared_ptr<MailLink>> all() const;
  bool is_abandoned(std::uint64_t attempt) const;

 private:
  void set(int worker, std::shared_ptr<MailLink> link);
  void wake();
  void run();
  bool receive(MailLink& link);
  bool is_acceptable(const MailFrame& frame) const;
  void take(MailLink& link);

  const int self_;
  std::atomic<std::size_t> room_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<MailLink>> links_;  // by worker
  std::atomic<void*> memory_{nullptr};
  int worker_count_ = 0;
  bool ends_ = false;
  int wake_[2] = {-1, -1};  // a pipe to the thread
  std::thread thread_;
};

}  // namespace lapjoint
