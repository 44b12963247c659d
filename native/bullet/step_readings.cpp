// What can be read of a step after it: forces of joints, contact points with their impulses, and who touches whom.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "assertions.h"
#include "bullet/substeps.h"

namespace lapjoint {

// ---- forces --------------------------------------------------------------------------------------------------------

void SubstepWorld::set_sums(bool keeps) {
  solver_.sums_forces = keeps;
  solver_.sums_contacts = finds_hits_ || finds_touches_ || finds_slides() || keeps;
}

void SubstepWorld::keep_forces(btScalar timestep) {
  const double force_unit = mass_unit_ * length_unit_ / double(timestep);
  kept_joints_.clear();
  const std::vector<JointDefinition>& joints = solver_.wrenches.joints();
  for (std::size_t i = 0; i < joints.size(); ++i) {
    JointReading& reading = kept_joints_.emplace_back();
    reading.joint = joints[i].id;
    for (int k = 0; k < 6; ++k)
      reading.wrench[k] = solver_.wrenches.sums()[i][k] * (k < 3 ? force_unit : force_unit * length_unit_);
  }
  kept_joints_.insert(kept_joints_.end(), resting_.joints.begin(), resting_.joints.end());
  std::sort(kept_joints_.begin(), kept_joints_.end(),
            [](const JointReading& x, const JointReading& y) { return x.joint < y.joint; });

  std::vector<int>& wanted = wanted_sources_;
  wanted.clear();
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (is_reported(sources_[i].owner)) wanted.push_back(static_cast<int>(i));
  sort_by_bodies(wanted);
  kept_points_.clear();
  const double impulse_unit = mass_unit_ * length_unit_;
  for (const int source : wanted) {
    const Contact& contact = solver_.contacts[source];
    const FrictionImpulses& friction = solver_.friction_sums[source];
    const PointImpulses& normal = solver_.contact_sums[source];
    const bool is_ahead = sources_[source].ahead != Source::kThere;
    const auto end = normal.begin() + contact.point_count;
    if (is_ahead && std::all_of(normal.begin(), end, [](Real one) { return one == 0; }))
      continue;  // nothing has come of it
    const double side = first_side(source), share = 1.0 / contact.point_count;
    PointReading reading;
    reading.body_a = scene_number(sources_[source].name.bodies >> 32);
    reading.body_b = scene_number(sources_[source].name.bodies & 0xFFFFFFFFu);
    for (int k = 0; k < 3; ++k) {
      reading.normal[k] = side * double(contact.normal[k]);
      reading.friction_impulse[k] = side * share * impulse_unit * double(friction.tangential[k]);
      reading.angular_impulse[k] = side * share * impulse_unit * length_unit_ * double(friction.angular[k]);
    }
    const btVector3 met = met_of(source);
    for (int p = 0; p < contact.point_count; ++p) {
      for (int k = 0; k < 3; ++k) reading.point[k] = double(contact.place[p][k] + met[k]) * length_unit_;
      reading.depth = is_ahead ? 0 : -double(contact.distance[p]) * length_unit_;
      reading.normal_impulse = double(normal[p]) * impulse_unit;
      kept_points_.push_back(reading);
    }
  }
  if (resting_.points.empty()) return;
  kept_points_.insert(kept_points_.end(), resting_.points.begin(), resting_.points.end());
  const auto order = [](const PointReading& point) {  // static bodies come after all others
    const double b = point.body_b;
    return std::tuple(point.body_a, b < 0, b < 0 ? -b : b);
  };
  std::stable_sort(kept_points_.begin(), kept_points_.end(),
                   [&](const PointReading& x, const PointReading& y) { return order(x) < order(y); });
}

void SubstepWorld::sort_by_bodies(std::vector<int>& sources) {
  std::vector<std::pair<std::uint64_t, int>>& keyed = keyed_sources_;  // in one piece: names lie far apart
  keyed.clear();
  for (const int source : sources) keyed.emplace_back(sources_[source].name.bodies, source);
  // A body that comes to another within the step may do so with its surface and with its core: both have one name.
  const auto rest = [this](int source) {
    const Source& one = sources_[source];
    return std::tie(one.name.parts, one.name.part, one.ahead);
  };
  std::sort(keyed.begin(), keyed.end(), [&](const auto& x, const auto& y) {
    return x.first != y.first ? x.first < y.first : rest(x.second) < rest(y.second);
  });
  for (std::size_t i = 0; i < keyed.size(); ++i) sources[i] = keyed[i].second;
}

// From a contact's places to where they are when its bodies meet: nothing, but for those that come within the step.
btVector3 SubstepWorld::met_of(int source) const {
  const int ahead = sources_[source].ahead;
  return ahead == Source::kThere ? btVector3(0, 0, 0) : ahead_->contacts[ahead].met;
}

// A contact's normal pushes the manifold's first body: 1 where that is the first of its bodies' numbers, else -1.
double SubstepWorld::first_side(int source) const {
  const auto [number_a, number_b] = manifold_bodies(*sources_[source].manifold);
  return number_a < number_b ? 1 : -1;
}

// ---- touches -------------------------------------------------------------------------------------------------------

static btVector3 vector_of(const Real* from) { return {from[0], from[1], from[2]}; }

// Bodies still have the velocities that the step began with.
double SubstepWorld::approach(int source) const {
  const Contact& contact = solver_.contacts[source];
  double fastest = 0;
  for (int p = 0; p < contact.point_count; ++p) {
    const btVector3 place(contact.place[p][0], contact.place[p][1], contact.place[p][2]);
    const btVector3 shift =
        contact.shift == Contact::kHere ? btVector3(0, 0, 0) : vector_of(solver_.shifts[contact.shift].by);
    const auto velocity = [&](int at) -> btVector3 {
      if (at < static_cast<int>(bodies_.size())) {
        const btVector3 from = bodies_[at]->getCenterOfMassPosition();
        return bodies_[at]->getVelocityInLocalPoint(place - (at == contact.a ? from + shift : from));
      }
      if (contact.surface == Contact::kStill) return {0, 0, 0};
      const Surface& surface = solver_.surfaces[contact.surface];
      return vector_of(surface.linear) + vector_of(surface.angular).cross(place - vector_of(surface.position));
    };
    const btVector3 normal(contact.normal[0], contact.normal[1], contact.normal[2]);
    fastest = std::max(fastest, -double(normal.dot(velocity(contact.a) - velocity(contact.b))));
  }
  return fastest * length_unit_;
}

void SubstepWorld::find_touches() {
  const bool is_first = measures_.size() == 1;
  if (is_first) touching_.clear();
  if (!finds_touches_) return;
  std::vector<int>& wanted = wanted_sources_;
  wanted.clear();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::uint64_t a = sources_[i].name.bodies >> 32, b = sources_[i].name.bodies & 0xFFFFFFFFu;
    const bool watched = watched_touches_.watches(a) || (b < kStaticBase && watched_touches_.watches(b));
    if (watched && is_reported(sources_[i].owner)) wanted.push_back(static_cast<int>(i));
  }
  sort_by_bodies(wanted);
  std::vector<Touching> now;
  std::size_t before = 0, resting = 0;
  const double step = static_cast<double>(measures_.size() - 1);
  const auto report = [&](std::uint64_t bodies, int kind, double speed) {
    touches_.push_back(
        {step, double(scene_number(bodies >> 32)), double(scene_number(bodies & 0xFFFFFFFFu)), double(kind), speed});
  };
  const auto end_up_to = [&](std::uint64_t bodies) {
    for (; before < touching_.size() && touching_[before].bodies < bodies; ++before)
      report(touching_[before].bodies, Touch::kEnd, 0);
  };
  const auto go_on = [&](std::uint64_t bodies, bool touches, double speed) {
    end_up_to(bodies);
    const bool known = before < touching_.size() && touching_[before].bodies == bodies;
    const bool is_sure = known && touching_[before].is_sure;
    before += known;
    if (touches && !is_sure) report(bodies, Touch::kBegin, speed);
    if (!touches && is_first) report(bodies, Touch::kNear, 0);
    if (touches || known || is_first) now.push_back({bodies, touches || is_sure});
  };
  const auto rest_up_to = [&](std::uint64_t bodies) {
    for (; resting < resting_.touches.size() && resting_.touches[resting].bodies < bodies; ++resting)
      go_on(resting_.touches[resting].bodies, resting_.touches[resting].touches, 0);
  };
  for (std::size_t i = 0; i < wanted.size();) {
    const std::uint64_t bodies = sources_[wanted[i]].name.bodies;
    double impulse = 0, depth = -kStillTouching - 1, speed = 0;
    for (; i < wanted.size() && sources_[wanted[i]].name.bodies == bodies; ++i) {
      const Contact& contact = solver_.contacts[wanted[i]];
      for (int p = 0; p < contact.point_count; ++p) {
        impulse += double(solver_.contact_sums[wanted[i]][p]);
        depth = std::max(depth, -double(contact.distance[p]));
      }
      speed = std::max(speed, approach(wanted[i]));
    }
    const bool touches = impulse > 0 || depth >= 0;
    if (!touches && depth < -kStillTouching) continue;
    rest_up_to(bodies);
    go_on(bodies, touches, speed);
  }
  rest_up_to(~std::uint64_t(0));
  end_up_to(~std::uint64_t(0));
  LAPJOINT_ASSERT(
      std::is_sorted(now.begin(), now.end(), [](const Touching& x, const Touching& y) { return x.bodies < y.bodies; }));
  touching_.swap(now);
}

