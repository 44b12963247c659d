// An active body as the world keeps it.
#pragma once

#include "bullet/world.h"

namespace lapjoint {

struct BulletWorld::Slot {
  Slot(int number, const btRigidBody::btRigidBodyConstructionInfo& info, int shape, const btQuaternion& principal)
      : id(number), body(info), shape_id(shape), turn(principal), turned(principal != btQuaternion::getIdentity()) {}
  BT_DECLARE_ALIGNED_ALLOCATOR();
  int id;
  btRigidBody body;
  int shape_id;
  btQuaternion turn;  // from the scene's body frame to Bullet's
  bool turned;
};

}  // namespace lapjoint
