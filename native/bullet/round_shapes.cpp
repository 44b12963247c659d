#include "bullet/round_shapes.h"

#include <algorithm>

namespace lapjoint {

namespace {

// Of the least radius of curvature; a core smaller by more would not be convex.
constexpr btScalar kMargin = btScalar(0.9);
constexpr btScalar kConeMargin = btScalar(0.01);  // of the smaller of radius and length, as of a cylinder

btVector3 unit(const btVector3& direction) {
  const btScalar square = direction.length2();
  return square > 0 ? direction / btSqrt(square) : btVector3(1, 0, 0);
}

btVector3 outermost_of_cone(const btVector3& direction, btScalar radius, btScalar base, btScalar tip, btScalar sine) {
  if (direction.z() > sine * direction.length()) return {0, 0, tip};
  const btScalar across = btSqrt(direction.x() * direction.x() + direction.y() * direction.y());
  if (across < SIMD_EPSILON) return {0, 0, base};
  return {direction.x() * radius / across, direction.y() * radius / across, base};
}

}  // namespace

EllipsoidShape::EllipsoidShape(const btVector3& radii) : radii_(radii) {
  m_shapeType = kEllipsoidType;
  const btScalar least = radii[radii.minAxis()];
  m_collisionMargin = kMargin * least * least / radii[radii.maxAxis()];
}

btVector3 EllipsoidShape::outermost(const btVector3& direction) const {
  const btVector3 scaled = radii_ * unit(direction);
  return radii_ * scaled / scaled.length();
}

btVector3 EllipsoidShape::localGetSupportingVertexWithoutMargin(const btVector3& direction) const {
  return outermost(direction) - unit(direction) * m_collisionMargin;
}

ConeShape::ConeShape(btScalar radius, btScalar length)
    : radius_(radius), length_(length), sine_(radius / btSqrt(radius * radius + length * length)) {
  m_shapeType = CONE_SHAPE_PROXYTYPE;
  m_collisionMargin = kConeMargin * std::min(radius, length);
  core_base_ = base() + m_collisionMargin;
  core_tip_ = tip() - m_collisionMargin / sine_;
  core_radius_ = (core_tip_ - core_base_) * radius / length;
}

btVector3 ConeShape::outermost(const btVector3& direction) const {
  return outermost_of_cone(direction, radius_, base(), tip(), sine_);
}

btVector3 ConeShape::localGetSupportingVertexWithoutMargin(const btVector3& direction) const {
  return outermost_of_cone(direction, core_radius_, core_base_, core_tip_, sine_);
}

}  // namespace lapjoint
