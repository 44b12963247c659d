#include "bullet/surges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "assertions.h"
#include "bullet/exchange_numbers.h"
#include "bullet/world.h"
#include "substeps/stance.h"
#include "substeps/union_find.h"

namespace lapjoint {

// ---- what a worker finds by itself
// -----------------------------------------------------------------------------------

void SubstepWorld::set_energy_limits() {
  const Real standard = Real(kStandardGravity / length_unit_), gravity = gravity_.length();
  const Real share = Real(kSurgeShare) * (gravity > 0 ? gravity : standard);
  energy_limits_.resize(bodies_.size());
  for (std::size_t i = 0; i < bodies_.size(); ++i)
    energy_limits_[i] = ghost_of_[i] == kOwn ? share * 2 * radii_[i] / bodies_[i]->getInvMass() : kNoLimit;
}

// Most steps end here: the gains of an island are beyond its limit only if those of one of its bodies are.
bool SubstepWorld::some_body_rises() const {
  const Real* gain = solver_.bodies.gain.data();
  for (std::size_t i = 0; i < energy_limits_.size(); ++i)
    if (gain[i] > energy_limits_[i]) return true;
  return false;
}

// How far an axis is from where it wants to be.
double SubstepWorld::axis_error(const JointDefinition& joint, const AxisDefinition& axis, const JointRow& row) const {
  if (axis.axis == AxisDefinition::kGear) return 0;
  const double at = row.error;
  return (axis.counted ? counted_angle(at, solver_.joint_impulses[joint.kept_place()]) : at) - double(axis.value);
}

// What motors, drives and springs of a joint may have done for its bodies. A motor or drive does work by moving at its
// speed: what it does besides to come to that takes energy. A spring gives what was in it.
double SubstepWorld::driven_work(const JointDefinition& joint, const Bodies& begin) const {
  double work = 0;
  for (int k = 0; k < joint.axis_count; ++k) {
    const AxisDefinition& axis = axes_[joint.first_axis + k];
    const double impulse = solver_.joint_sums[joint.first_impulse + 6 + k];
    if (axis.kind == AxisDefinition::kMotor) work += std::max(0.0, impulse * double(axis.value));
    if (axis.kind != AxisDefinition::kSpring && axis.kind != AxisDefinition::kDrive) continue;
    const double before = axis_error(joint, axis, JointSweeps::row_of_axis(joint, axis, begin));
    const double after = axis_error(joint, axis, JointSweeps::row_of_axis(joint, axis, solver_.bodies));
    double given = 0.5 * double(axis.stiffness) * (before * before - after * after);
    if (axis.kind == AxisDefinition::kDrive) {
      // A stiff one does what it did on its way, whatever a spring of its stiffness would have had in it.
      const double way = after - before;
      if (!std::isinf(axis.force)) given = std::min(given, double(axis.force) * std::abs(way));
      given = std::max(given, impulse * way / double(timestep_));
      work += std::max(0.0, impulse * double(axis.velocity));
    }
    work += std::max(0.0, given);
  }
  return work;
}

// What a joint with a gap, as where it starts with one, may leave its bodies: what they move with that close it in a
// step. Angles are closed no faster than solvers do that.
double SubstepWorld::joint_return(const JointDefinition& joint, const Bodies& begin) const {
  const double root_a = begin.frame[joint.a].root[0], root_b = begin.frame[joint.b].root[0];
  double given = 0;
  const auto add = [&](const JointRow& row, double apart) {
    double response = 0, straight = 0;
    for (int i = 0; i < 3; ++i) {
      const double along = row.along[i], own_a = row.own_a[i], own_b = row.own_b[i];
      straight += along * along;
      response += along * along * (root_a * root_a + root_b * root_b) + own_a * own_a + own_b * own_b;
    }
    if (straight == 0) apart = std::min(std::abs(apart), kMostClosed);
    const double speed = apart / double(timestep_);
    if (response > 0) given += 0.5 * speed * speed / response;
  };
  JointRow rows[6];
  const int count = JointSweeps::rows_of(joint, begin, rows);
  for (int k = 0; k < count; ++k) add(rows[k], rows[k].error);
  for (int k = 0; k < joint.axis_count; ++k) {
    const AxisDefinition& axis = axes_[joint.first_axis + k];
    if (!axis.is_limit() && axis.kind != AxisDefinition::kEqual) continue;
    const JointRow row = JointSweeps::row_of_axis(joint, axis, begin);
    const double beyond = axis_error(joint, axis, row);
    add(row, axis.is_limit() ? std::min(0.0, double(axis.sign()) * beyond) : beyond);
  }
  return given;
}

// What a contact may give back: what it took in the last step, for a step starts from the impulses of that one and may
// be over before it has taken them all back; and what it leaves bodies that it pushes apart.
double SubstepWorld::contact_return(std::size_t number) const {
  const Contact& contact = solver_.contacts[number];
  const Source& source = sources_[number];
  double impulse = 0;
  bool overlaps = false;
  for (int k = 0; k < source.count; ++k) {
    impulse += source.manifold->getContactPoint(source.points[k]).m_appliedImpulse;  // not yet that of this step
    overlaps |= contact.distance[k] < 0;
  }
  const double push = overlaps ? double(solver_.settings.push_speed) : 0.0;
  double given = 0;
  for (const int place : {contact.a, contact.b}) {
    const double inverse_mass = solver_.bodies.traits[place].inverse_mass;
    if (inverse_mass > 0) given += 0.5 * (impulse * impulse * inverse_mass + push * push / inverse_mass);
  }
  return given;
}

// Parts of islands that rise here, and with `all_crossing` those besides that other workers have a part of.
std::vector<IslandPart> SubstepWorld::find_parts(bool all_crossing) const {
  const std::size_t count = bodies_.size();
  const int fixed = static_cast<int>(count);
  UnionFind groups(count + 1);
  for (const Contact& contact : solver_.contacts)
    if (contact.a != fixed && contact.b != fixed) groups.unite(contact.a, contact.b);
  for (const auto& [a, b] : joint_ends_) groups.unite(a, b);
  std::vector<int> root(count);
  std::vector<double> gain(count, 0.0), limit(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    root[i] = groups.find(static_cast<int>(i));
    if (ghost_of_[i] != kOwn) continue;
    gain[root[i]] += double(solver_.bodies.gain[i]);
    limit[root[i]] += double(energy_limits_[i]) + kMovingShare * double(kinetic_energy(solver_.bodies.motion[i]));
  }
  const auto root_of = [&](int a, int b) { return root[a == fixed ? b : a]; };
  const auto counts = [&](int at) { return all_crossing || gain[at] > limit[at]; };
  if (!all_crossing && std::none_of(root.begin(), root.end(), counts)) return {};
  // What explains it, looked into where there is something to explain.
  for (std::size_t i = 0; i < solver_.contacts.size(); ++i) {
    const Contact& contact = solver_.contacts[i];
    const int at = root_of(contact.a, contact.b);
    if (!counts(at)) continue;
    if (!solver_.surface_work.empty()) gain[at] -= std::max(Real(0), solver_.surface_work[i]);
    if (is_reported(sources_[i].owner)) gain[at] -= contact_return(i);
  }
  if (!measured_joints_.empty()) {
    Bodies begin = solver_.bodies;
    for (std::size_t i = 0; i < count; ++i) {
      const BodyState state = state_of(*bodies_[i]);  // not yet that of this step
      std::copy_n(state.position, 3, begin.pose[i].position);
      std::copy_n(state.axes, 9, begin.pose[i].axes);
    }
    begin.pose[fixed] = {{0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (const JointDefinition& joint : measured_joints_)
      if (const int at = root_of(joint.a, joint.b); counts(at)) gain[at] -= joint_return(joint, begin);
    for (const JointDefinition& joint : driven_)
      if (const int at = root_of(joint.a, joint.b); counts(at)) gain[at] -= driven_work(joint, begin);
  }
  std::vector<int> part_of(count, -1);
  std::vector<IslandPart> parts;
  const auto is_border = [this](std::size_t place) {
    return std::any_of(is_border_.begin(), is_border_.end(), [&](const std::vector<char>& of) { return of[place]; });
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (!counts(root[i])) continue;
    int& at = part_of[root[i]];
    const int number = bodies_[i]->getUserIndex();
    if (at < 0) {
      at = static_cast<int>(parts.size());
      parts.push_back({kNobody, gain[root[i]], limit[root[i]], {}, {}, {}});
    }
    IslandPart& part = parts[at];
    if (ghost_of_[i] != kOwn) {
      part.ghosts.push_back(number);
      continue;
    }
    if (part.label == kNobody) part.label = number;
    if (is_border(i)) part.border.push_back(number);
    if (solver_.bodies.gain[i] > energy_limits_[i]) part.bodies.push_back(number);
  }
  std::erase_if(parts,
                [](const IslandPart& part) { return part.label == kNobody || !(part.rises() || part.crosses()); });
  return parts;
}

// ---- together
// ---------------------------------------------------------------------------------------------------------

namespace {

void put_double(double value, std::vector<std::int32_t>& into) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  into.push_back(static_cast<std::int32_t>(bits >> 32));
  into.push_back(static_cast<std::int32_t>(bits & 0xFFFFFFFFu));
}

double get_double(const std::int32_t* from) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(from[0])) << 32 |
                               static_cast<std::uint32_t>(from[1]));
}

