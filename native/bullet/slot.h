// An active body as the world keeps it.
#pragma once

#include "bullet/world.h"

namespace lapjoint {

struct BulletWorld::Slot {
  Slot(int number, const btRigidBody::btRigidBodyConstructionInfo& info, int shape, const btQuaternion& principal)
      : body(info), turn(principal), id(number), shape_id(shape), turned(principal != btQuaternion::getIdentity()) {}
  BT_DECLARE_ALIGNED_ALLOCATOR();
  btRigidBody body;
  btQuaternion turn;  // from the scene's body frame to Bullet's
  int id, shape_id;
  bool turned;
};

}  // namespace lapjoint
