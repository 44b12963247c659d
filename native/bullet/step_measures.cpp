// What is measured of every step, where it happens: nobody has to stop the workers to look.
#include <algorithm>
#include <cmath>

#include "bullet/substeps.h"

namespace lapjoint {

namespace {

using Vector = double[3];

// Where a point of a body is, for the body's place and axes (rows of a matrix).
void anchor(const BodyState& body, const Real* place, Vector& out) {
  for (int k = 0; k < 3; ++k) {
    const Real* row = body.axes + 3 * k;
    out[k] =
        double(body.position[k]) + double(row[0]) * place[0] + double(row[1]) * place[1] + double(row[2]) * place[2];
  }
}

}  // namespace

bool SubstepWorld::is_reported(int owner) const { return owner == kOwn || (owner >= 0 && is_first_[owner]); }

void SubstepWorld::measure_contacts(StepMeasures& into) {
  pairs_.clear();
  const auto count = [&](int points, double depth) {
    into.contact_count += 1;
    into.contact_point_count += points;
    into.penetration_sum += std::max(depth, 0.0);
    into.penetration_max = std::max(into.penetration_max, depth);
  };
  // In the order of their names, on which a sum depends in its last digits: that of the dispatcher is their arrival's.
  for (std::size_t i = 0; i < sorted_.size();) {
    const Source& first = sources_[sorted_[i].second];
    int points = 0;
    Real distance = solver_.contacts[sorted_[i].second].distance[0];
    for (; i < sorted_.size() && sources_[sorted_[i].second].manifold == first.manifold; ++i) {
      const Contact& contact = solver_.contacts[sorted_[i].second];
      points += contact.point_count;
      for (int k = 0; k < contact.point_count; ++k) distance = std::min(distance, contact.distance[k]);
    }
    if (!is_reported(first.owner) || first.ahead != Source::kThere) continue;
    const double depth = -double(distance) * length_unit_;
    const auto is_compound = [](const btCollisionObject* object) { return object->getCollisionShape()->isCompound(); };
    if (is_compound(first.manifold->getBody0()) || is_compound(first.manifold->getBody1()))
      pairs_.push_back({first.name.bodies, points, depth});
    else
      count(points, depth);
  }
  // A compound touches with several parts: they are one contact.
  std::sort(pairs_.begin(), pairs_.end(), [](const MeasuredPair& x, const MeasuredPair& y) {
    return x.bodies < y.bodies || (x.bodies == y.bodies && x.depth > y.depth);
  });
  for (std::size_t i = 0; i < pairs_.size();) {
    const MeasuredPair& first = pairs_[i];
    int points = 0;
    for (; i < pairs_.size() && pairs_[i].bodies == first.bodies; ++i) points += pairs_[i].points;
    count(points, first.depth);
  }
}

void SubstepWorld::measure_joints(const std::vector<JointDefinition>& joints, const std::vector<BodyState>& states,
                                  StepMeasures& into) const {
  for (const JointDefinition& joint : joints) {
    const BodyState &a = states[joint.a], &b = states[joint.b];
    Vector on_a, on_b;
    anchor(a, joint.place_a, on_a);
    anchor(b, joint.place_b, on_b);
    double apart[3], sum = 0;
    for (int k = 0; k < 3; ++k) apart[k] = on_a[k] - on_b[k];
    if (columns_.kind[joint.id] == JointColumns::kDistance) {
      const std::size_t at = 6 * static_cast<std::size_t>(joint.id);
      const double length = std::hypot(apart[0], apart[1], apart[2]);
      const double gap =
          length - std::clamp(length, columns_.lower[at] / length_unit_, columns_.upper[at] / length_unit_);
      sum = gap * gap;
    } else if (joint.is_point()) {
      for (int k = 0; k < 3; ++k) sum += apart[k] * apart[k];
    } else {
      // In b's joint frame; what is within the limits is no gap, and a spring has none.
      double in_b[3];
      for (int k = 0; k < 3; ++k) in_b[k] = b.axes[k] * apart[0] + b.axes[3 + k] * apart[1] + b.axes[6 + k] * apart[2];
      for (int axis = 0; axis < 3; ++axis) {
        const std::size_t at = 6 * static_cast<std::size_t>(joint.id) + axis;
        if (columns_.spring_stiffness[at] > 0) continue;
        double offset = 0;
        for (int k = 0; k < 3; ++k) offset += joint.axes_b[3 * k + axis] * in_b[k];
        offset -= std::clamp(offset, columns_.lower[at] / length_unit_, columns_.upper[at] / length_unit_);
        sum += offset * offset;
      }
    }
    const double gap = std::sqrt(sum) * length_unit_;
    into.joint_gap_sum += gap;
    into.joint_gap_max = std::max(into.joint_gap_max, gap);
  }
}

void SubstepWorld::measure_mail(const Mailboxes& mailboxes) {
  measures_.back().exchanges = static_cast<double>(mailboxes.counts().exchanges);
  measures_.back().sent_bytes = static_cast<double>(mailboxes.counts().bytes);
}

// Impulses of a bond's six rows in a step, as it bears them: they follow those of this step as fast as its time lets
// them, and are kept with its impulses.
const Real* SubstepWorld::smoothed_load(int joint, btScalar timestep) {
  const Real* sums = &solver_.joint_sums[first_impulse_[joint]];
  if (!columns_.bonds.keeps_load(joint)) return sums;
  Real* kept = &solver_.joint_impulses[first_impulse_[joint + 1] - kLoadValues];
  const Real share = Real(-std::expm1(-double(timestep) / columns_.bonds.load_time[joint]));
  for (int k = 0; k < kLoadValues; ++k) kept[k] += share * (sums[k] - kept[k]);
  return kept;
}

// Rows along are the world's axes; those about are the face's.
bool SubstepWorld::breaks(const JointDefinition& bond, const Real* sums, double force_unit) const {
  const Real* axes = solver_.bodies.start[bond.b].axes;
  double force[3] = {0, 0, 0}, torque[3];
  for (int axis = 0; axis < 3; ++axis) {
    for (int k = 0; k < 3; ++k) {
      double along = 0;
      for (int i = 0; i < 3; ++i) along += double(axes[3 * k + i]) * bond.axes_b[3 * i + axis];
      force[axis] += along * double(sums[k]) * force_unit;
    }
    torque[axis] = double(sums[3 + axis]) * force_unit * length_unit_;
  }
  return columns_.bonds.breaks(bond.id, force, torque);
}

std::vector<SubstepWorld::Overload> SubstepWorld::find_overloads(btScalar timestep) {
  std::vector<Overload> found;
  const double force_unit = mass_unit_ * length_unit_ / double(timestep), torque_unit = force_unit * length_unit_;
  for (const Breakable& one : breakable_) {
    const JointDefinition& joint = one.joint;
    const bool is_bond = joint.bond != JointDefinition::kNoBond;
    const Real* sums = is_bond ? smoothed_load(joint.id, timestep) : &solver_.joint_sums[joint.first_impulse];
    double squares[2] = {0, 0};  // along, about
    for (int axis = 0; axis < 6; ++axis) squares[axis / 3] += double(sums[axis]) * double(sums[axis]);
    for (int k = 0; k < joint.axis_count; ++k) {
      const double impulse = sums[6 + k];
      squares[axes_[joint.first_axis + k].is_angular()] += impulse * impulse;
    }
    const double force = std::sqrt(squares[0]) * force_unit, torque = std::sqrt(squares[1]) * torque_unit;
    const bool is_too_much = is_bond
                                 ? breaks(joint, sums, force_unit)
                                 : force > columns_.break_force[joint.id] || torque > columns_.break_torque[joint.id];
    if (is_too_much)
      found.push_back({{double(measures_.size()) - 1, double(joint.id), force, torque}, one.is_reported});
  }
  return found;
}

void SubstepWorld::find_hits(const double* thresholds, std::vector<Hit>& into) {
  if (!finds_hits_) return;
  const auto threshold = [&](std::uint64_t bodies) {
    const std::uint64_t a = bodies >> 32, b = bodies & 0xFFFFFFFFu;  // the second may be static
    return b < kStaticBase ? std::min(thresholds[a], thresholds[b]) : thresholds[a];
  };
  std::vector<int>& wanted = wanted_sources_;
  wanted.clear();
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (is_reported(sources_[i].owner) && !std::isinf(threshold(sources_[i].name.bodies)))
      wanted.push_back(static_cast<int>(i));
  sort_by_bodies(wanted);
  // Bodies touch with several parts and normals: they are one contact.
  for (std::size_t i = 0; i < wanted.size();) {
    const std::uint64_t bodies = sources_[wanted[i]].name.bodies;
    Hit hit{};
    for (; i < wanted.size() && sources_[wanted[i]].name.bodies == bodies; ++i) add_to_hit(wanted[i], hit);
    if (hit.impulse == 0 || hit.impulse < threshold(bodies)) continue;
    hit.step = static_cast<double>(measures_.size() - 1);
    hit.body_a = scene_number(bodies >> 32);
    hit.body_b = scene_number(bodies & 0xFFFFFFFFu);
    const double length = std::hypot(hit.normal[0], hit.normal[1], hit.normal[2]);
    for (int k = 0; k < 3; ++k) {
      hit.point[k] /= hit.impulse;
      if (length > 0) hit.normal[k] /= length;
    }
    into.push_back(hit);
  }
}

// Its impulse, and times that its points and normal.
void SubstepWorld::add_to_hit(int source, Hit& hit) const {
  const Contact& contact = solver_.contacts[source];
  const double side = first_side(source);
  const btVector3 met = met_of(source);
  for (int p = 0; p < contact.point_count; ++p) {
    const double impulse = double(solver_.contact_sums[source][p]) * mass_unit_ * length_unit_;
    hit.impulse += impulse;
    for (int k = 0; k < 3; ++k) {
      hit.point[k] += impulse * double(contact.place[p][k] + met[k]) * length_unit_;
      hit.normal[k] += impulse * side * double(contact.normal[k]);
    }
  }
}

}  // namespace lapjoint
