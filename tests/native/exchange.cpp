// Workers as threads that send each other messages within steps, on one machine and on two with a socket between them,
// while somebody watches them and abandons steps: for the thread sanitizer (tools/sanitize), which sees no other
// process. Prints how many steps were taken and how many abandoned; fails where a message is not what was sent.
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "exchange/machine_links.h"
#include "exchange/mailboxes.h"

using lapjoint::MachineLinks;
using lapjoint::Mailboxes;
using lapjoint::StepAbandoned;

namespace {

constexpr std::size_t kRoom = 4096;
constexpr int kTurns = 6;

struct Machine {
  explicit Machine(int number, int worker_count)
      : memory(std::aligned_alloc(64, (Mailboxes::byte_count(worker_count, kRoom) + 63) / 64 * 64), std::free),
        links(number, 0) {
    std::memset(memory.get(), 0, Mailboxes::byte_count(worker_count, kRoom));
  }
  std::unique_ptr<void, decltype(&std::free)> memory;
  MachineLinks links;
};

std::uint32_t sent(std::uint64_t attempt, int from, int to, int turn, std::size_t place) {
  return static_cast<std::uint32_t>(attempt * 1000003u + from * 4099u + to * 257u + turn * 31u + place);
}

std::size_t length(std::uint64_t attempt, int from, int to, int turn) {
  return 4 * (1 + (attempt * 7 + from * 5 + to * 3 + turn * 11) % (kRoom / 4 - 1));
}

void fail(const char* why) {
  std::fprintf(stderr, "exchange: %s\n", why);
  std::exit(1);
}

// False: the step was abandoned.
bool take_step(Mailboxes& mail, std::uint64_t attempt) {
  mail.begin_step(attempt);
  const int self = mail.self();
  try {
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int to = 0; to < mail.worker_count(); ++to) {
        if (to == self) continue;
        const std::size_t size = length(attempt, self, to, turn);
        auto* into = static_cast<std::uint32_t*>(mail.outgoing(to));
        for (std::size_t k = 0; k < size / 4; ++k) into[k] = sent(attempt, self, to, turn, k);
        mail.send(to, size);
      }
      for (int from = 0; from < mail.worker_count(); ++from) {
        if (from == self) continue;
        const std::size_t size = length(attempt, from, self, turn);
        const auto* message = static_cast<const std::uint32_t*>(mail.receive(from, size));
        for (std::size_t k = 0; k < size / 4; ++k)
          if (message[k] != sent(attempt, from, self, turn, k)) fail("a message is not what was sent");
      }
      mail.meet();
    }
    if (mail.finish_step(self == 1 ? 2 : 0) != 2) fail("what one has said is not what all have heard");
  } catch (const StepAbandoned&) {
    return false;
  }
  return true;
}

void run(int worker_count, int machine_count, int steps) {
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<int> machine_of;
  for (int worker = 0; worker < worker_count; ++worker) machine_of.push_back(worker % machine_count);
  for (int number = 0; number < machine_count; ++number) {
    machines.push_back(std::make_unique<Machine>(number, worker_count));
    machines.back()->links.set_workers(machines.back()->memory.get(), kRoom, machine_of);
  }
  if (machine_count == 2) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("no sockets");
    machines[0]->links.connect(1, ends[0]);
    machines[1]->links.connect(0, ends[1]);
  }
  std::mt19937 chance(worker_count * 10 + machine_count);
  int abandoned = 0;
  std::vector<std::unique_ptr<Mailboxes>> mail;
  for (int worker = 0; worker < worker_count; ++worker) {
    Machine& here = *machines[machine_of[worker]];
    mail.push_back(std::make_unique<Mailboxes>(here.memory.get(), worker_count, kRoom, worker, worker % 2 * 50,
                                               here.links.bell()));
  }
  for (int step = 1; step <= steps; ++step) {
    const bool is_harmed = step % 5 == 0;
    // Of those that take a step, one may be missing: the others wait for it until the step is abandoned.
    const int missing = is_harmed ? static_cast<int>(chance() % worker_count) : -1;
    std::atomic<int> left{0};
    std::vector<std::thread> threads;
    for (int worker = 0; worker < worker_count; ++worker)
      if (worker != missing)
        threads.emplace_back([&, worker] { left += !take_step(*mail[worker], static_cast<std::uint64_t>(step)); });
    if (is_harmed) {
      // Somebody watches: looks who waits, and lets them leave, from the memory or through a link.
      for (int look = 0; look < 100; ++look)
        for (int worker = 0; worker < worker_count; ++worker)
          Mailboxes::is_waiting(machines[machine_of[worker]]->memory.get(), worker);
      for (auto& machine : machines) {
        if (step % 2) Mailboxes::abandon(machine->memory.get(), static_cast<std::uint64_t>(step));
        machine->links.abandon(static_cast<std::uint64_t>(step));
      }
    }
    for (auto& thread : threads) thread.join();
    if (is_harmed && left != worker_count - 1) fail("somebody has taken a step alone");
    if (!is_harmed && left != 0) fail("a step was abandoned that nobody has");
    abandoned += is_harmed;
    if (step == steps / 2)  // between two steps others may be told of more room, here of the same
      for (auto& machine : machines) machine->links.set_workers(machine->memory.get(), kRoom, machine_of);
  }
  std::printf("exchange: %d workers on %d machines: %d steps taken, %d abandoned\n", worker_count, machine_count,
              steps - abandoned, abandoned);
}

}  // namespace

int main(int count, char** words) {
  const int steps = count > 1 ? std::atoi(words[1]) : 100;
  run(2, 1, steps);
  run(4, 1, steps);
  run(2, 2, steps);
  run(4, 2, steps);
}
