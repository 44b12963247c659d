// Bullet's collision detection with shapes that end where they are drawn: own algorithms for spheres, boxes, hulls and
// planes.
#pragma once

#include <btBulletCollisionCommon.h>

#include <memory>

namespace lapjoint {

// Bullet's choice of algorithms. Exact: boxes and hulls among each other and against triangles by separating axes,
// convex shapes against planes, and cylinders, cones and capsules on faces, by all the points that touch; ellipsoids by
// the one where they do.
class WorldConfiguration : public btDefaultCollisionConfiguration {
 public:
  explicit WorldConfiguration(bool exact);
  ~WorldConfiguration() override;
  btCollisionAlgorithmCreateFunc* getCollisionAlgorithmCreateFunc(int type0, int type1) override;

 private:
  std::unique_ptr<btCollisionAlgorithmCreateFunc> spheres_, boxes_, polyhedra_, plane_, swapped_plane_, round_,
      swapped_round_, capsules_, triangle_, round_triangle_, smooth_, smooth_triangle_, sphere_triangle_;
};

// An algorithm that has a manifold only while its two shapes touch. Bullet makes one of 900 bytes for every pair whose
// boxes overlap: thirteen for a box in a stack of boxes that do not touch.
class ManifoldOwner {
 public:
  virtual btPersistentManifold& manifold() = 0;  // made, if there is none

 protected:
  ~ManifoldOwner() = default;
};

// A part of a compound. Bullet compares the boxes around parts as they are: these reach as far as contacts do.
template <typename Shape>
class Part : public Shape {
 public:
  using Shape::Shape;
  void getAabb(const btTransform& at, btVector3& low, btVector3& high) const override {
    Shape::getAabb(at, low, high);
    const btVector3 reach(gContactBreakingThreshold, gContactBreakingThreshold, gContactBreakingThreshold);
    low -= reach;
    high += reach;
  }
};

}  // namespace lapjoint
