// Sensor volumes in a world: who enters and who leaves, found after every step.
#pragma once

#include <functional>
#include <vector>

#include "bullet/motions.h"
#include "bullet/shapes.h"
#include "queries/sensors.h"

namespace lapjoint {

struct SensorEvent {
  double step, sensor, body, leaves;  // a row of numbers; leaves: 0 or 1
};

class SensorWatch {
 public:
  explicit SensorWatch(const ShapeLibrary& library) : library_(library) {}
  void add(int shape_id, const double* place, std::uint32_t mask, int on);

  // From now on, find who enters and leaves; `inside` is who is there already, pairs of a sensor and a body, ascending.
  // Pairs of bodies that are not looked at are left alone.
  void watch(std::vector<queries::Sensors::Pair> inside);
  void rest() { watches_ = false; }
  bool watches() const { return watches_; }

  // A step is done: static bodies that move are here, and so are all `bodies`, ascending, with their `states`, rows of
  // so many numbers. Those that sleep need not be among them, but in the first step: they are where they were.
  void move(int static_body, const Place& place);
  void look(int stride, const int* shape_id, const std::uint32_t* group, const std::function<bool(int)>& sleeps);
  bool is_first() const { return step_ == 0; }
  std::vector<int> bodies;
  std::vector<double> states;
  const std::vector<SensorEvent>& events() const { return events_; }

 private:
  const queries::Shape& shape(int shape_id);

  const ShapeLibrary& library_;
  std::vector<std::shared_ptr<const queries::Shape>> shapes_;  // by number, once needed
  queries::Sensors sensors_;
  std::vector<queries::Sensors::Pair> inside_, found_;
  std::vector<SensorEvent> events_;
  bool watches_ = false;
  int step_ = 0;
};

}  // namespace lapjoint
