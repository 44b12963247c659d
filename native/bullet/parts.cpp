#include "bullet/parts.h"

#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btEmptyCollisionAlgorithm.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "bullet/order.h"
#include "bullet/shapes.h"
#include "bullet/world.h"

namespace lapjoint {

namespace {

constexpr btScalar kMostFriction = 10;  // as Bullet has it

btScalar combined(std::uint8_t rule, double a, double b) {
  switch (rule) {
    case kAverage:
      return btScalar((a + b) / 2);
    case kMinimum:
      return btScalar(std::min(a, b));
    case kMultiply:
      return btScalar(a * b);
    case kMaximum:
      return btScalar(std::max(a, b));
    default:
      // To the last bit what Bullet makes of the roots that its bodies have.
      return btScalar(std::sqrt(a)) * btScalar(std::sqrt(b));
  }
}

}  // namespace

void PartTable::add_shape(const ShapeDefinition& shape) {
  OwnOfShape& made = shapes_.emplace_back();
  bool has_any = false;
  for (const ShapeDefinition& part : shape.parts) {
    OwnOfPart& own = made.parts.emplace_back();
    if (!part.surface.empty()) {
      const std::vector<double>& s = part.surface;
      own.surface = {s[0], s[1], s[2], static_cast<std::uint8_t>(s[3]), static_cast<std::uint8_t>(s[4])};
      has_surfaces_ = true;
    }
    if (part.group >= 0) own.group = static_cast<std::uint32_t>(part.group);
    if (part.mask >= 0) own.mask = static_cast<std::uint32_t>(part.mask);
    made.has_filters |= own.group || own.mask;
    has_any |= own.surface || own.group || own.mask;
  }
  has_filters_ |= made.has_filters;
  if (!has_any) made.parts.clear();
}

void PartTable::add_static(const StaticBody& item) {
  statics_.push_back(
      {item.shape_id,
       {item.friction, item.restitution, item.rolling_friction, item.friction_combine, item.restitution_combine},
       {item.group, item.mask}});
  has_surfaces_ |= item.friction_combine || item.restitution_combine;
}

void PartTable::set_bodies(const BodyColumns& bodies) {
  bodies_ = &bodies;
  for (; looked_at_ < bodies.count; ++looked_at_)
    has_surfaces_ |= bodies.friction_combine[looked_at_] || bodies.restitution_combine[looked_at_];
}

int PartTable::shape_of(int number) const {
  return number < kStaticBase ? bodies_->shape_id[number] : statics_[number - kStaticBase].shape_id;
}

const PartTable::OwnOfPart* PartTable::part_of(const ContactEnd& end) const {
  const std::vector<OwnOfPart>& parts = shapes_[shape_of(end.number)].parts;
  return end.part >= 0 && end.part < static_cast<int>(parts.size()) ? &parts[end.part] : nullptr;
}

SurfaceValues PartTable::surface_of(const ContactEnd& end) const {
  if (const OwnOfPart* part = part_of(end); part && part->surface) return *part->surface;
  if (end.number >= kStaticBase) return statics_[end.number - kStaticBase].surface;
  const int id = end.number;
  return {bodies_->friction[id], bodies_->restitution[id], bodies_->rolling_friction[id], bodies_->friction_combine[id],
          bodies_->restitution_combine[id]};
}

CombinedSurface PartTable::combine(ContactEnd a, ContactEnd b) const {
  const SurfaceValues p = surface_of(a), q = surface_of(b);
  const btScalar friction = combined(std::max(p.friction_combine, q.friction_combine), p.friction, q.friction);
  const btScalar restitution =
      combined(std::max(p.restitution_combine, q.restitution_combine), p.restitution, q.restitution);
  return {std::min(friction, kMostFriction), restitution,
          btScalar(p.rolling_friction / unit_) + btScalar(q.rolling_friction / unit_)};
}

bool PartTable::may_touch(ContactEnd a, ContactEnd b) const {
  const auto bits = [this](const ContactEnd& end) -> FilterBits {
    const FilterBits own = end.number >= kStaticBase
                               ? statics_[end.number - kStaticBase].filter
                               : FilterBits{bodies_->group[end.number], bodies_->mask[end.number]};
    const OwnOfPart* part = part_of(end);
    if (!part) return end.part < 0 ? widest(shape_of(end.number), own) : own;
    return {part->group.value_or(own.group), part->mask.value_or(own.mask)};
  };
  const FilterBits p = bits(a), q = bits(b);
  return (p.group & q.mask) && (q.group & p.mask);
}

FilterBits PartTable::widest(int shape_id, FilterBits own) const {
  const OwnOfShape& shape = shapes_[shape_id];
  if (!shape.has_filters) return own;
  FilterBits all{0, 0};
  for (const OwnOfPart& part : shape.parts) {
    all.group |= part.group.value_or(own.group);
    all.mask |= part.mask.value_or(own.mask);
  }
  return all;
}

btCollisionAlgorithm* PartDispatcher::findAlgorithm(const btCollisionObjectWrapper* a,
                                                    const btCollisionObjectWrapper* b, btPersistentManifold* shared,
                                                    ebtDispatcherQueryType type) {
  if (parts_.has_filters()) {
    const auto end = [](const btCollisionObjectWrapper& wrapper) -> ContactEnd {
      const btCollisionObject& object = *wrapper.getCollisionObject();
      const btBroadphaseProxy* proxy = object.getBroadphaseHandle();
      return {proxy ? proxy->m_uniqueId : object.getUserIndex(), wrapper.m_index};
    };
    if (!parts_.may_touch(end(*a), end(*b))) {
      const btCollisionAlgorithmConstructionInfo info(this, -1);
      return new (allocateCollisionAlgorithm(sizeof(btEmptyAlgorithm))) btEmptyAlgorithm(info);
    }
  }
  return btCollisionDispatcher::findAlgorithm(a, b, shared, type);
}

}  // namespace lapjoint
