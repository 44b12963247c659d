// Scene shapes as Bullet collision shapes: built when first needed, shared by bodies, freed with the last of them.
#pragma once

#include <btBulletCollisionCommon.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "detection/polyhedron.h"

namespace lapjoint {

// A shape of the scene, in metres. Compounds list their parts in `parts`.
struct ShapeDefinition {
  enum Kind { kSphere, kBox, kCapsule, kCylinder, kHull, kCompound, kPlane, kMesh, kEllipsoid, kCone, kHeightField };
  int kind = kSphere;
  // Sphere: radius; box: edges; capsule, cylinder, cone: radius, length; ellipsoid: radii; height field: spacing along
  // x and y, columns.
  std::array<double, 3> size{};
  std::vector<double> points;  // hull, mesh: x y z ...; height field: heights, row after row
  std::vector<int> triangles;  // mesh: three vertex numbers ...
  std::vector<ShapeDefinition> parts;
  std::array<double, 7> place{0, 0, 0, 1, 0, 0, 0};  // of a part: position, quaternion w x y z
  // Of a part that has its own: friction, restitution, rolling friction, and the rules by which the first two combine.
  std::vector<double> surface;
  std::int64_t group = -1, mask = -1;  // -1: the body's
  double thickness = 0;                // half of its least extent; infinite for a plane
};

class ShapeLibrary {
 public:
  // Exact shapes end where they are drawn; others have corners rounded by the margin.
  ShapeLibrary(double length_unit, double margin, bool exact) : unit_(length_unit), margin_(margin), exact_(exact) {}

  int define(ShapeDefinition definition);
  // Of a shape, in length units.
  btScalar thickness(int shape_id) const { return btScalar(definitions_[shape_id].thickness / unit_); }
  const ShapeDefinition& definition(int shape_id) const { return definitions_.at(shape_id); }

  // The shape seen from a frame turned by `turn` (the body's principal axes). Balanced by release().
  btCollisionShape* acquire(int shape_id, const btQuaternion& turn);
  void release(int shape_id, const btQuaternion& turn);

 private:
  struct Built {
    btCollisionShape* top = nullptr;
    std::vector<std::unique_ptr<btCollisionShape>> owned;
    std::vector<std::unique_ptr<Polyhedron>> polyhedra;
    std::unique_ptr<btTriangleMesh> mesh;
    int users = 0;
  };
  using Key = std::array<double, 5>;  // shape number and quaternion

  static Key key(int shape_id, const btQuaternion& turn);
  btCollisionShape* build(const ShapeDefinition& definition, Built& into) const;
  btCollisionShape* build_height_field(const ShapeDefinition& definition, Built& into) const;
  btCollisionShape* build_hull(const ShapeDefinition& definition, Built& into) const;
  btCollisionShape* build_turned_hull(const ShapeDefinition& definition, const btQuaternion& turn, Built& into) const;
  btCollisionShape* build_exact(const ShapeDefinition& definition, bool is_part, Built& into) const;
  btVector3 vector(const double* xyz) const;

  double unit_;
  double margin_;
  bool exact_;
  std::vector<ShapeDefinition> definitions_;
  std::map<Key, Built> built_;
};

}  // namespace lapjoint
