#include "exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

namespace lapjoint {

namespace {

// Who is gone is noticed where its answer is waited for.
void send_byte(int socket) { send(socket, &kRoundByte, 1, MSG_NOSIGNAL); }

}  // namespace

void SocketLinks::tell() {
  for (const int socket : sockets_) send_byte(socket);
}

bool SocketLinks::exchange() {
  tell();
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(limit_s_);
  for (const int socket : sockets_) {
    while (true) {
      char byte = 0;
      const ssize_t size = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (size == 1) {
        if (byte != kRoundByte) return false;  // a failure follows, for those who read it
        recv(socket, &byte, 1, 0);
        break;
      }
      if (size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
      const double left_s = std::chrono::duration<double>(deadline - Clock::now()).count();
      pollfd waited{socket, POLLIN, 0};
      const int ready = left_s > 0 ? poll(&waited, 1, static_cast<int>(std::ceil(1e3 * left_s))) : 0;
      if (ready == 0 || (ready < 0)) return false;  // late, or the program is interrupted
    }
  }
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

bool wait_for_server(int socket) {
  char byte = 0;
  ssize_t size = 0;
  do size = recv(socket, &byte, 1, 0);
  while (size < 0 && errno == EINTR);
  return size == 1;
}

void answer_server(int socket) { send_byte(socket); }

}  // namespace lapjoint
