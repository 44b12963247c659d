// An active body as the world keeps it.
#pragma once

#include "bullet/world.h"

namespace lapjoint {

struct BulletWorld::Slot {
  Slot(const btRigidBody::btRigidBodyConstructionInfo& info, const btQuaternion& principal)
      : body(info), turn(principal) {}
  BT_DECLARE_ALIGNED_ALLOCATOR();
  bool turned() const { return turn != btQuaternion::getIdentity(); }
  btRigidBody body;
  btQuaternion turn;  // from the scene's body frame to Bullet's
};

}  // namespace lapjoint
