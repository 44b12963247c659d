#include "queries/sensors.h"

namespace lapjoint::queries {

int Sensors::add(std::shared_ptr<const Shape> shape, const double* place, std::uint32_t mask, int on) {
  const Place own = Place::of(place);
  sensors_.push_back({std::move(shape), own, own, mask, on, true});
  moved_ = true;
  return count() - 1;
}

void Sensors::move(int number, const double* base) {
  Sensor& sensor = sensors_[number];
  sensor.is_there = base != nullptr;
  if (base) sensor.now = Place::of(base) * sensor.own;
  moved_ = true;
}

void Sensors::settle() {
  if (!moved_) return;
  moved_ = false;
  bounded_.clear();
  endless_.clear();
  std::vector<Box> boxes;
  for (int i = 0; i < count(); ++i) {
    const Sensor& sensor = sensors_[i];
    if (!sensor.is_there) continue;
    (sensor.shape->is_bounded() ? bounded_ : endless_).push_back(i);
    if (sensor.shape->is_bounded()) boxes.push_back(sensor.shape->box_at(sensor.now));
  }
  tree_.set(boxes);
}

void Sensors::look(int number, std::uint32_t group, const Shape& shape, const double* place, std::vector<Pair>& found) {
  settle();
  // First a ball around the body, which needs no rotation; most bodies are near no sensor.
  const double radius = norm(most(absolute(shape.box.low), absolute(shape.box.high)));
  const Box ball = Box::around(vector(place), {radius, radius, radius}).widened();
  near_ = endless_;
  tree_.within(ball, [&](int i) { near_.push_back(bounded_[i]); });
  if (near_.empty()) return;
  const Place at = Place::of(place);
  for (const int i : near_) {
    const Sensor& sensor = sensors_[i];
    if ((sensor.mask & group) != 0 && sensor.on != number && overlap(*sensor.shape, sensor.now, shape, at))
      found.push_back({i, number});
  }
}

}  // namespace lapjoint::queries
