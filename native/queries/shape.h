// Shapes as they are asked about: exact, in metres, in their own frames.
#pragma once

#include <memory>
#include <vector>

#include "queries/box_tree.h"

namespace lapjoint::queries {

struct Shape {
  enum Kind { kSphere, kBox, kCapsule, kCylinder, kHull, kCompound, kPlane, kMesh, kEllipsoid, kCone };
  struct Part;
  struct Plane {
    Vector normal;  // outwards
    double offset;  // normal . x of all points of it
  };
  struct Triangle {
    Vector corner[3];
    Vector normal;
  };

  int kind = kSphere;
  double radius = 0;                // sphere, capsule, cylinder, cone
  double half = 0;                  // capsule, cylinder: half of the length
  double low = 0, tip = 0;          // cone: where its base and its tip are, along z
  Vector edges;                     // box: half edges; ellipsoid: radii
  std::vector<Vector> points;       // hull: its corners
  std::vector<Plane> planes;        // hull
  std::vector<Triangle> triangles;  // hull, mesh
  std::vector<Part> parts;          // compound
  BoxTree tree;                     // of a mesh's triangles, of a compound's parts
  Box box;                          // all of it; of a plane nothing

  static Shape sphere(double radius);
  static Shape cuboid(const Vector& size);
  static Shape capsule(double radius, double length);
  static Shape cylinder(double radius, double length);
  static Shape ellipsoid(const Vector& radii);
  static Shape cone(double radius, double length);
  static Shape hull(const double* points, int count);
  static Shape compound(std::vector<Part> parts);
  static Shape plane();
  static Shape mesh(const double* vertices, const int* triangles, int count);

  bool is_convex() const { return kind < kCompound || kind > kMesh; }
  bool is_bounded() const { return kind != kPlane; }
  Box box_at(const Place& place) const {
    return Box::around(place.to_world(box.centre()), place.reach(box.half())).widened();
  }
};

struct Shape::Part {
  std::shared_ptr<const Shape> shape;
  Place place;
};

// The faces of a convex hull, as triangles and as planes; its corners are kept.
void make_hull(const std::vector<Vector>& points, Shape& into);

struct Hit {
  double distance;
  Vector normal;  // outwards
};

// Where a ray, seen from the shape, first enters it, no farther than `reach`. Shapes are solid: one that holds the
// ray's origin is hit there, against the ray. A mesh is a surface, and is hit from both sides. Touching is a hit;
// leaving from the surface is none.
bool cast(const Shape& shape, const Ray& ray, double reach, Hit& hit);

struct Nearest {
  double distance;  // negative inside
  Vector point;     // of the surface
  Vector normal;    // outwards
};

// The point of the surface that is nearest to one seen from the shape. Inside a compound it is that of the part which
// the point is deepest in.
Nearest nearest(const Shape& shape, const Vector& point);

// Whether two shapes have a point in common; one of them may be a plane or a mesh.
bool overlap(const Shape& a, const Place& at_a, const Shape& b, const Place& at_b);

}  // namespace lapjoint::queries
