// Sockets between machines, one for each two of them, for what their workers send each other within a step. A thread of
// one process of each machine carries: it takes what workers here have put into their outboxes, all that there is at
// once, and puts what comes into the mailboxes' memory, as a worker of this machine would. It never waits for anybody
// to read, so no two machines can wait for each other to do so.
//
// A link that is lost is no error here: whoever watches the machines notices which is gone, and abandons the step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exchange/mail_frame.h"

namespace lapjoint {

// To one machine.
class MachineLink {
 public:
  explicit MachineLink(int socket) : socket(socket) {}
  ~MachineLink();
  MachineLink(const MachineLink&) = delete;
  MachineLink& operator=(const MachineLink&) = delete;

  const int socket;
  bool is_open = true;

  void put(const MailFrame& frame, const void* content);
  // Send what was put in, as far as that needs no waiting. Returns in how many pieces.
  int flush();
  bool has_more() const { return is_open && sent_ < out_.size(); }

 private:
  friend class MachineLinks;
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;  // of `out_`
  MailFrame frame_{};     // that is being received, how much of it has come, with its content, and where that goes
  std::size_t received_ = 0;
  std::byte* into_ = nullptr;  // none: it is for nobody here any more
};

class MachineLinks {
 public:
  // Of machine number `machine`. For `spin_us` microseconds after the last message the thread looks for the next one,
  // then it sleeps.
  MachineLinks(int machine, int spin_us);
  ~MachineLinks();
  MachineLinks(const MachineLinks&) = delete;
  MachineLinks& operator=(const MachineLinks&) = delete;

  // Where workers of this machine write a byte when the thread sleeps: see Mailboxes.
  int bell() const { return bell_[1]; }

  // The mailboxes' memory, the room of each, and which machine each worker is on; between two steps.
  void set_workers(void* memory, std::size_t room, const std::vector<int>& machine_of);
  // Reach a machine through this socket, which is closed with the link, and no longer by another one.
  void connect(int machine, int socket);
  void disconnect(int machine);
  // Let all workers here and on other machines leave this attempt at a step.
  void abandon(std::uint64_t attempt);

  // What has been sent since the start: messages, and in how many pieces.
  std::uint64_t message_count() const { return message_count_; }
  std::uint64_t send_count() const { return send_count_; }

 private:
  void wake();
  void run();
  bool collect();
  bool send(const MailFrame& frame);
  bool receive(MachineLink& link, int machine);
  bool take(MachineLink& link, int machine, const std::byte* data, std::size_t size);
  bool is_acceptable(const MailFrame& frame) const;
  void deliver(const MailFrame& frame);
  void sleep(std::unique_lock<std::mutex>& lock);
  bool is_on(std::size_t worker, int machine) const {
    return worker < machine_of_.size() && machine_of_[worker] == machine;
  }

  const int machine_, spin_us_;
  std::mutex mutex_;  // of all below
  std::map<int, std::shared_ptr<MachineLink>> links_;
  std::vector<int> machine_of_;
  std::vector<int> here_;  // workers of this machine
  void* memory_ = nullptr;
  std::size_t room_ = 0;
  bool ends_ = false;
  std::vector<std::byte> buffer_;
  std::atomic<std::uint64_t> message_count_{0}, send_count_{0};
  int bell_[2] = {-1, -1};  // a pipe
  std::thread thread_;
};

}  // namespace lapjoint
