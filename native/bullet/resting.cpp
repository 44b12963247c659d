// Contacts and joints of bodies that sleep: where their impulses stay, and what can be read of them.
#include <algorithm>
#include <cmath>

#include "bullet/substeps.h"

namespace lapjoint {

namespace {

btVector3 vector_of(const Real* from) { return {from[0], from[1], from[2]}; }

}  // namespace

void SubstepWorld::freeze(const std::vector<btPersistentManifold*>& manifolds) {
  Source parts[MANIFOLD_CACHE_SIZE];
  for (btPersistentManifold* manifold : manifolds) {
    const int count = split(*manifold, Source::kThere, parts);
    for (int i = 0; i < count; ++i) {
      const auto kept = std::lower_bound(kept_.begin(), kept_.end(), parts[i].name,
                                         [](const Kept& one, const Name& name) { return one.name < name; });
      const bool same = kept != kept_.end() && kept->name == parts[i].name;
      save_to_points(parts[i], same ? &*kept : nullptr);
    }
  }
}

void SubstepWorld::thaw(const std::vector<btPersistentManifold*>& manifolds) {
  std::vector<Kept> thawed;
  Source parts[MANIFOLD_CACHE_SIZE];
  for (btPersistentManifold* manifold : manifolds) {
    const int count = split(*manifold, Source::kThere, parts);
    for (int i = 0; i < count; ++i) load_from_points(parts[i], thawed);
  }
  const auto by_name = [](const Kept& x, const Kept& y) { return x.name < y.name; };
  std::sort(thawed.begin(), thawed.end(), by_name);
  const auto middle = kept_.insert(kept_.end(), thawed.begin(), thawed.end());
  std::inplace_merge(kept_.begin(), middle, kept_.end(), by_name);
}

// Bodies that sleep are pressed as they were when they fell asleep: a step does what the last one did.
void SubstepWorld::read_resting(btPersistentManifold& manifold, RestingReadings& into) const {
  const auto [number_a, number_b] = manifold_bodies(manifold);
  const std::uint64_t bodies = manifold_key(manifold).first;
  const auto watches = [&](std::uint64_t end) { return end < kStaticBase && watched_touches_.watches(end); };
  if (watches(bodies >> 32) || watches(bodies & 0xFFFFFFFFu)) {
    double impulse = 0, depth = -kStillTouching - 1;
    for (int p = 0; p < manifold.getNumContacts(); ++p) {
      impulse += double(manifold.getContactPoint(p).m_appliedImpulse);
      depth = std::max(depth, -double(manifold.getContactPoint(p).getDistance()));
    }
    const bool touches = impulse > 0 || depth >= 0;
    if (touches || depth >= -kStillTouching) {
      if (!into.touches.empty() && into.touches.back().bodies == bodies)  // another part of a compound
        into.touches.back().touches |= touches;
      else
        into.touches.push_back({bodies, touches});
    }
  }
  if (!solver_.settings.keep_forces) return;
  const double side = number_a < number_b ? 1 : -1, impulse_unit = mass_unit_ * length_unit_;
  Source parts[MANIFOLD_CACHE_SIZE];
  const int count = split(manifold, Source::kThere, parts);
  std::vector<Kept> kept;
  for (int i = 0; i < count; ++i) {
    const Source& source = parts[i];
    btVector3 normal(0, 0, 0);
    for (int p = 0; p < source.count; ++p) normal += manifold.getContactPoint(source.points[p]).m_normalWorldOnB;
    normal.normalize();
    kept.clear();
    load_from_points(source, kept);
    PointReading reading;
    reading.body_a = scene_number(bodies >> 32);
    reading.body_b = scene_number(bodies & 0xFFFFFFFFu);
    for (int k = 0; k < 3; ++k) {
      const double share = side * impulse_unit / source.count;
      reading.normal[k] = side * double(normal[k]);
      reading.friction_impulse[k] = kept.empty() ? 0 : share * double(kept[0].tangential[k]);
      reading.angular_impulse[k] = kept.empty() ? 0 : share * length_unit_ * double(kept[0].angular[k]);
    }
    for (int p = 0; p < source.count; ++p) {
      const btManifoldPoint& point = manifold.getContactPoint(source.points[p]);
      for (int k = 0; k < 3; ++k) reading.point[k] = double(point.getPositionWorldOnB()[k]) * length_unit_;
      reading.depth = -double(point.getDistance()) * length_unit_;
      reading.normal_impulse = double(point.m_appliedImpulse) * impulse_unit;
      into.points.push_back(reading);
    }
  }
}

void SubstepWorld::read_resting(const std::vector<LiveJoint>& joints, const std::vector<const btRigidBody*>& bodies,
                                btScalar timestep, RestingReadings& into) const {
  Bodies resting;
  resting.resize(static_cast<int>(bodies.size()), true);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    resting.start[i] = state_of(*bodies[i]);
    resting.traits[i].inverse_mass = bodies[i]->getInvMass();
    for (int k = 0; k < 3; ++k) resting.traits[i].inverse_inertia[k] = bodies[i]->getInvInertiaDiagLocal()[k];
  }
  std::vector<JointDefinition> definitions;
  for (const LiveJoint& joint : joints) definitions.push_back(define_joint(joint));
  measure_joints(definitions, resting.start, into.measures);
  if (!solver_.settings.keep_forces) return;
  resting.begin(timestep, 1);
  resting.find_poses();
  JointWrenches wrenches;
  wrenches.define(std::move(definitions), axes_);
  wrenches.add(resting, solver_.joint_impulses);
  const double force_unit = mass_unit_ * length_unit_ / double(timestep);
  for (std::size_t i = 0; i < joints.size(); ++i) {
    JointReading& reading = into.joints.emplace_back();
    reading.joint = joints[i].id;
    for (int k = 0; k < 6; ++k)
      reading.wrench[k] = wrenches.sums()[i][k] * (k < 3 ? force_unit : force_unit * length_unit_);
  }
}

