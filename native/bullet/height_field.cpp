#include "bullet/height_field.h"

#include <LinearMath/btAabbUtil2.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lapjoint {

HeightFieldShape::HeightFieldShape(std::vector<btScalar> heights, int columns, btScalar along_x, btScalar along_y)
    : heights_(std::move(heights)),
      rows_(static_cast<int>(heights_.size()) / columns),
      columns_(columns),
      spacing_{along_x, along_y} {
  m_shapeType = TERRAIN_SHAPE_PROXYTYPE;
  const auto [lowest, highest] = std::minmax_element(heights_.begin(), heights_.end());
  low_ = corner(0, 0);
  high_ = corner(rows_ - 1, columns_ - 1);
  low_.setZ(*lowest);
  high_.setZ(*highest);
}

btVector3 HeightFieldShape::corner(int row, int column) const {
  return {(btScalar(column) - btScalar(columns_ - 1) / 2) * spacing_[0],
          (btScalar(row) - btScalar(rows_ - 1) / 2) * spacing_[1], heights_[row * columns_ + column]};
}

void HeightFieldShape::processAllTriangles(btTriangleCallback* callback, const btVector3& low,
                                           const btVector3& high) const {
  const auto cells = [&](int axis, int count) {
    const auto cell = [&](btScalar at) {
      const btScalar place = std::floor((at - low_[axis]) / spacing_[axis]);
      return static_cast<int>(std::clamp(place, btScalar(-1), btScalar(count)));
    };
    return std::pair(std::max(cell(low[axis]), 0), std::min(cell(high[axis]), count - 1));
  };
  const auto [first_column, last_column] = cells(0, columns_ - 1);
  const auto [first_row, last_row] = cells(1, rows_ - 1);
  for (int row = first_row; row <= last_row; ++row) {
    for (int column = first_column; column <= last_column; ++column) {
      const btVector3 near = corner(row, column), right = corner(row, column + 1);
      const btVector3 far = corner(row + 1, column + 1), up = corner(row + 1, column);
      if (std::max({near.z(), right.z(), far.z(), up.z()}) < low.z() ||
          std::min({near.z(), right.z(), far.z(), up.z()}) > high.z())
        continue;
      btVector3 triangles[2][3] = {{near, right, far}, {near, far, up}};
      const int number = 2 * (row * (columns_ - 1) + column);
      for (int k = 0; k < 2; ++k) callback->processTriangle(triangles[k], 0, number + k);
    }
  }
}

bool HeightFieldShape::height_at(btScalar x, btScalar y, btScalar& height) const {
  const btScalar u = (x - low_.x()) / spacing_[0], v = (y - low_.y()) / spacing_[1];
  if (!(u >= 0 && v >= 0 && u <= btScalar(columns_ - 1) && v <= btScalar(rows_ - 1))) return false;
  const int column = std::min(static_cast<int>(u), columns_ - 2), row = std::min(static_cast<int>(v), rows_ - 2);
  const btScalar right = u - btScalar(column), up = v - btScalar(row);
  const btScalar* low = &heights_[row * columns_ + column];
  const btScalar* high = low + columns_;
  height = right >= up ? low[0] + right * (low[1] - low[0]) + up * (high[1] - low[1])
                       : low[0] + up * (high[0] - low[0]) + right * (high[1] - high[0]);
  return true;
}

bool HeightFieldShape::pushes_out(const btVector3& at, const btVector3& normal) const {
  constexpr btScalar kStep = btScalar(0.02), kSlack = btScalar(0.01);  // in cells, and as a sine
  btScalar here;
  if (!height_at(at.x(), at.y(), here)) return true;
  // Along the sides of triangles, and across them: between two of these directions the surface is flat near a point.
  constexpr int kDirections[8][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 1}, {-1, 0}, {-1, -1}, {0, -1}, {1, -1}};
  for (const auto& [right, up] : kDirections) {
    const btScalar x = btScalar(right) * kStep * spacing_[0], y = btScalar(up) * kStep * spacing_[1];
    btScalar there;
    if (!height_at(at.x() + x, at.y() + y, there)) continue;
    const btVector3 along(x, y, there - here);
    if (normal.dot(along) > kSlack * along.length()) return false;
  }
  return true;
}

void HeightFieldShape::getAabb(const btTransform& at, btVector3& low, btVector3& high) const {
  btTransformAabb(low_, high_, getMargin(), at, low, high);
}

const btVector3& HeightFieldShape::getLocalScaling() const {
  static const btVector3 none(1, 1, 1);
  return none;
}

}  // namespace lapjoint
