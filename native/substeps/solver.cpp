#include "substeps/solver.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "assertions.h"

namespace lapjoint {

namespace {

constexpr int kColdSweeps = 16;   // in a step whose contacts are mostly new
constexpr int kImpactPasses = 8;  // over all contacts, until none comes fast
}  // namespace

// Adds what has passed since it was last asked.
class SubstepSolver::Clock {
 public:
  void lap(double& into) {
    const auto now = Steady::now();
    into += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Steady = std::chrono::steady_clock;
  Steady::time_point last_ = Steady::now();
};

void SubstepSolver::step(Real timestep) {
  Clock clock;
  times_ = {};
  row_updates_ = 0;
  // Every contact is between own bodies, or with those of one neighbour.
  LAPJOINT_ASSERT(std::accumulate(between.contact_orders.begin(), between.contact_orders.end(), contact_order.size(),
                                  [](std::size_t sum, const std::vector<int>& order) { return sum + order.size(); }) ==
                  contacts.size());
  between.set_backing(&backing);
  backing.find(contacts, contact_order, between.contact_orders, between.neighbours(), bodies, between.mailboxes());
  // Impulses of the last step are what makes one sweep enough. Where there are none yet, as in a scene's first step, a
  // load takes a sweep for every layer that it rests on.
  Between::Counts counts;
  counts.all = static_cast<long>(contact_order.size());
  for (const int number : contact_order) counts.fresh += contacts[number].is_new;
  counts = between.sum_over_workers(counts, contacts);
  impacts_cross_ = counts.bouncing_between > 0;
  const int sweep_count = 2 * counts.fresh > counts.all ? kColdSweeps : 1;
  sweeps_.colour(contacts, contact_order, bodies.fixed());
  between.colour(contacts, bodies.fixed());
  clock.lap(times_.colouring);

  substeps_ = settings.substeps;
  solve(timestep, substeps_, sweep_count, clock);
  if (settings.tolerance > 0) {
    while (find_overlap(clock) > settings.tolerance && substeps_ < settings.max_substeps) {
      substeps_ = std::min(2 * substeps_, settings.max_substeps);
      solve(timestep, substeps_, sweep_count, clock);
    }
  }

  if (sums_contacts) add_impacts();
  if (!surfaces.empty()) sweeps_.add_surface_work_of_impacts(surface_work);
  clock.lap(times_.sweeps);
  sweeps_.store(contacts);
  joints.store(joint_impulses);
  direct_joints.store(joint_impulses);
  between.store(contacts, joint_impulses);
  bodies.finish(timestep, substeps_);
  clock.lap(times_.moving);
}

void SubstepSolver::solve(Real timestep, int substeps, int sweep_count, Clock& clock) {
  const Real h = timestep / Real(substeps);
  bodies.begin(timestep, substeps);
  const bool sums_wrenches = sums_forces && !wrenches.empty();
  const bool poses = joints.needs_poses() || !direct_joints.empty() || between.needs_poses() || sums_wrenches;
  if (poses) bodies.find_poses();
  ContactSettings of_contacts;
  of_contacts.soft = Softness::of(settings.contact_share, settings.contact_damping, h);
  of_contacts.soft_fixed = Softness::of(2 * settings.contact_share, settings.contact_damping / 2, h);
  of_contacts.push_speed = settings.push_speed;
  of_contacts.bounce_speed = settings.bounce_speed;
  of_contacts.h = h;
  of_contacts.substeps = substeps;
  of_contacts.surfaces = surfaces.data();
  of_contacts.shifts = shifts.data();
  of_contacts.soft_backed =
      Softness::of(std::min(settings.backed_share, settings.backed_frequency * h), settings.backed_damping, h);
  of_contacts.is_backed = backing.is_backed();
  {
    const AsBacked as(backing.own(), bodies, AsBacked::Also::kFrames);
    sweeps_.prepare(contacts, bodies, of_contacts);
  }
  JointSettings of_joints;
  // As stiff as with the first number of substeps: springs of joints that became stiffer and softer from step to step
  // would feed their structure with energy, 70% of a bridge's.
  const Real joint_share = settings.joint_share * Real(settings.substeps) / Real(substeps);
  of_joints.soft = Softness::of(joint_share, settings.joint_damping, h);
  of_joints.push_speed = settings.push_speed;
  of_joints.h = h;
  of_joints.substeps = substeps;
  if (!joints.empty()) joints.prepare(bodies, of_joints, joint_impulses);
  between.prepare(contacts, bodies, of_contacts, of_joints, joint_impulses);
  clock.lap(times_.preparing);
  if (!direct_joints.empty()) direct_joints.prepare(bodies, of_joints, joint_impulses, between.mailboxes());
  clock.lap(times_.direct);
  joints.warm_start(bodies);
  direct_joints.warm_start(bodies);
  {
    const AsBacked as(backing.own(), bodies);
    sweeps_.warm_start(bodies);
  }
  between.warm_start(bodies);
  bodies.take_carried();
  clock.lap(times_.preparing);
  if (sums_joints) joint_sums.assign(joint_impulses.size(), 0);
  if (sums_contacts) contact_sums.assign(contacts.size(), {});
  if (sums_forces) friction_sums.assign(contacts.size(), {});
  surface_work.assign(surfaces.empty() ? 0 : contacts.size(), 0);
  if (sums_wrenches) wrenches.clear();

  for (int substep = 0; substep < substeps; ++substep) {
    solve_impacts(clock);
    bodies.begin_substep();
    clock.lap(times_.moving);
    if (substep == 0) direct_joints.settle(bodies);
    clock.lap(times_.direct);
    for (int sweep = 0; sweep < sweep_count; ++sweep) {
      between.solve(bodies);
      clock.lap(times_.between);
      joints.solve(bodies);
      {
        const AsBacked as(backing.own(), bodies);
        sweeps_.solve(bodies);
      }
      clock.lap(times_.sweeps);
      direct_joints.solve(bodies);
      clock.lap(times_.direct);
    }
    bodies.move(h);
    sweeps_.move_surfaces();
    direct_joints.take_back(bodies);
    if (poses) bodies.find_poses();
    clock.lap(times_.moving);
    joints.turn(bodies);
    clock.lap(times_.sweeps);
    for (int sweep = 0; sweep < sweep_count; ++sweep) {
      residual_ = between.relax(bodies, sweep == 0, poses);
      clock.lap(times_.between);
      if (sweep == 0) direct_joints.turn(bodies);  // ghosts are where they should be only now
      clock.lap(times_.direct);
      residual_ = std::max(residual_, joints.relax(bodies));
      {
        const AsBacked as(backing.own(), bodies);
        residual_ = std::max(residual_, sweeps_.relax(bodies));
      }
      clock.lap(times_.sweeps);
      direct_joints.relax(bodies);
      clock.lap(times_.direct);
    }
    if (sums_joints) {
      joints.add_impulses(joint_sums);
      direct_joints.add_impulses(joint_sums);
      between.add_impulses(joint_sums);
    }
    if (sums_wrenches) add_wrenches();
    if (sums_contacts) add_contacts();
    if (!surfaces.empty()) sweeps_.add_surface_work(surface_work);
    bodies.end_substep();
    clock.lap(times_.moving);
  }
  row_updates_ += substeps * (2 * sweeps_.row_count() + 3 * static_cast<long>(contacts.size()) +
                              2 * joints.row_count() + 2 * between.row_count());
}

// Pair after pair, until none comes fast: so a row of balls passes a hit on.
void SubstepSolver::solve_impacts(Clock& clock) {
  bool has_hit = false, begins = impacts_cross_;
  if (!begins && sweeps_.bounces()) {
    const AsBacked as(backing.own(), bodies);
    begins = sweeps_.find_fast(bodies);
  }
  if (begins) bodies.forget_coming();
  if (begins && impacts_cross_) bodies.find_coming();  // neighbours need it
  // Others than the contacts here change velocities between two passes.
  const bool others_change = impacts_cross_ || !backing.own().empty();
  for (int pass = 0; begins && pass < kImpactPasses; ++pass) {
    bool any = impacts_cross_ && between.impact(bodies, pass == 0);
    clock.lap(times_.between);
    {
      const AsBacked as(backing.own(), bodies, AsBacked::Also::kComing);
      if (others_change) sweeps_.look_at_all();
      any |= sweeps_.impact(bodies);
    }
    clock.lap(times_.sweeps);
    if (impacts_cross_) any = between.any_over_workers(any);
    clock.lap(times_.between);
    if (!any) break;
    has_hit = true;
  }
  // A hit on one body of a cluster is one on all of them.
  if (!backing.bounces() || !between.any_over_workers(has_hit)) return;
  clock.lap(times_.between);
  direct_joints.share_out(bodies, [&] {
    if (sums_joints) direct_joints.add_impulses(joint_sums);
    if (!sums_forces || wrenches.empty()) return;
    row_impulses_.assign(joint_impulses.size(), 0);
    direct_joints.add_impulses(row_impulses_);
    wrenches.add(bodies, row_impulses_);
  });
  clock.lap(times_.direct);
}

void SubstepSolver::add_impacts() {
  sweeps_.add_impacts(contact_sums);
  between.add_impacts(contact_sums);
  if (!sums_forces) return;
  sweeps_.add_impacts(friction_sums);
  between.add_impacts(friction_sums);
}

void SubstepSolver::add_contacts() {
  sweeps_.add_impulses(contact_sums);
  between.add_impulses(contact_sums);
  if (!sums_forces) return;
  sweeps_.add_impulses(friction_sums);
  between.add_impulses(friction_sums);
}

void SubstepSolver::add_wrenches() {
  row_impulses_.assign(joint_impulses.size(), 0);
  joints.add_impulses(row_impulses_);
  direct_joints.add_impulses(row_impulses_);
  between.add_impulses(row_impulses_);
  wrenches.add(bodies, row_impulses_);
}

// The same in all workers: what they decide by it has to be.
Real SubstepSolver::find_overlap(Clock& clock) {
  overlap_ = between.largest_overlap(bodies);
  {
    const AsBacked as(backing.own(), bodies);
    overlap_ = std::max(overlap_, sweeps_.largest_overlap(bodies));
  }
  clock.lap(times_.sweeps);
  overlap_ = between.largest_over_workers(overlap_);
  clock.lap(times_.between);
  return overlap_;
}

}  // namespace lapjoint