// ---- slides --------------------------------------------------------------------------------------------------------

// Bodies still have the velocities that the step began with; those that it ends with are the solver's. The arms are
// those of its begin for both.
btVector3 SubstepWorld::velocity_at(int source, int point, bool ends) const {
  const Contact& contact = solver_.contacts[source];
  const btVector3 place = vector_of(contact.place[point]);
  const btVector3 shift =
      contact.shift == Contact::kHere ? btVector3(0, 0, 0) : vector_of(solver_.shifts[contact.shift].by);
  const auto velocity = [&](int at) -> btVector3 {
    if (at < static_cast<int>(bodies_.size())) {
      const btVector3 from = bodies_[at]->getCenterOfMassPosition();
      const btVector3 arm = place - (at == contact.a ? from + shift : from);
      if (!ends) return bodies_[at]->getVelocityInLocalPoint(arm);
      const BodyState& state = solver_.bodies.start[at];
      return vector_of(state.linear) + vector_of(state.angular).cross(arm);
    }
    if (contact.surface == Contact::kStill) return {0, 0, 0};
    const Surface& surface = ends ? solver_.surfaces[contact.surface] : earlier_surfaces_[contact.surface];
    const btVector3 arm = place - vector_of(surface.position);
    return vector_of(surface.linear) + vector_of(surface.surface_linear) +
           (vector_of(surface.angular) + vector_of(surface.surface_angular)).cross(arm);
  };
  return velocity(contact.a) - velocity(contact.b);
}

