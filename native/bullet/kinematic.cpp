// Kinematic bodies: static bodies that move as they are told, whatever touches them, and those whose surfaces do.
//
// Where one is at the begin and at the end of a step follows from the step's number alone. Contacts are found where it
// is at the begin; within the step it has the velocity that leads to its end.
#include <algorithm>
#include <stdexcept>

#include "assertions.h"
#include "bullet/frames.h"
#include "bullet/world.h"

namespace lapjoint {

BulletWorld::Kinematic& BulletWorld::kinematic(int number) {
  if (!substeps_) throw std::invalid_argument("kinematic bodies need the solver substeps");
  if (number < 0 || number >= static_cast<int>(statics_.size()))
    throw std::invalid_argument("static body " + std::to_string(number) + " does not exist");
  const auto at = std::lower_bound(kinematic_.begin(), kinematic_.end(), number,
                                   [](const Kinematic& body, int value) { return body.number < value; });
  if (at != kinematic_.end() && at->number == number) return *at;
  Kinematic& made = *kinematic_.insert(at, Kinematic{});
  made.number = number;
  LAPJOINT_ASSERT(std::is_sorted(kinematic_.begin(), kinematic_.end(),
                                 [](const Kinematic& x, const Kinematic& y) { return x.number < y.number; }));
  return made;
}

void BulletWorld::set_motion(int number, GivenMotion motion) {
  const std::size_t size = motion.values.size();
  const bool fits = motion.kind == GivenMotion::kRest               ? size == 0
                    : motion.kind == GivenMotion::kConstantVelocity ? size == 6
                    : motion.kind == GivenMotion::kRotation         ? size == 4 || size == 7
                    : motion.kind == GivenMotion::kOscillation      ? size == 8
                    : motion.kind == GivenMotion::kKeyframes        ? size > 8 && size % 8 == 1
                                                                    : false;
  if (!fits) throw std::invalid_argument("the motion of static body " + std::to_string(number) + " is none");
  kinematic(number).motion = std::move(motion);
}

void BulletWorld::set_surface_velocity(int number, const std::array<double, 6>& velocity) {
  kinematic(number).surface_velocity = velocity;
}

void BulletWorld::set_step(std::int64_t step, double timestep) {
  step_ = step;
  for (Kinematic& body : kinematic_) place_kinematic(body, body.motion.at(step, timestep));
}

std::vector<Place> BulletWorld::kinematic_places() const {
  std::vector<Place> places;
  for (const Kinematic& body : kinematic_) places.push_back(body.now);
  return places;
}

void BulletWorld::set_kinematic_places(const std::vector<Place>& places) {
  if (places.size() != kinematic_.size())
    throw std::invalid_argument(std::to_string(places.size()) + " places for " + std::to_string(kinematic_.size()) +
                                " kinematic bodies");
  for (std::size_t i = 0; i < places.size(); ++i) place_kinematic(kinematic_[i], places[i]);
}

void BulletWorld::place_kinematic(Kinematic& body, const Place& place) {
  body.now = place;
  btRigidBody& moved = *statics_[body.number].body;
  const btTransform at(quaternion(place.quaternion), length(place.position));
  if (at == moved.getWorldTransform()) return;
  for (const int label : thaw_static(body.number)) {
    woken_.push_back(label);
    wake_island(label);
  }
  moved.setWorldTransform(at);
  moved.setInterpolationWorldTransform(at);
  btVector3 low, high;
  bounds(moved, low, high);
  broadphase_.setAabb(moved.getBroadphaseHandle(), low, high, &dispatcher_);
  world_->forget_prepared();
}

void BulletWorld::begin_kinematic_step(double timestep) {
  if (kinematic_.empty()) return;
  std::vector<int> numbers;
  std::vector<const btRigidBody*> bodies;
  std::vector<Surface> surfaces, earlier;
  const double unit = settings_.length_unit;
  const auto put = [](const double* from, double scale, Real* into) {
    for (int k = 0; k < 3; ++k) into[k] = Real(from[k] / scale);
  };
  for (Kinematic& body : kinematic_) {
    body.next = body.motion.at(step_ + 1, timestep);
    double linear[3], angular[3], along[3], about[3];
    velocity_between(body.now, body.next, timestep, linear, angular);
    rotate(body.now.quaternion, body.surface_velocity.data(), along);
    rotate(body.now.quaternion, body.surface_velocity.data() + 3, about);
    numbers.push_back(body.number);
    bodies.push_back(statics_[body.number].body.get());
    Surface& surface = surfaces.emplace_back();
    put(body.now.position, unit, surface.position);
    put(linear, unit, surface.linear);
    put(angular, 1, surface.angular);
    put(along, unit, surface.surface_linear);
    put(about, 1, surface.surface_angular);
    if (substeps_->finds_slides()) {
      double linear_before[3], angular_before[3];
      const bool has_moved = step_ > body.motion.start;  // else it was at rest
      const Place before = has_moved ? body.motion.at(step_ - 1, timestep) : body.now;
      velocity_between(before, body.now, timestep, linear_before, angular_before);
      put(linear_before, unit, earlier.emplace_back(surface).linear);
      put(angular_before, 1, earlier.back().angular);
    }
    const double* velocities[] = {linear, angular, along, about};
    const bool moves = std::any_of(velocities, velocities + 4,
                                   [](const double* of) { return of[0] != 0 || of[1] != 0 || of[2] != 0; });
    if (body.number >= static_cast<int>(static_moves_.size())) static_moves_.resize(body.number + 1, 0);
    static_moves_[body.number] = moves;
    if (!moves) continue;
    for (const int label : thaw_static(body.number)) touched_.push_back(label);
  }
  substeps_->set_surfaces(numbers, bodies, std::move(surfaces));
  substeps_->set_earlier_surfaces(std::move(earlier));
}

void BulletWorld::end_kinematic_step() {
  ++step_;
  for (Kinematic& body : kinematic_) place_kinematic(body, body.next);
}

}  // namespace lapjoint
