// Scene joints as Bullet constraints.
#pragma once

#include <btBulletDynamicsCommon.h>

#include <cmath>
#include <memory>

#include "bullet/bonds.h"

namespace lapjoint {

constexpr int kWorld = -1;

// The scene's joint table, column by column; owned by the scene.
struct JointColumns {
  enum Kind { kBall, kHinge, kSlider, kFixed, kSixAxis, kDistance, kGear };
  int count = 0;
  const int* kind = nullptr;
  const int* body_a = nullptr;
  const int* body_b = nullptr;      // or kWorld
  const double* frame_a = nullptr;  // count x 7: position [m], quaternion w x y z, in body a's frame
  const double* frame_b = nullptr;  // count x 7, in body b's frame or in the world
  const double* lower = nullptr;    // count x 6, and so on
  const double* upper = nullptr;
  const double* motor_velocity = nullptr;
  const double* motor_max_force = nullptr;
  const double* spring_stiffness = nullptr;
  const double* spring_damping = nullptr;
  const double* spring_rest = nullptr;
  const double* drive_position = nullptr;
  const double* drive_velocity = nullptr;
  const double* drive_stiffness = nullptr;
  const double* drive_damping = nullptr;
  const double* drive_max_force = nullptr;  // 0: no drive
  const double* friction = nullptr;         // N or N m, at most; of a ball joint its fourth, about any axis
  const double* gear_ratio = nullptr;       // count
  const bool* collide = nullptr;            // whether its bodies may touch
  const double* break_force = nullptr;      // N, infinite where it does not break
  const double* break_torque = nullptr;     // N m
  BondColumns bonds;

  bool breaks(int joint) const {
    return bonds.has(joint) || !std::isinf(break_force[joint]) || !std::isinf(break_torque[joint]);
  }
};

// A joint of the table between two Bullet bodies; `b` is a body without mass where the scene says WORLD.
// `turn_a`, `turn_b`: from the scene's body frame to Bullet's (principal axes).
std::unique_ptr<btTypedConstraint> make_joint(const JointColumns& joints, int joint_id, btRigidBody& a, btRigidBody& b,
                                              const btQuaternion& turn_a, const btQuaternion& turn_b,
                                              double length_unit, double mass_unit);

}  // namespace lapjoint
