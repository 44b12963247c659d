// Ellipsoids and cones. Bullet has no ellipsoid, and its cone is centred half way up.
//
// Both have a core that is smaller by the margin everywhere, so that core and margin together are the shape: of a cone
// but for its rim and its tip, which are round by the margin.
#pragma once

#include <BulletCollision/CollisionShapes/btConvexInternalShape.h>

namespace lapjoint {

constexpr int kEllipsoidType = CUSTOM_CONVEX_SHAPE_TYPE;

class RoundShape : public btConvexInternalShape {
 public:
  void batchedUnitVectorGetSupportingVertexWithoutMargin(const btVector3* directions, btVector3* supports,
                                                         int count) const override {
    for (int i = 0; i < count; ++i) supports[i] = localGetSupportingVertexWithoutMargin(directions[i]);
  }
  void getAabb(const btTransform& at, btVector3& low, btVector3& high) const override {
    for (int k = 0; k < 3; ++k) {
      const btVector3 axis = at.getBasis()[k];
      low[k] = at.getOrigin()[k] + axis.dot(outermost(-axis));
      high[k] = at.getOrigin()[k] + axis.dot(outermost(axis));
    }
  }
  void calculateLocalInertia(btScalar, btVector3& inertia) const override { inertia.setValue(0, 0, 0); }
  // The point of the shape as the scene has it that is farthest in a direction.
  virtual btVector3 outermost(const btVector3& direction) const = 0;
};

class EllipsoidShape : public RoundShape {
 public:
  explicit EllipsoidShape(const btVector3& radii);
  btVector3 localGetSupportingVertexWithoutMargin(const btVector3& direction) const override;
  btVector3 outermost(const btVector3& direction) const override;
  const char* getName() const override { return "Ellipsoid"; }

 private:
  btVector3 radii_;
};

// Along z, with its centre of mass at the origin.
class ConeShape : public RoundShape {
 public:
  ConeShape(btScalar radius, btScalar length);
  btVector3 localGetSupportingVertexWithoutMargin(const btVector3& direction) const override;
  btVector3 outermost(const btVector3& direction) const override;
  const char* getName() const override { return "Cone"; }
  btScalar radius() const { return radius_; }
  btScalar base() const { return -length_ / 4; }  // heights of the base and of the tip
  btScalar tip() const { return length_ * btScalar(0.75); }

 private:
  btScalar radius_, length_, sine_, core_radius_, core_base_, core_tip_;  // sine: of half the angle at the tip
};

}  // namespace lapjoint
