#include "exchange/exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace lapjoint {

namespace {

constexpr char kRoundByte = 'r';
constexpr std::chrono::milliseconds kLookUpEvery{100};

// Bytes of a message, or 0 if its first number cannot be a size.
std::size_t byte_count(const double* message, std::size_t room) {
  const double size = message[0];
  return size >= 1 && size <= static_cast<double>(room) ? sizeof(double) * static_cast<std::size_t>(size) : 0;
}

bool is_to_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A worker waits as long as it takes: without its server it has nothing to do.
bool receive_all(int socket, void* data, std::size_t size) {
  auto* place = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, place, size, MSG_WAITALL);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) place += got, size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

SocketLinks::SocketLinks(const std::vector<WorkerBuffers>& workers, std::vector<int> sockets, std::vector<bool> carries,
                         double limit_s, std::function<void()> look_up)
    : workers_(workers),
      sockets_(std::move(sockets)),
      carries_(std::move(carries)),
      limit_s_(limit_s),
      look_up_(std::move(look_up)),
      answers_(workers.size(), Answer::kRound) {}

SocketLinks::Clock::time_point SocketLinks::deadline() const {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s_));
}

void SocketLinks::tell() {
  const auto until = deadline();
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (answers_[i] == Answer::kRound) send_to(i, until);
}

bool SocketLinks::exchange() {
  if (Clock::now() > next_look_) {
    look_up_();
    next_look_ = Clock::now() + kLookUpEvery;
  }
  const auto until = deadline();
  for (std::size_t i = 0; i < workers_.size(); ++i) send_to(i, until);
  for (std::size_t i = 0; i < workers_.size(); ++i) answers_[i] = receive_from(i, until);
  return std::all_of(answers_.begin(), answers_.end(), [](Answer answer) { return answer == Answer::kRound; });
}

std::vector<int> SocketLinks::late() const {
  std::vector<int> late;
  for (std::size_t i = 0; i < answers_.size(); ++i)
    if (answers_[i] == Answer::kLate) late.push_back(static_cast<int>(i));
  return late;
}

// Who is gone is noticed where its answer is waited for.
void SocketLinks::send_to(std::size_t i, Clock::time_point deadline) {
  const char* place = carries_[i] ? reinterpret_cast<const char*>(workers_[i].down) : &kRoundByte;
  std::size_t size = carries_[i] ? byte_count(workers_[i].down, workers_[i].room) : 1;
  while (size > 0) {
    const ssize_t sent = send(sockets_[i], place, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      place += sent, size -= static_cast<std::size_t>(sent);
    } else if (!is_to_wait() || !wait(sockets_[i], POLLOUT, deadline)) {
      return;
    }
  }
}

SocketLinks::Answer SocketLinks::receive_from(std::size_t i, Clock::time_point deadline) {
  const int socket = sockets_[i];
  if (!carries_[i]) {
    char byte = 0;
    const Answer answer = receive_bytes(socket, &byte, 1, deadline, MSG_PEEK);
    if (answer != Answer::kRound) return answer;
    if (byte != kRoundByte) return Answer::kNone;  // a failure follows, for those who read it
    recv(socket, &byte, 1, 0);
    return answer;
  }
  double* up = workers_[i].up;
  const Answer answer = receive_bytes(socket, up, sizeof(double), deadline, 0);
  if (answer != Answer::kRound) return answer;
  const std::size_t size = byte_count(up, workers_[i].room);
  return size == 0 ? Answer::kNone : receive_bytes(socket, up + 1, size - sizeof(double), deadline, 0);
}

SocketLinks::Answer SocketLinks::receive_bytes(int socket, void* data, std::size_t size, Clock::time_point deadline,
                                               int flags) {
  auto* place = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, place, size, flags | MSG_DONTWAIT);
    if (got > 0) {
      place += got, size -= static_cast<std::size_t>(got);
    } else if (got == 0 || !is_to_wait()) {
      return Answer::kNone;
    } else if (!wait(socket, POLLIN, deadline)) {
      return Answer::kLate;
    }
  }
  return Answer::kRound;
}

// False once it is too late.
bool SocketLinks::wait(int socket, short events, Clock::time_point deadline) {
  const auto left = deadline - Clock::now();
  if (left <= Clock::duration::zero()) return false;
  pollfd waited{socket, events, 0};
  const auto most = std::min<Clock::duration>(left, kLookUpEvery);
  if (poll(&waited, 1, 1 + static_cast<int>(most / std::chrono::milliseconds(1))) <= 0) look_up_();
  return true;
}

double* write_masses(const std::vector<MassBlock>& masses, double* out) {
  for (const MassBlock& block : masses) {
    *out++ = block.body_a;
    *out++ = block.body_b;
    out = std::copy(std::begin(block.mass), std::end(block.mass), out);
  }
  return out;
}

void read_masses(const double* in, int count, std::vector<MassBlock>& masses) {
  for (int i = 0; i < count; ++i, in += kMassNumbers) {
    MassBlock& block = masses.emplace_back();
    block.body_a = static_cast<int>(in[0]);
    block.body_b = static_cast<int>(in[1]);
    std::copy(in + 2, in + kMassNumbers, block.mass);
  }
}

bool wait_for_server(int socket, bool carries, double* down, std::size_t room) {
  char byte = 0;
  if (!carries) return receive_all(socket, &byte, 1);
  if (!receive_all(socket, down, sizeof(double))) return false;
  const std::size_t size = byte_count(down, room);
  return size > 0 && receive_all(socket, down + 1, size - sizeof(double));
}

void answer_server(int socket, bool carries, const double* up) {
  const char* place = carries ? reinterpret_cast<const char*>(up) : &kRoundByte;
  std::size_t size = carries ? sizeof(double) * static_cast<std::size_t>(up[0]) : 1;
  while (size > 0) {
    const ssize_t sent = send(socket, place, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return;  // noticed where the next message is waited for
    if (sent > 0) place += sent, size -= static_cast<std::size_t>(sent);
  }
}

}  // namespace lapjoint
