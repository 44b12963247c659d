// A surface over a grid, as the scene's height fields are: two triangles for each cell, found by where they are.
#pragma once

#include <BulletCollision/CollisionShapes/btConcaveShape.h>

#include <vector>

namespace lapjoint {

class HeightFieldShape : public btConcaveShape {
 public:
  // Heights row after row; rows are along y, and the middle of the grid is at the origin.
  HeightFieldShape(std::vector<btScalar> heights, int columns, btScalar along_x, btScalar along_y);
  void processAllTriangles(btTriangleCallback* callback, const btVector3& low, const btVector3& high) const override;
  // Whether a contact at a point of the surface can have this normal: nothing around the point is in front of the plane
  // through it. Of a triangle alone its sides are edges, of the surface they may be none.
  bool pushes_out(const btVector3& at, const btVector3& normal) const;
  void getAabb(const btTransform& at, btVector3& low, btVector3& high) const override;
  void setLocalScaling(const btVector3&) override {}
  const btVector3& getLocalScaling() const override;
  void calculateLocalInertia(btScalar, btVector3& inertia) const override { inertia.setValue(0, 0, 0); }
  const char* getName() const override { return "HeightField"; }

 private:
  btVector3 corner(int row, int column) const;
  bool height_at(btScalar x, btScalar y, btScalar& height) const;  // false beyond the rim

  std::vector<btScalar> heights_;
  int rows_, columns_;
  btScalar spacing_[2];
  btVector3 low_, high_;
};

}  // namespace lapjoint
