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
  void getAabb(const btTransform& at, btVector3& low, btVector3& high) const override;
  void setLocalScaling(const btVector3&) override {}
  const btVector3& getLocalScaling() const override;
  void calculateLocalInertia(btScalar, btVector3& inertia) const override { inertia.setValue(0, 0, 0); }
  const char* getName() const override { return "HeightField"; }

 private:
  btVector3 corner(int row, int column) const;

  std::vector<btScalar> heights_;
  int rows_, columns_;
  btScalar spacing_[2];
  btVector3 low_, high_;
};

}  // namespace lapjoint
