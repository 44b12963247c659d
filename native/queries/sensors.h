// Sensor volumes, and who is inside of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "queries/shape.h"

namespace lapjoint::queries {

class Sensors {
 public:
  using Pair = std::array<int, 2>;  // a sensor, and a body that is inside

  // Senses bodies whose group has a bit in the mask. `place` is seven numbers, in the frame of what it is on: the body
  // of this number, which it does not sense, the static body s if that is -1 - s, or nothing.
  int add(std::shared_ptr<const Shape> shape, const double* place, std::uint32_t mask, int on);
  int count() const { return static_cast<int>(sensors_.size()); }
  int on(int sensor) const { return sensors_[sensor].on; }
  // What it is on is at these seven numbers. Null: it is gone, and with it the sensor.
  void move(int sensor, const double* base);

  // Adds the sensors that this body is inside of, one after the other.
  void look(int number, std::uint32_t group, const Shape& shape, const double* place, std::vector<Pair>& found);

 private:
  struct Sensor {
    std::shared_ptr<const Shape> shape;
    Place own, now;
    std::uint32_t mask;
    int on;
    bool is_there;
  };

  void settle();

  std::vector<Sensor> sensors_;
  std::vector<int> bounded_, endless_;  // by number
  BoxTree tree_;                        // of those that are bounded, and there
  bool moved_ = true;
};

}  // namespace lapjoint::queries
