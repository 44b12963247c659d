// The exchange between server and workers within a step: what lies in the memory that both sides see, and how they wait
// for each other. Twin: src/lapjoint/algorithms/exchange.py
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "algorithms/extrapolation.h"
#include "solver/block_cholesky.h"

namespace lapjoint {

// Numbers of a contribution: change of linear and angular velocity, and of the push and turn that resolve penetration.
constexpr int kContribution = 12;

// What the server asks of a worker: another round, to finish the step, or to leave it as it was.
enum class Signal { kRound, kFinish, kAbandon };

// Every message begins with how many numbers it has, this one included: who carries it has to know no more of it.

// Server to worker; then a contribution of the server for each of the worker's interface bodies [m/s, rad/s].
struct Down {
  double size = 0;
  double signal = 0;   // Signal
  double advance = 0;  // Advance, to be done first
  double sweeps = 0;
  double theta[kColumns] = {};
};
constexpr int kDownHead = sizeof(Down) / sizeof(double);
constexpr int kSignalPlace = offsetof(Down, signal) / sizeof(double);

// Worker to server: its size and Products; then a contribution of the worker for each of its interface bodies; then how
// many masses there are, and these (MassBlock, bodies by their places in its interface): in the first round of a step,
// unless there are too many.
constexpr int kUpHead = 1 + kProductCount;
constexpr int kMassNumbers = 2 + BlockCholesky::kBlock, kMostMasses = 20000;
static_assert(kUpHead <= 1024 && kDownHead <= 1024, "HEAD_ROOM of src/lapjoint/engines/exchange.py");

// A worker's side of the exchange: where its messages lie, and which interface bodies are its own.
struct WorkerBuffers {
  double *down, *up;
  const int* rows;  // of its interface bodies among all interface bodies
  int count;
  std::size_t room;  // numbers that a message can have
};

struct RoundPlan {
  int rounds = 1;
  int sweeps = 1;         // of the workers in a round
  int server_sweeps = 1;  // of the server
  bool accelerated = true;
  double tolerance = 0;  // m/s

  // With so few, extrapolated contacts have no time to settle: stacks at rest would shake.
  bool is_few() const { return rounds < 40; }
};

struct RoundResult {
  int rounds = 0;
  double residual = 0;          // largest change of a constraint's velocity in the last round [m/s]
  bool failed = false;          // all workers were sent the signal to abandon the step, but for those of `not_finite`
  std::vector<int> late;        // workers that did not answer in time
  std::vector<int> not_finite;  // workers that answered with anything but numbers; they go on, and find out why
  std::vector<int> lost;        // places in the interface of bodies that the server's own engine has no numbers for
};

// The way to all workers at once.
class Links {
 public:
  virtual ~Links() = default;
  // What is written for them is there; nobody waits.
  virtual void tell() = 0;
  // The same, and what they answer is there. False if one of them is gone, has failed or does not answer in time; all
  // others have answered even then.
  virtual bool exchange() = 0;
  // Those that did not answer in time in the last exchange.
  virtual std::vector<int> late() const { return {}; }
};

// Workers in other processes. Where both sides see the same memory, a byte on a socket says that it is written; to and
// from other machines the messages themselves travel. An answer that begins otherwise says that the worker has failed.
class SocketLinks : public Links {
 public:
  // `carries`: whether messages travel on the worker's socket. `look_up` is called now and then. It may throw, which
  // ends the exchange.
  SocketLinks(const std::vector<WorkerBuffers>& workers, std::vector<int> sockets, std::vector<bool> carries,
              double limit_s, std::function<void()> look_up);
  void tell() override;
  bool exchange() override;
  std::vector<int> late() const override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Answer { kRound, kNone, kLate };

  Clock::time_point deadline() const;
  void send_to(std::size_t i, Clock::time_point deadline);
  Answer receive_from(std::size_t i, Clock::time_point deadline);
  Answer receive_bytes(int socket, void* data, std::size_t size, Clock::time_point deadline, int flags);
  bool wait(int socket, short events, Clock::time_point deadline);

  const std::vector<WorkerBuffers>& workers_;
  std::vector<int> sockets_;
  std::vector<bool> carries_;
  double limit_s_;
  std::function<void()> look_up_;
  Clock::time_point next_look_ = Clock::now();
  std::vector<Answer> answers_;  // of the last exchange; who has not answered is sent nothing more
};

// Any other way: `exchange_` has the workers answer and says whether all did.
class CalledLinks : public Links {
 public:
  CalledLinks(std::function<void()> tell, std::function<bool()> exchange)
      : tell_(std::move(tell)), exchange_(std::move(exchange)) {}
  void tell() override { tell_(); }
  bool exchange() override { return exchange_(); }

 private:
  std::function<void()> tell_;
  std::function<bool()> exchange_;
};

// Masses as numbers, one after the other; `write_masses` returns where they end.
double* write_masses(const std::vector<MassBlock>& masses, double* out);
void read_masses(const double* in, int count, std::vector<MassBlock>& masses);

// A worker waits for the server's next message, of up to `room` numbers. False if the server is gone.
bool wait_for_server(int socket, bool carries, double* down, std::size_t room);
void answer_server(int socket, bool carries, const double* up);

}  // namespace lapjoint
