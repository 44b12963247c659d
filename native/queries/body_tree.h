// Bodies where they are, and what is asked about all of them: rays, overlaps, nearest points.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "queries/shape.h"

namespace lapjoint::queries {

// In place of a body's number: there is none.
constexpr int kNone = std::numeric_limits<int>::min();

struct RayHits {
  std::vector<int> ray, body;
  std::vector<double> distance, normal;  // three of these for each hit
};

class BodyTree {
 public:
  int add_shape(std::shared_ptr<const Shape> shape) {
    shapes_.push_back(std::move(shape));
    return static_cast<int>(shapes_.size()) - 1;
  }
  int shape_count() const { return static_cast<int>(shapes_.size()); }
  const std::shared_ptr<const Shape>& shape(int number) const { return shapes_[number]; }

  // These bodies and no others, by their numbers, each with the row that it has in the tables: places (position,
  // quaternion, in rows of `stride` numbers), shapes and groups.
  void set_bodies(int count, const int* numbers, const int* rows, const double* places, int stride, const int* shape_id,
                  const std::uint32_t* group);
  int body_count() const { return static_cast<int>(bodies_.size()); }
  // Of all that is bounded; empty where nothing is. Planes are not bounded.
  Box bounds() const { return tree_.empty() ? Box{} : tree_.bounds(); }
  bool is_bounded() const { return endless_.empty(); }

  // The first body that each ray meets, of those whose group has a bit in the mask; of several at the same distance the
  // one with the lowest number. Arrays have a row for each ray; kNone and infinity where it meets none.
  void cast_closest(int count, const double* origins, const double* directions, const double* reach, std::uint32_t mask,
                    int* body, double* distance, double* normal) const;
  // All bodies, each where the ray meets it first, in the order of rays, distances and numbers.
  RayHits cast_all(int count, const double* origins, const double* directions, const double* reach,
                   std::uint32_t mask) const;
  // Pairs of a place (a row of seven numbers) and a body that a shape which is there overlaps, ascending.
  std::vector<int> overlapping(const Shape& shape, int count, const double* places, std::uint32_t mask) const;
  // The body whose surface is nearest to each point, or which the point is deepest in.
  void nearest_bodies(int count, const double* points, const double* reach, std::uint32_t mask, int* body,
                      double* distance, double* point, double* normal) const;

 private:
  struct Body {
    int number;
    std::uint32_t group;
    const Shape* shape;
    double place[7];
  };

  bool cast_body(const Body& body, const Ray& ray, double reach, Hit& hit) const;
  template <typename Visit>
  void along(const Ray& ray, double reach, std::uint32_t mask, Visit&& visit) const;

  std::vector<std::shared_ptr<const Shape>> shapes_;
  std::vector<Body> bodies_;
  std::vector<Box> boxes_;  // of bodies that are bounded, which come first
  std::vector<Body> endless_;
  BoxTree tree_;
};

}  // namespace lapjoint::queries
