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
  // First a ball around the body, which needs no rotation; most bodies are in no sensor.
  const Vector reach = most(absolute(shape.box.low), absolute(shape.box.high));
  const double radius = norm(reach);
  const Box ball = Box::around(vector(place), {radius, radius, radius}).widened();
  if (endless_.empty() && (tree_.empty() || !tree_.bounds().meets(ball))) return;
  const Place at = Place::of(place);
  const auto test = [&](int i) {
    const Sensor& sensor = sensors_[i];
    if ((sensor.mask & group) != 0 && sensor.on != number && overlap(*sensor.shape, sensor.now, shape, at))
      found.push_back({i, number});
  };
  for (const int i : endless_) test(i);
  tree_.within(shape.box_at(at), [&](int i) { test(bounded_[i]); });
}

}  // namespace lapjoint::queries
