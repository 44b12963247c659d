#include "exchange/machine_links.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

#include "assertions.h"
#include "exchange/mailboxes.h"

namespace lapjoint {

namespace {

constexpr std::size_t kBuffer = 1u << 18;

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

// ---- one link ------------------------------------------------------------------------------------------------------

MachineLink::~MachineLink() { ::close(socket); }

void MachineLink::put(const MailFrame& frame, const void* content) {
  const std::size_t before = out_.size();
  out_.resize(before + sizeof frame + frame.size);
  std::memcpy(&out_[before], &frame, sizeof frame);
  if (content && frame.size) std::memcpy(&out_[before + sizeof frame], content, frame.size);
}

int MachineLink::flush() {
  int pieces = 0;
  while (has_more()) {
    const ssize_t sent = ::send(socket, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      sent_ += static_cast<std::size_t>(sent);
      ++pieces;
    } else if (would_wait()) {
      return pieces;
    } else if (errno != EINTR) {
      is_open = false;
    }
  }
  LAPJOINT_ASSERT(!is_open || sent_ == out_.size());
  out_.clear();
  sent_ = 0;
  return pieces;
}

// ---- all links -----------------------------------------------------------------------------------------------------

MachineLinks::MachineLinks(int machine, int spin_us) : machine_(machine), spin_us_(spin_us), buffer_(kBuffer) {
  if (pipe(bell_) != 0) throw std::system_error(errno, std::generic_category(), "no pipe for links to machines");
  for (const int end : bell_) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
}

MachineLinks::~MachineLinks() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  for (const int end : bell_) ::close(end);
}

void MachineLinks::set_workers(void* memory, std::size_t room, const std::vector<int>& machine_of) {
  {
    const std::lock_guard lock(mutex_);
    memory_ = memory;
    room_ = room;
    machine_of_ = machine_of;
    here_.clear();
    for (int worker = 0; worker < static_cast<int>(machine_of.size()); ++worker) {
      if (is_on(worker, machine_)) here_.push_back(worker);
      Mailboxes::set_elsewhere(memory, worker, !is_on(worker, machine_));
    }
    // What is still on its way was for a step that is over, and its place may be another.
    for (const auto& [_, link] : links_) link->into_ = nullptr;
  }
  wake();  // who sleeps has left word of it in the memory of before
}

void MachineLinks::connect(int machine, int socket) {
  auto link = std::make_shared<MachineLink>(socket);
  if (machine < 0 || machine == machine_)
    throw std::invalid_argument("machine " + std::to_string(machine_) + " cannot be linked to machine " +
                                std::to_string(machine));
  {
    const std::lock_guard lock(mutex_);
    links_[machine] = std::move(link);
  }
  if (!thread_.joinable()) {
    // Signals are for the threads that were there before.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  wake();
}

void MachineLinks::disconnect(int machine) {
  {
    const std::lock_guard lock(mutex_);
    links_.erase(machine);
  }
  wake();
}

void MachineLinks::abandon(std::uint64_t attempt) {
  {
    const std::lock_guard lock(mutex_);
    if (memory_) Mailboxes::abandon(memory_, attempt);
    for (const auto& [_, link] : links_) {
      link->put({MailFrame::kAbandoned, 0, MailFrame::kEverybody, attempt, 0}, nullptr);
      link->flush();
    }
  }
  wake();
}

// ---- the thread that carries ---------------------------------------------------------------------------------------

void MachineLinks::wake() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(bell_[1], &byte, 1);  // full: it wakes anyway
}

void MachineLinks::run() {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  for (;;) {
    std::unique_lock lock(mutex_);
    if (ends_) return;
    bool worked = collect();
    for (auto& [_, link] : links_) send_count_ += static_cast<std::uint64_t>(link->flush());
    for (auto& [machine, link] : links_)
      if (link->is_open) worked |= receive(*link, machine);
    const auto now = Clock::now();
    if (worked) last = now;
    if (now - last < std::chrono::microseconds(spin_us_)) {
      lock.unlock();
      std::this_thread::yield();  // whoever needs the core more has it
      continue;
    }
    sleep(lock);
    last = Clock::now();
  }
}

// Until something comes, or somebody here has something to send.
void MachineLinks::sleep(std::unique_lock<std::mutex>& lock) {
  if (memory_) Mailboxes::set_carrier_sleeps(memory_, true);
  if (memory_ && collect()) {
    Mailboxes::set_carrier_sleeps(memory_, false);
    for (auto& [_, link] : links_) send_count_ += static_cast<std::uint64_t>(link->flush());
    return;
  }
  std::vector<pollfd> waited{{bell_[0], POLLIN, 0}};
  std::vector<std::shared_ptr<MachineLink>> kept;  // their sockets stay open meanwhile
  for (const auto& [_, link] : links_) {
    if (!link->is_open) continue;
    kept.push_back(link);
    waited.push_back({link->socket, static_cast<short>(link->has_more() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  lock.unlock();
  poll(waited.data(), waited.size(), -1);
  if (waited[0].revents) {
    char bytes[64];
    while (read(bell_[0], bytes, sizeof bytes) > 0) {
    }
  }
  lock.lock();
  if (memory_) Mailboxes::set_carrier_sleeps(memory_, false);
}

// All that workers here have put into their outboxes. Returns whether there was anything.
bool MachineLinks::collect() {
  bool found = false;
  for (const int worker : here_) {
    Outbox& box = Mailboxes::outbox(memory_, worker);
    std::uint64_t taken = box.taken.load(std::memory_order_relaxed);
    LAPJOINT_ASSERT(box.put.load(std::memory_order_relaxed) - taken <= Outbox::kRoom);
    for (; taken != box.put.load(std::memory_order_seq_cst); box.taken.store(++taken, std::memory_order_release)) {
      MailFrame frame = box.frames[taken % Outbox::kRoom];
      frame.from = static_cast<std::uint16_t>(worker);
      found |= send(frame);
    }
  }
  return found;
}

bool MachineLinks::send(const MailFrame& frame) {
  LAPJOINT_ASSERT(is_on(frame.from, machine_));  // only what workers here have put out is carried
  if (frame.to == MailFrame::kEverybody) {
    for (auto& [_, link] : links_) link->put(frame, nullptr);
    return true;
  }
  if (frame.to >= machine_of_.size() || frame.size > room_) return false;
  const auto link = links_.find(machine_of_[frame.to]);
  if (link == links_.end() || !link->second->is_open) return false;
  link->second->put(frame, Mailboxes::content(memory_, room_, frame.from, frame.to, frame.number));
  ++message_count_;
  return true;
}

// What has come. Returns whether there was anything; a link that is lost, or over which comes what no machine sends, is
// closed.
bool MachineLinks::receive(MachineLink& link, int machine) {
  bool found = false;
  for (;;) {
    const ssize_t got = recv(link.socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_wait()) return found;
    if (got <= 0 || !take(link, machine, buffer_.data(), static_cast<std::size_t>(got))) {
      link.is_open = false;
      shutdown(link.socket, SHUT_RDWR);
      return found;
    }
    found = true;
    if (static_cast<std::size_t>(got) < buffer_.size()) return found;
  }
}

// False: this is not what machines send.
bool MachineLinks::take(MachineLink& link, int machine, const std::byte* data, std::size_t size) {
  MailFrame& frame = link.frame_;
  while (size > 0 || link.received_ == sizeof frame) {
    if (link.received_ < sizeof frame) {
      const std::size_t more = std::min(size, sizeof frame - link.received_);
      std::memcpy(reinterpret_cast<std::byte*>(&frame) + link.received_, data, more);
      link.received_ += more, data += more, size -= more;
      if (link.received_ < sizeof frame) return true;
      if (!is_acceptable(frame)) return false;
      // Of a worker that has moved, or for one: of a step that is over.
      const bool counts =
          memory_ && (frame.kind == MailFrame::kAbandoned ||
                      (is_on(frame.from, machine) && (frame.to == MailFrame::kEverybody || is_on(frame.to, machine_))));
      link.into_ = !counts ? nullptr
                   : frame.kind == MailFrame::kMessage
                       ? Mailboxes::content(memory_, room_, frame.from, frame.to, frame.number)
                       : reinterpret_cast<std::byte*>(&frame);
    }
    LAPJOINT_ASSERT(link.received_ >= sizeof frame && link.received_ <= sizeof frame + frame.size);
    const std::size_t done = link.received_ - sizeof frame, more = std::min(size, frame.size - done);
    if (link.into_ && more) std::memcpy(link.into_ + done, data, more);
    link.received_ += more, data += more, size -= more;
    if (link.received_ < sizeof frame + frame.size) return true;
    if (link.into_) deliver(frame);
    link.received_ = 0;
  }
  return true;
}

bool MachineLinks::is_acceptable(const MailFrame& frame) const {
  if (frame.kind == MailFrame::kAbandoned) return frame.size == 0;
  if (frame.from >= Mailboxes::kMostWorkers) return false;
  if (frame.kind == MailFrame::kMessage) return frame.to < Mailboxes::kMostWorkers && frame.size <= room_;
  return frame.kind >= MailFrame::kFinished && frame.kind <= MailFrame::kFinished + Mailboxes::kMostSaid &&
         frame.size == 0 && frame.to == MailFrame::kEverybody;
}

void MachineLinks::deliver(const MailFrame& frame) {
  LAPJOINT_ASSERT(is_acceptable(frame));
  if (frame.kind == MailFrame::kMessage) {
    Mailboxes::deliver(memory_, room_, frame.from, frame.to, frame.number, frame.size);
  } else if (frame.kind == MailFrame::kAbandoned) {
    Mailboxes::abandon(memory_, frame.number);
  } else {
    Mailboxes::finish(memory_, frame.from, frame.number, frame.kind - MailFrame::kFinished);
  }
}

}  // namespace lapjoint
