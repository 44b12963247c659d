#include "bullet/joints.h"

#include <cmath>

namespace lapjoint {

namespace {

btTransform frame_in_body(const double* frame, const btQuaternion& turn, double unit) {
  const btVector3 place(btScalar(frame[0] / unit), btScalar(frame[1] / unit), btScalar(frame[2] / unit));
  const btQuaternion own{btScalar(frame[4]), btScalar(frame[5]), btScalar(frame[6]), btScalar(frame[3])};
  return btTransform(turn.inverse()) * btTransform(own, place);
}

}  // namespace

std::unique_ptr<btTypedConstraint> make_joint(const JointColumns& joints, int joint_id, btRigidBody& a, btRigidBody& b,
                                              const btQuaternion& turn_a, const btQuaternion& turn_b, double unit,
                                              double mass_unit) {
  const btTransform in_a = frame_in_body(joints.frame_a + 7 * joint_id, turn_a, unit);
  const btTransform in_b = frame_in_body(joints.frame_b + 7 * joint_id, turn_b, unit);
  if (joints.kind[joint_id] == JointColumns::kBall)
    return std::make_unique<btPoint2PointConstraint>(a, b, in_a.getOrigin(), in_b.getOrigin());

  // Everything else is six axes, each locked, limited or free. Bullet measures its second body in the frame of its
  // first; the scene speaks of a relative to b.
  auto joint = std::make_unique<btGeneric6DofSpring2Constraint>(b, a, in_b, in_a);
  for (int axis = 0; axis < 6; ++axis) {
    const int at = 6 * joint_id + axis;
    const bool angular = axis >= 3;
    // Bullet counts angles the other way round.
    const double sign = angular ? -1 : 1;
    const double length = angular ? 1 : unit;
    const double force = mass_unit * (angular ? unit * unit : unit);   // N m and N in Bullet's units
    const double stiffness = mass_unit * (angular ? unit * unit : 1);  // N m/rad and N/m
    double lower = joints.lower[at], upper = joints.upper[at];
    if (sign < 0) {
      const double swapped = -lower;
      lower = -upper;
      upper = swapped;
    }
    if (std::isinf(lower) && std::isinf(upper)) {
      joint->setLimit(axis, 1, -1);  // lower above upper: free
    } else {
      const double far = angular ? SIMD_PI : 1e6;
      joint->setLimit(axis, btScalar(std::isinf(lower) ? -far : lower / length),
                      btScalar(std::isinf(upper) ? far : upper / length));
    }
    if (joints.motor_max_force[at] > 0) {
      joint->enableMotor(axis, true);
      // Bullet's motor turns the first body against the second.
      joint->setTargetVelocity(axis, btScalar(-joints.motor_velocity[at] / length));
      joint->setMaxMotorForce(axis, btScalar(joints.motor_max_force[at] / force));
    }
    if (joints.spring_stiffness[at] > 0) {
      joint->enableSpring(axis, true);
      joint->setStiffness(axis, btScalar(joints.spring_stiffness[at] / stiffness));
      joint->setDamping(axis, btScalar(joints.spring_damping[at] / stiffness));
      joint->setEquilibriumPoint(axis, btScalar(sign * joints.spring_rest[at] / length));
    }
  }
  return joint;
}

}  // namespace lapjoint