// Islands across workers as a whole, in their parts here: all workers come to the same sums.
void join_parts(Mailboxes& mailboxes, std::vector<IslandPart>& own) {
  std::vector<std::int32_t> message;
  std::vector<int> sent;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const IslandPart& part = own[i];
    if (!part.crosses()) continue;
    sent.push_back(static_cast<int>(i));
    message.insert(message.end(), {part.label, static_cast<std::int32_t>(part.border.size()),
                                   static_cast<std::int32_t>(part.ghosts.size())});
    put_double(part.gain, message);
    put_double(part.limit, message);
    message.insert(message.end(), part.border.begin(), part.border.end());
    message.insert(message.end(), part.ghosts.begin(), part.ghosts.end());
  }
  struct Sent {
    int worker, label;
    double gain, limit;
    const std::int32_t *ghosts, *end;
  };
  std::vector<Sent> all;
  std::map<int, int> part_of;  // of each border body
  const auto messages = exchange_numbers(mailboxes, message);
  for (int worker = 0; worker < static_cast<int>(messages.size()); ++worker) {
    const std::int32_t *at = messages[worker].data(), *end = at + messages[worker].size();
    while (at < end) {
      const std::int32_t* border = at + 7;
      const std::int32_t *ghosts = border + at[1], *next = ghosts + at[2];
      LAPJOINT_ASSERT(next <= end);
      for (const std::int32_t* id = border; id < ghosts; ++id) part_of[*id] = static_cast<int>(all.size());
      all.push_back({worker, at[0], get_double(at + 3), get_double(at + 5), ghosts, next});
      at = next;
    }
  }
  UnionFind joined(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const std::int32_t* ghost = all[i].ghosts; ghost < all[i].end; ++ghost)
      if (const auto owner = part_of.find(*ghost); owner != part_of.end())
        joined.unite(static_cast<int>(i), owner->second);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int root = joined.find(static_cast<int>(i));  // at most i
    if (root == static_cast<int>(i)) continue;
    all[root].gain += all[i].gain;
    all[root].limit += all[i].limit;
    all[root].label = std::min(all[root].label, all[i].label);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].worker != mailboxes.self()) continue;
    const Sent& whole = all[joined.find(static_cast<int>(i))];
    IslandPart& part = own[sent[next++]];
    part.label = whole.label;
    part.gain = whole.gain;
    part.limit = whole.limit;
  }
  LAPJOINT_ASSERT(next == sent.size());
}

}  // namespace

unsigned BulletWorld::find_rising() {
  rising_.clear();
  if (!settings_.finds_surges || !substeps_->some_body_rises()) return 0;
  rising_ = substeps_->find_parts(false);
  const bool some_cross =
      std::any_of(rising_.begin(), rising_.end(), [](const IslandPart& one) { return one.crosses(); });
  return some_cross ? kRises : 0;
}

void BulletWorld::find_surges(Mailboxes* mailboxes) {
  if (mailboxes) {
    rising_ = substeps_->find_parts(true);
    mailboxes->even_out();
    join_parts(*mailboxes, rising_);
  }
  const double step = static_cast<double>(substeps_->measures().size() - 1);
  const double unit = settings_.mass_unit * settings_.length_unit * settings_.length_unit;
  for (const IslandPart& part : rising_)
    for (const int body : part.rises() ? part.bodies : std::vector<int>())
      surges_.push_back(
          {step, static_cast<double>(body), static_cast<double>(part.label), part.gain * unit, part.limit * unit});
}

}  // namespace lapjoint
