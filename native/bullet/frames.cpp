#include "bullet/frames.h"

#include <algorithm>
#include <cmath>

namespace lapjoint {

btQuaternion quaternion(const double* wxyz) {
  return {btScalar(wxyz[1]), btScalar(wxyz[2]), btScalar(wxyz[3]), btScalar(wxyz[0])};
}

void principal_axes(const double* tensor, double unit, btVector3& moments, btQuaternion& turn) {
  const double trace = tensor[0] + tensor[4] + tensor[8];
  const double mixed = std::max({std::abs(tensor[1]), std::abs(tensor[2]), std::abs(tensor[5])});
  const double scale = 1 / unit;
  turn = btQuaternion::getIdentity();
  if (mixed <= 1e-6 * trace) {
    moments.setValue(btScalar(tensor[0] * scale), btScalar(tensor[4] * scale), btScalar(tensor[8] * scale));
    return;
  }
  btMatrix3x3 matrix;
  for (int row = 0; row < 3; ++row)
    matrix[row].setValue(btScalar(tensor[3 * row] * scale), btScalar(tensor[3 * row + 1] * scale),
                         btScalar(tensor[3 * row + 2] * scale));
  btMatrix3x3 axes;
  matrix.diagonalize(axes, btScalar(1e-7), 40);
  moments.setValue(matrix[0][0], matrix[1][1], matrix[2][2]);
  axes.getRotation(turn);
  turn.normalize();
}

}  // namespace lapjoint
