#include "exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace lapjoint {

namespace {

constexpr std::chrono::milliseconds kLookUpEvery{100};

// Who is gone is noticed where its answer is waited for.
void send_byte(int socket) { send(socket, &kRoundByte, 1, MSG_NOSIGNAL); }

}  // namespace

void SocketLinks::tell() {
  for (const int socket : sockets_) send_byte(socket);
}

SocketLinks::Answer SocketLinks::wait(int socket, Clock::time_point deadline) const {
  while (true) {
    char byte = 0;
    const ssize_t size = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size == 1) {
      if (byte != kRoundByte) return Answer::kNone;  // a failure follows, for those who read it
      recv(socket, &byte, 1, 0);
      return Answer::kRound;
    }
    if (size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return Answer::kNone;
    const auto left = deadline - Clock::now();
    if (left <= Clock::duration::zero()) return Answer::kLate;
    pollfd waited{socket, POLLIN, 0};
    const auto most = std::min<Clock::duration>(left, kLookUpEvery);
    if (poll(&waited, 1, 1 + static_cast<int>(most / std::chrono::milliseconds(1))) <= 0) look_up_();
  }
}

bool SocketLinks::exchange() {
  if (Clock::now() > next_look_) {
    look_up_();
    next_look_ = Clock::now() + kLookUpEvery;
  }
  tell();
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s_));
  const auto deadline = Clock::now() + limit;
  bool all = true;
  late_.clear();
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const Answer answer = wait(sockets_[i], deadline);
    if (answer == Answer::kLate) late_.push_back(static_cast<int>(i));
    all = all && answer == Answer::kRound;
  }
  return all;
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

bool wait_for_server(int socket) {
  char byte = 0;
  ssize_t size = 0;
  do size = recv(socket, &byte, 1, 0);
  while (size < 0 && errno == EINTR);
  return size == 1;
}

void answer_server(int socket) { send_byte(socket); }

}  // namespace lapjoint
