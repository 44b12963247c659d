// A world's step in rounds: alone, as a worker, and as the server between workers (docs/coupling.md).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "bullet/slot.h"
#include "bullet/world.h"

namespace lapjoint {

namespace {

bool is_finite(const double* numbers, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += numbers[i] * 0;
  return sum == 0;
}

// Whether a worker's answer is as long as it says, of numbers, and about its own bodies.
bool is_message(const WorkerBuffers& worker) {
  const std::size_t before = kUpHead + static_cast<std::size_t>(kContribution) * worker.count;
  const double masses = worker.up[before];
  if (!(masses >= 0 && masses <= kMostMasses)) return false;
  const std::size_t size = before + 1 + kMassNumbers * static_cast<std::size_t>(masses);
  if (worker.up[0] != static_cast<double>(size) || !is_finite(worker.up, size)) return false;
  for (const double* mass = worker.up + before + 1; mass < worker.up + size; mass += kMassNumbers)
    for (int end = 0; end < 2; ++end)
      if (!(mass[end] >= 0 && mass[end] < worker.count)) return false;
  return true;
}

}  // namespace

RoundSolver& BulletWorld::rounds() const {
  if (!rounds_) throw std::invalid_argument("this world was not made for steps in rounds");
  return *rounds_;
}

void BulletWorld::begin_step(double timestep, const int* interface, int count, const std::vector<int>& jointed) {
  require(interface, count, true);
  for (const int place : jointed)
    if (place < 0 || place >= count)
      throw std::invalid_argument("place " + std::to_string(place) + " is none of the interface's " +
                                  std::to_string(count) + " bodies");
  RoundSolver& solver = rounds();
  commit();
  solver.begin_step();
  begun_timestep_ = btScalar(timestep);
  world_->begin_step(begun_timestep_, solver);
  std::vector<btRigidBody*> bodies;
  for (int i = 0; i < count; ++i) bodies.push_back(&slot(interface[i]).body);
  solver.set_interface(bodies, settings_.length_unit);
  interface_masses_.clear();
  if (!jointed.empty()) interface_masses_ = solver.interface_masses(jointed);
  contacts_solved_ = true;
}

Products BulletWorld::sweep(int count) {
  Products products;
  rounds().sweep(count, products);
  return products;
}

void BulletWorld::finish_step(bool moves) {
  world_->finish_step(begun_timestep_, rounds(), moves);
  if (moves) check_finite();
}

void BulletWorld::abandon_step() {
  rounds().abandon();
  world_->clearForces();
  contacts_solved_ = false;
}

RoundResult BulletWorld::step_rounds(double timestep, const RoundPlan& plan) {
  begin_step(timestep, nullptr, 0, {});
  RoundResult result;
  double theta[kColumns], last = -1;
  while (true) {
    const Products products = sweep(plan.sweeps);
    result.residual = products.largest_change * settings_.length_unit;
    if (++result.rounds >= plan.rounds || result.residual <= plan.tolerance) break;
    if (plan.accelerated)
      rounds().extrapolate(choose_advance(products, last, regularization(), plan.is_few(), theta), theta);
    last = products.change_squared;
  }
  finish_step(true);
  return result;
}

Signal BulletWorld::serve(const double* down, double* up) {
  Down head;
  std::memcpy(static_cast<void*>(&head), down, sizeof head);
  const auto signal = static_cast<Signal>(static_cast<int>(head.signal));
  if (signal == Signal::kAbandon) return signal;
  if (signal == Signal::kRound) rounds().extrapolate(static_cast<Advance>(static_cast<int>(head.advance)), head.theta);
  rounds().include(down + kDownHead);
  if (signal == Signal::kFinish) return signal;
  const Products products = sweep(static_cast<int>(head.sweeps));
  std::memcpy(up + 1, &products, sizeof products);
  rounds().contributions(up + kUpHead);
  double* at = up + kUpHead + kContribution * rounds().interface_count();
  *at++ = static_cast<double>(interface_masses_.size());
  at = write_masses(interface_masses_, at);
  interface_masses_.clear();
  up[0] = static_cast<double>(at - up);
  return signal;
}

bool BulletWorld::serve_by_socket(int socket, double* down, double* up, std::size_t room, bool carries) {
  while (true) {
    if (!wait_for_server(socket, carries, down, room)) throw std::runtime_error("the server is gone");
    const Signal signal = serve(down, up);
    if (signal != Signal::kRound) return signal == Signal::kFinish;
    answer_server(socket, carries, up);
  }
}

RoundResult BulletWorld::run_rounds(const RoundPlan& plan, const std::vector<WorkerBuffers>& workers, Links& links) {
  RoundSolver& solver = rounds();
  std::vector<double> ours(static_cast<std::size_t>(kContribution) * solver.interface_count()), theirs(ours.size());
  const auto write = [&](const Down& head) {
    for (const WorkerBuffers& worker : workers) {
      Down own = head;
      own.size = kDownHead + kContribution * worker.count;
      std::memcpy(worker.down, &own, sizeof own);
      double* out = worker.down + kDownHead;
      for (int i = 0; i < worker.count; ++i, out += kContribution)
        std::memcpy(out, &ours[static_cast<std::size_t>(kContribution) * worker.rows[i]],
                    kContribution * sizeof(double));
    }
  };
  RoundResult result;
  // False if a worker has answered with anything but numbers.
  const auto read = [&](Products& total) {
    for (std::size_t w = 0; w < workers.size(); ++w) {
      const WorkerBuffers& worker = workers[w];
      if (!is_message(worker)) {
        result.not_finite.push_back(static_cast<int>(w));
        continue;
      }
      Products products;
      std::memcpy(&products, worker.up + 1, sizeof products);
      total.add(products);
      const double* in = worker.up + kUpHead;
      for (int i = 0; i < worker.count; ++i, in += kContribution)
        std::memcpy(&theirs[static_cast<std::size_t>(kContribution) * worker.rows[i]], in,
                    kContribution * sizeof(double));
    }
    return result.not_finite.empty();
  };
  // What goes to the workers next is numbers: else nothing is to reach bodies that had nothing to do with it.
  const auto are_numbers = [&](const Products& total) {
    for (std::size_t i = 0; i < ours.size(); i += kContribution)
      if (!is_finite(&ours[i], kContribution)) result.lost.push_back(static_cast<int>(i / kContribution));
    return result.lost.empty() && is_finite(reinterpret_cast<const double*>(&total), kProductCount);
  };
  // All leave the step as it was; who has no numbers goes on to its end alone, and finds out why.
  const auto give_up = [&] {
    result.failed = true;
    result.late = links.late();
    for (const WorkerBuffers& worker : workers) worker.down[kSignalPlace] = static_cast<double>(Signal::kAbandon);
    for (const int w : result.not_finite) workers[w].down[kSignalPlace] = static_cast<double>(Signal::kFinish);
    links.tell();
    return result;
  };
  const auto take_masses = [&] {
    std::vector<MassBlock> masses;
    for (const WorkerBuffers& worker : workers) {
      const double* in = worker.up + kUpHead + static_cast<std::size_t>(kContribution) * worker.count;
      const std::size_t first = masses.size();
      read_masses(in + 1, static_cast<int>(*in), masses);
      for (std::size_t i = first; i < masses.size(); ++i) {
        masses[i].body_a = worker.rows[masses[i].body_a];
        masses[i].body_b = worker.rows[masses[i].body_b];
      }
    }
    if (!masses.empty()) solver.add_interface_masses(std::move(masses));
  };
  Down head;
  head.sweeps = plan.sweeps;
  double last = -1;
  solver.contributions(ours.data());
  while (true) {
    write(head);
    Products total{};
    if (!links.exchange() || !read(total)) return give_up();
    if (result.rounds == 0) take_masses();
    solver.include(theirs.data());
    total.add(sweep(plan.server_sweeps));
    solver.contributions(ours.data());
    if (!are_numbers(total)) return give_up();
    result.residual = total.largest_change * settings_.length_unit;
    if (++result.rounds >= plan.rounds || result.residual <= plan.tolerance) break;
    const Advance how =
        plan.accelerated ? choose_advance(total, last, regularization(), plan.is_few(), head.theta) : Advance::kKeep;
    head.advance = static_cast<double>(how);
    last = total.change_squared;
    solver.extrapolate(how, head.theta);
    solver.contributions(ours.data());
  }
  head.signal = static_cast<double>(Signal::kFinish);
  write(head);
  links.tell();
  return result;
}

}  // namespace lapjoint
