// From the scene's frames to Bullet's.
#pragma once

#include <LinearMath/btMatrix3x3.h>
#include <LinearMath/btQuaternion.h>

namespace lapjoint {

btQuaternion quaternion(const double* wxyz);

// Principal moments of an inertia tensor, and the rotation from the scene's body frame to the principal axes. `unit` is
// Bullet's unit of inertia [kg m^2].
void principal_axes(const double* tensor, double unit, btVector3& moments, btQuaternion& turn);

}  // namespace lapjoint
