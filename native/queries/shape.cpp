#include "queries/shape.h"

namespace lapjoint::queries {

Shape Shape::sphere(double radius) {
  Shape made;
  made.kind = kSphere, made.radius = radius;
  made.box = Box::around({}, {radius, radius, radius});
  return made;
}

Shape Shape::cuboid(const Vector& size) {
  Shape made;
  made.kind = kBox, made.edges = size * 0.5;
  made.box = Box::around({}, made.edges);
  return made;
}

Shape Shape::capsule(double radius, double length) {
  Shape made;
  made.kind = kCapsule, made.radius = radius, made.half = length / 2;
  made.box = Box::around({}, {radius, radius, radius + made.half});
  return made;
}

Shape Shape::cylinder(double radius, double length) {
  Shape made;
  made.kind = kCylinder, made.radius = radius, made.half = length / 2;
  made.box = Box::around({}, {radius, radius, made.half});
  return made;
}

Shape Shape::ellipsoid(const Vector& radii) {
  Shape made;
  made.kind = kEllipsoid, made.edges = radii;
  made.box = Box::around({}, radii);
  return made;
}

Shape Shape::cone(double radius, double length) {
  Shape made;
  made.kind = kCone, made.radius = radius, made.low = -length / 4, made.tip = 0.75 * length;
  made.box = Box::around({0, 0, length / 4}, {radius, radius, length / 2});
  return made;
}

Shape Shape::hull(const double* points, int count) {
  Shape made;
  made.kind = kHull;
  std::vector<Vector> given(count);
  for (int i = 0; i < count; ++i) {
    given[i] = vector(points + 3 * i);
    made.box.add(given[i]);
  }
  make_hull(given, made);
  return made;
}

Shape Shape::compound(std::vector<Part> parts) {
  Shape made;
  made.kind = kCompound, made.parts = std::move(parts);
  std::vector<Box> boxes;
  for (const Part& part : made.parts) {
    boxes.push_back(part.shape->box_at(part.place));
    made.box.add(boxes.back());
  }
  made.tree.set(boxes);
  return made;
}

Shape Shape::plane() {
  Shape made;
  made.kind = kPlane;
  made.box = Box::around({}, {});
  return made;
}

Shape Shape::mesh(const double* vertices, const int* triangles, int count) {
  Shape made;
  made.kind = kMesh;
  made.triangles.resize(count);
  std::vector<Box> boxes(count);
  for (int i = 0; i < count; ++i) {
    Triangle& one = made.triangles[i];
    for (int k = 0; k < 3; ++k) {
      one.corner[k] = vector(vertices + 3 * triangles[3 * i + k]);
      boxes[i].add(one.corner[k]);
    }
    const Vector across = cross(one.corner[1] - one.corner[0], one.corner[2] - one.corner[0]);
    const double length = norm(across);
    one.normal = length > 0 ? across * (1 / length) : Vector{0, 0, 1};
    made.box.add(boxes[i]);
    boxes[i] = boxes[i].widened();
  }
  made.tree.set(boxes);
  return made;
}

}  // namespace lapjoint::queries