// Of the fastest point across the normal [m/s].
double SubstepWorld::sliding_speed(int source, bool ends) const {
  const Contact& contact = solver_.contacts[source];
  const btVector3 normal = vector_of(contact.normal);
  double fastest = 0;
  for (int p = 0; p < contact.point_count; ++p) {
    const btVector3 velocity = velocity_at(source, p, ends);
    fastest = std::max(fastest, double((velocity - normal * normal.dot(velocity)).length()));
  }
  return fastest * length_unit_;
}

void SubstepWorld::find_slides() {
  std::vector<int>& wanted = wanted_sources_;
  wanted.clear();
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (is_reported(sources_[i].owner)) wanted.push_back(static_cast<int>(i));
  sort_by_bodies(wanted);
  // Bodies touch with several parts and normals: they are one contact.
  for (std::size_t i = 0; i < wanted.size();) {
    const std::uint64_t bodies = sources_[wanted[i]].name.bodies;
    Hit mean{};
    double before = 0, after = 0;
    for (; i < wanted.size() && sources_[wanted[i]].name.bodies == bodies; ++i) {
      const PointImpulses& sums = solver_.contact_sums[wanted[i]];
      const auto end = sums.begin() + solver_.contacts[wanted[i]].point_count;
      if (std::all_of(sums.begin(), end, [](Real one) { return one == 0; })) continue;  // near, but apart
      add_to_hit(wanted[i], mean);
      before = std::max(before, sliding_speed(wanted[i], false));
      after = std::max(after, sliding_speed(wanted[i], true));
    }
    if (before > slide_speed_ || after <= slide_speed_) continue;
    Slide slide{double(measures_.size() - 1),
                double(scene_number(bodies >> 32)),
                double(scene_number(bodies & 0xFFFFFFFFu)),
                {},
                {},
                0};
    const double length = std::hypot(mean.normal[0], mean.normal[1], mean.normal[2]);
    for (int k = 0; k < 3; ++k) {
      slide.point[k] = mean.point[k] / mean.impulse;
      slide.normal[k] = length > 0 ? mean.normal[k] / length : 0;
    }
    slide.speed = after;
    slides_.push_back(slide);
  }
}

}  // namespace lapjoint
