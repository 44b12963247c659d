#include "bullet/sensors.h"

#include <algorithm>

#include "bullet/world.h"

namespace lapjoint {

namespace {

std::shared_ptr<const queries::Shape> exact_shape(const ShapeDefinition& given) {
  using queries::Shape;
  const auto share = [](Shape&& made) { return std::make_shared<const Shape>(std::move(made)); };
  switch (given.kind) {
    case ShapeDefinition::kSphere:
      return share(Shape::sphere(given.size[0]));
    case ShapeDefinition::kBox:
      return share(Shape::cuboid(queries::vector(given.size.data())));
    case ShapeDefinition::kCapsule:
      return share(Shape::capsule(given.size[0], given.size[1]));
    case ShapeDefinition::kCylinder:
      return share(Shape::cylinder(given.size[0], given.size[1]));
    case ShapeDefinition::kEllipsoid:
      return share(Shape::ellipsoid(queries::vector(given.size.data())));
    case ShapeDefinition::kCone:
      return share(Shape::cone(given.size[0], given.size[1]));
    case ShapeDefinition::kHull:
      return share(Shape::hull(given.points.data(), static_cast<int>(given.points.size() / 3)));
    case ShapeDefinition::kPlane:
      return share(Shape::plane());
    case ShapeDefinition::kCompound: {
      std::vector<Shape::Part> parts;
      for (const ShapeDefinition& part : given.parts)
        parts.push_back({exact_shape(part), queries::Place::of(part.place.data())});
      return share(Shape::compound(std::move(parts)));
    }
    default:
      throw std::invalid_argument("a shape that no sensor senses");
  }
}

}  // namespace

const queries::Shape& SensorWatch::shape(int shape_id) {
  if (shape_id >= static_cast<int>(shapes_.size())) shapes_.resize(shape_id + 1);
  if (!shapes_[shape_id]) shapes_[shape_id] = exact_shape(library_.definition(shape_id));
  return *shapes_[shape_id];
}

void SensorWatch::add(int shape_id, const double* place, std::uint32_t mask, int on) {
  shape(shape_id);
  sensors_.add(shapes_[shape_id], place, mask, on);
}

void SensorWatch::watch(std::vector<queries::Sensors::Pair> inside) {
  watches_ = true;
  step_ = 0;
  inside_ = std::move(inside);
  events_.clear();
}

void SensorWatch::move(int static_body, const Place& place) {
  const double base[7] = {place.position[0],   place.position[1],   place.position[2],  place.quaternion[0],
                          place.quaternion[1], place.quaternion[2], place.quaternion[3]};
  for (int i = 0; i < sensors_.count(); ++i)
    if (sensors_.on(i) == -1 - static_body) sensors_.move(i, base);
}

void SensorWatch::look(int stride, const int* shape_id, const std::uint32_t* group,
                       const std::function<bool(int)>& sleeps) {
  found_.clear();
  for (std::size_t i = 0; i < bodies.size(); ++i)
    sensors_.look(bodies[i], group[bodies[i]], shape(shape_id[bodies[i]]), states.data() + i * stride, found_);
  for (const auto& pair : inside_)
    if (sleeps(pair[1])) found_.push_back(pair);
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  if (step_ == 0)  // of others nothing is known here
    std::erase_if(inside_,
                  [&](const auto& pair) { return !std::binary_search(bodies.begin(), bodies.end(), pair[1]); });
  const auto report = [&](const auto& from, const auto& without, bool leaves) {
    for (const auto& [sensor, body] : from)
      if (!std::binary_search(without.begin(), without.end(), queries::Sensors::Pair{sensor, body}))
        events_.push_back({double(step_), double(sensor), double(body), double(leaves)});
  };
  report(found_, inside_, false);
  report(inside_, found_, true);
  inside_.swap(found_);
  ++step_;
}

// ---- in the world --------------------------------------------------------------------------------------------------

void BulletWorld::add_sensor(int shape_id, const double* place, std::uint32_t mask, int on) {
  if (!sensors_) sensors_ = std::make_unique<SensorWatch>(shapes_);
  sensors_->add(shape_id, place, mask, on);
}

void BulletWorld::look_at_sensors() {
  if (!sensors_ || !sensors_->watches()) return;
  for (const Kinematic& body : kinematic_) sensors_->move(body.number, body.now);
  std::vector<int>& own = sensors_->bodies;
  own.clear();
  const bool all = sensors_->is_first() || std::any_of(static_moves_.begin(), static_moves_.end(), std::identity());
  for (const int body : all ? bodies_ : awake())
    if (is_ghost_.empty() || !is_ghost_[body]) own.push_back(body);
  sensors_->states.resize(own.size() * kStateSize);
  get_states(own.data(), static_cast<int>(own.size()), sensors_->states.data());
  sensors_->look(kStateSize, body_columns_.shape_id, body_columns_.group,
                 [&](int body) { return !all && island_[body] != kAwake; });
}

}  // namespace lapjoint
