#include "queries/body_tree.h"

#include <cstring>
#include <tuple>

namespace lapjoint::queries {

void BodyTree::set_bodies(int count, const int* numbers, const int* rows, const double* places, int stride,
                          const int* shape_id, const std::uint32_t* group) {
  bodies_.clear();
  boxes_.clear();
  endless_.clear();
  bodies_.reserve(count);
  boxes_.reserve(count);
  for (int i = 0; i < count; ++i) {
    const int row = rows[i];
    Body body{numbers[i], group[row], shapes_[shape_id[row]].get(), {}};
    std::memcpy(body.place, places + static_cast<std::size_t>(row) * stride, sizeof body.place);
    if (!body.shape->is_bounded()) {
      endless_.push_back(body);
      continue;
    }
    bodies_.push_back(body);
    boxes_.push_back(body.shape->kind == Shape::kSphere
                         ? Box::around(vector(body.place), body.shape->box.high).widened()
                         : body.shape->box_at(Place::of(body.place)));
  }
  tree_.set(boxes_);
}

bool BodyTree::cast_body(const Body& body, const Ray& ray, double reach, Hit& hit) const {
  if (body.shape->kind == Shape::kSphere) {  // it has no use for its rotation
    Ray seen = ray;
    seen.origin = ray.origin - vector(body.place);
    return cast(*body.shape, seen, reach, hit);
  }
  const Place place = Place::of(body.place);
  if (!cast(*body.shape, Ray(place.to_local(ray.origin), place.turn_back(ray.direction)), reach, hit)) return false;
  hit.normal = place.turn(hit.normal);
  return true;
}

template <typename Visit>
void BodyTree::along(const Ray& ray, double reach, std::uint32_t mask, Visit&& visit) const {
  const auto look = [&](const Body& body, double longest) {
    Hit hit;
    return (body.group & mask) != 0 && cast_body(body, ray, longest, hit) ? visit(body.number, hit, longest) : longest;
  };
  for (const Body& body : endless_) reach = look(body, reach);
  tree_.along(ray, reach, [&](int i, double longest) { return look(bodies_[i], longest); });
}

void BodyTree::cast_closest(int count, const double* origins, const double* directions, const double* reach,
                            std::uint32_t mask, int* body, double* distance, double* normal) const {
  for (int i = 0; i < count; ++i) {
    body[i] = kNone, distance[i] = kInfinity;
    Vector out;
    const Ray ray(vector(origins + 3 * i), vector(directions + 3 * i));
    along(ray, reach[i], mask, [&](int number, const Hit& hit, double) {
      if (hit.distance < distance[i] || number < body[i])
        body[i] = number, distance[i] = hit.distance, out = hit.normal;
      return distance[i];
    });
    for (int k = 0; k < 3; ++k) normal[3 * i + k] = out[k];
  }
}

RayHits BodyTree::cast_all(int count, const double* origins, const double* directions, const double* reach,
                           std::uint32_t mask) const {
  struct Found {
    double distance;
    int body;
    Vector normal;
  };
  RayHits hits;
  std::vector<Found> found;
  for (int i = 0; i < count; ++i) {
    found.clear();
    const Ray ray(vector(origins + 3 * i), vector(directions + 3 * i));
    along(ray, reach[i], mask, [&](int number, const Hit& hit, double longest) {
      found.push_back({hit.distance, number, hit.normal});
      return longest;
    });
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return std::tie(a.distance, a.body) < std::tie(b.distance, b.body);
    });
    for (const Found& one : found) {
      hits.ray.push_back(i);
      hits.body.push_back(one.body);
      hits.distance.push_back(one.distance);
      for (int k = 0; k < 3; ++k) hits.normal.push_back(one.normal[k]);
    }
  }
  return hits;
}

std::vector<int> BodyTree::overlapping(const Shape& shape, int count, const double* places, std::uint32_t mask) const {
  std::vector<int> pairs, found;
  for (int i = 0; i < count; ++i) {
    found.clear();
    const Place place = Place::of(places + 7 * i);
    const auto look = [&](const Body& body) {
      if ((body.group & mask) != 0 && overlap(shape, place, *body.shape, Place::of(body.place)))
        found.push_back(body.number);
    };
    for (const Body& body : endless_) look(body);
    const Box box = shape.box_at(place);
    tree_.within(box, [&](int k) {
      if (boxes_[k].meets(box)) look(bodies_[k]);
    });
    std::sort(found.begin(), found.end());
    for (const int number : found) pairs.insert(pairs.end(), {i, number});
  }
  return pairs;
}

void BodyTree::nearest_bodies(int count, const double* points, const double* reach, std::uint32_t mask, int* body,
                              double* distance, double* point, double* normal) const {
  for (int i = 0; i < count; ++i) {
    body[i] = kNone, distance[i] = kInfinity;
    const Vector p = vector(points + 3 * i);
    Vector on{kInfinity, kInfinity, kInfinity}, out;
    const auto look = [&](const Body& one, double farthest) {
      if ((one.group & mask) == 0) return farthest;
      const Place place = Place::of(one.place);
      const Nearest found = nearest(*one.shape, place.to_local(p));
      if (found.distance > farthest) return farthest;
      if (found.distance < distance[i] || one.number < body[i]) {
        body[i] = one.number, distance[i] = found.distance;
        on = place.to_world(found.point), out = place.turn(found.normal);
      }
      return std::min(farthest, found.distance);
    };
    double farthest = reach[i];
    for (const Body& one : endless_) farthest = look(one, farthest);
    tree_.near(p, farthest, [&](int k, double nearer) { return look(bodies_[k], nearer); });
    for (int k = 0; k < 3; ++k) point[3 * i + k] = on[k], normal[3 * i + k] = out[k];
  }
}

}  // namespace lapjoint::queries
