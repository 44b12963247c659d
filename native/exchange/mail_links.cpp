#include "exchange/mail_links.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

#include "exchange/mailboxes.h"

namespace lapjoint {

namespace {

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

// ---- one link ------------------------------------------------------------------------------------------------------

MailLink::~MailLink() { ::close(socket); }

void MailLink::close() {
  is_open = false;
  shutdown(socket, SHUT_RDWR);
}

void MailLink::put(const MailFrame& frame, const void* content) {
  const std::size_t before = out_.size();
  out_.resize(before + sizeof frame + frame.size);
  std::memcpy(&out_[before], &frame, sizeof frame);
  if (content) std::memcpy(&out_[before + sizeof frame], content, frame.size);
}

bool MailLink::flush() {
  while (is_open && sent_ < out_.size()) {
    const ssize_t sent = send(socket, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (would_wait()) {
      return false;
    } else if (errno != EINTR) {
      close();
    }
  }
  out_.clear();
  sent_ = 0;
  return true;
}

// ---- all links -----------------------------------------------------------------------------------------------------

MailLinks::MailLinks(int self) : self_(self) {
  if (pipe(wake_) != 0) throw std::system_error(errno, std::generic_category(), "no pipe for links to workers");
  for (const int end : wake_) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
}

MailLinks::~MailLinks() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  for (const int end : wake_) ::close(end);
}

void MailLinks::set_memory(void* memory, int worker_count, std::size_t room) {
  const std::lock_guard lock(mutex_);
  memory_ = memory;
  room_ = room;
  worker_count_ = worker_count;
  while (static_cast<int>(links_.size()) > worker_count) {
    if (links_.back()) links_.back()->close();
    links_.pop_back();
  }
}

void MailLinks::connect(int worker, int socket) {
  auto link = std::make_shared<MailLink>(worker, socket);
  if (worker < 0 || worker == self_ || worker >= worker_count_)
    throw std::invalid_argument("worker " + std::to_string(self_) + " cannot be linked to worker " +
                                std::to_string(worker));
  set(worker, std::move(link));
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

void MailLinks::disconnect(int worker) {
  set(worker, nullptr);
  wake();
}

void MailLinks::set(int worker, std::shared_ptr<MailLink> link) {
  const std::lock_guard lock(mutex_);
  if (worker >= static_cast<int>(links_.size())) links_.resize(worker + 1);
  if (links_[worker]) links_[worker]->close();
  links_[worker] = std::move(link);
}

void MailLinks::abandon(std::uint64_t attempt) {
  for (const auto& link : all()) {
    link->put({MailFrame::kAbandoned, attempt, 0}, nullptr);
    link->flush();
  }
}

std::shared_ptr<MailLink> MailLinks::find(int worker) const {
  const std::lock_guard lock(mutex_);
  return worker < static_cast<int>(links_.size()) ? links_[worker] : nullptr;
}

std::vector<std::shared_ptr<MailLink>> MailLinks::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<MailLink>> found;
  for (const auto& link : links_)
    if (link) found.push_back(link);
  return found;
}

bool MailLinks::is_abandoned(std::uint64_t attempt) const {
  const auto links = all();
  return std::any_of(links.begin(), links.end(), [&](const auto& link) { return link->abandoned >= attempt; });
}

// ---- the thread that receives --------------------------------------------------------------------------------------

void MailLinks::wake() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(wake_[1], &byte, 1);  // full: it wakes anyway
}

void MailLinks::run() {
  for (;;) {
    auto links = all();
    std::erase_if(links, [](const auto& link) { return !link->is_open; });
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
    }
    std::vector<pollfd> waited{{wake_[0], POLLIN, 0}};
    for (const auto& link : links) waited.push_back({link->socket, POLLIN, 0});
    if (poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited[0].revents) {
      char bytes[64];
      while (read(wake_[0], bytes, sizeof bytes) > 0) {
      }
    }
    for (std::size_t i = 0; i < links.size(); ++i)
      if (waited[i + 1].revents && !receive(*links[i])) links[i]->close();
  }
}

// All that has come. False: the link is lost, or what comes is not what workers send.
bool MailLinks::receive(MailLink& link) {
  MailFrame& frame = link.frame_;
  for (;;) {
    std::byte* into = reinterpret_cast<std::byte*>(&frame) + link.received_;
    std::size_t wanted = sizeof frame - link.received_;
    if (link.received_ >= sizeof frame) {
      const std::size_t content = link.received_ - sizeof frame;
      into = Mailboxes::content(memory_, room_, link.worker, self_, frame.number) + content;
      wanted = frame.size - content;
    }
    const ssize_t got = recv(link.socket, into, wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_wait()) return true;
    if (got <= 0) return false;
    link.received_ += static_cast<std::size_t>(got);
    if (link.received_ == sizeof frame && !is_acceptable(frame)) return false;
    if (link.received_ >= sizeof frame && link.received_ - sizeof frame == frame.size) take(link);
  }
}

bool MailLinks::is_acceptable(const MailFrame& frame) const {
  if (frame.kind == MailFrame::kMessage) return frame.size <= room_;
  return frame.kind > MailFrame::kMessage && frame.kind <= MailFrame::kAgreed && frame.size == 0;
}

void MailLinks::take(MailLink& link) {
  const MailFrame& frame = link.frame_;
  link.received_ = 0;
  if (frame.kind == MailFrame::kMessage) {
    Mailboxes::deliver(memory_, room_, link.worker, self_, frame.number, frame.size);
  } else if (frame.kind == MailFrame::kFinished) {
    link.finished.set(frame.number);
  } else if (frame.kind == MailFrame::kAgreed) {
    link.agreed = frame.number;
  } else {
    link.abandoned = frame.number;
  }
}

}  // namespace lapjoint
