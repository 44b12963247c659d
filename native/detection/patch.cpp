#include "detection/patch.h"

#include <algorithm>

namespace lapjoint {

namespace {

bool find_last(const Candidate* candidates, int count, btScalar deepest, btScalar slack, const PatchHistory& history,
               int* chosen) {
  btScalar least = BT_LARGE_FLOAT;
  for (int k = 0; k < history.count; ++k) {
    int found = 0;
    while (found < count && candidates[found].feature != history.feature(k)) ++found;
    if (found == count) return false;
    chosen[k] = found;
    least = std::min(least, candidates[found].distance);
  }
  return least <= deepest + slack;
}

}  // namespace

int choose_points(const Candidate* candidates, int count, const btVector3& normal, btScalar slack,
                  const PatchHistory& history, int faces, int* chosen) {
  if (count <= kPatchSize) {
    for (int i = 0; i < count; ++i) chosen[i] = i;
    return count;
  }
  int deepest = 0;
  for (int i = 1; i < count; ++i)
    if (candidates[i].distance < candidates[deepest].distance) deepest = i;
  if (history.count == kPatchSize && history.faces(0) == faces &&
      find_last(candidates, count, candidates[deepest].distance, slack, history, chosen))
    return kPatchSize;

  const btVector3& first = candidates[deepest].at;
  int second = -1;
  btScalar most = 0;
  for (int i = 0; i < count; ++i) {
    const btScalar away = (candidates[i].at - first).length2();
    if (away > most) most = away, second = i;
  }
  chosen[0] = deepest;
  if (second < 0) return 1;
  chosen[1] = second;
  const auto area = [&](int i, int j, int k) {
    return normal.dot((candidates[j].at - candidates[i].at).cross(candidates[k].at - candidates[i].at));
  };
  int third = -1;
  most = 0;
  bool left = false;
  for (int i = 0; i < count; ++i) {
    const btScalar twice = area(deepest, second, i);
    if (btFabs(twice) > most) most = btFabs(twice), third = i, left = twice > 0;
  }
  if (third < 0) return 2;
  chosen[2] = third;
  // The corners of the triangle, counterclockwise; the fourth is farthest outside one of its sides.
  const int corner[3] = {deepest, left ? second : third, left ? third : second};
  int fourth = -1;
  most = 0;
  for (int i = 0; i < count; ++i) {
    for (int side = 0; side < 3; ++side) {
      const btScalar outside = -area(corner[side], corner[(side + 1) % 3], i);
      if (outside > most && i != corner[0] && i != corner[1] && i != corner[2]) most = outside, fourth = i;
    }
  }
  int picked = 3;
  if (fourth >= 0) chosen[picked++] = fourth;
  std::sort(chosen, chosen + picked);
  return picked;
}

}  // namespace lapjoint