void SubstepWorld::set_resting(RestingReadings all) {
  resting_ = std::move(all);
  std::sort(resting_.touches.begin(), resting_.touches.end(),
            [](const auto& x, const auto& y) { return x.bodies < y.bodies; });
}

void SubstepWorld::add_resting(StepMeasures& into) const {
  const StepMeasures& from = resting_.measures;
  into.contact_count += from.contact_count;
  into.contact_point_count += from.contact_point_count;
  into.penetration_sum += from.penetration_sum;
  into.penetration_max = std::max(into.penetration_max, from.penetration_max);
  into.joint_gap_sum += from.joint_gap_sum;
  into.joint_gap_max = std::max(into.joint_gap_max, from.joint_gap_max);
}

std::vector<SubstepWorld::FastBody> SubstepWorld::fast_bodies(btScalar timestep) const {
  std::vector<FastBody> found;
  const auto add = [&](const btRigidBody& body, const btVector3& way, btScalar length, btScalar radius) {
    // What is met may go on as fast as what met it, from the place where that met it.
    const btScalar reach = length + 3 * radius;
    const btVector3 from = body.getWorldTransform().getOrigin(), room(reach, reach, reach);
    found.push_back({body.getBroadphaseHandle()->m_uniqueId, from - room, from + room, from, from + way, radius});
  };
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const btVector3 &linear = bodies_[i]->getLinearVelocity(), &angular = bodies_[i]->getAngularVelocity();
    if (is_fast(thickness_[i], linear, angular, radii_[i], timestep))
      add(*bodies_[i], timestep * (linear + timestep * gravity_),
          timestep * (linear.length() + timestep * gravity_.length() + angular.length() * radii_[i]), radii_[i]);
  }
  for (std::size_t i = 0; i < moving_statics_.size(); ++i) {
    const btVector3 linear = vector_of(solver_.surfaces[i].linear), angular = vector_of(solver_.surfaces[i].angular);
    const btScalar radius = radius_of(*moving_statics_[i]);
    if (is_fast(std::max(thickness_of(*moving_statics_[i]), thinnest_), timestep * linear, timestep * angular, radius,
                1))
      add(*moving_statics_[i], timestep * linear, timestep * (linear.length() + angular.length() * radius), radius);
  }
  return found;
}

}  // namespace lapjoint
