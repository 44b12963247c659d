// Two boxes: fifteen axes, then a rectangle that clips another. What polyhedra.cpp does, for three axes at a time.
#include <algorithm>

#include "detection/polyhedron.h"

namespace lapjoint {

namespace {

constexpr int kMostCorners = 8;  // of a rectangle that four sides have clipped

// Clips to sign * at[axis] <= limit.
int clip(const Candidate* from, int count, int axis, btScalar sign, btScalar limit, int side, Candidate* to) {
  int made = 0;
  const Candidate* last = from + count - 1;
  btScalar last_out = sign * last->at[axis] - limit;
  for (int i = 0; i < count; ++i) {
    const Candidate& corner = from[i];
    const btScalar out = sign * corner.at[axis] - limit;
    if ((out > 0) != (last_out > 0)) {
      const btScalar share = last_out / (last_out - out);
      to[made++] = {last->at + (corner.at - last->at) * share,
                    last->distance + (corner.distance - last->distance) * share, name_cut(side, out > 0)};
    }
    if (out <= 0) to[made++] = corner;
    last = &corner;
    last_out = out;
  }
  return made;
}

// Box Q as box P sees it: P's axes in Q's frame are the rows of a matrix, Q's axes in P's frame its columns.
struct View {
  btVector3 p, q;  // half edges
  btVector3 rows[3], columns[3];
  btVector3 shift;
};

// Nothing, if the two faces pass each other by: apart, or because two edges separate a little more.
bool touch_face(const View& view, bool is_b, int axis, btScalar reach, const PatchHistory& history, Patch& patch) {
  const btScalar sign = view.shift[axis] < 0 ? btScalar(-1) : btScalar(1);
  // The face of Q that faces this one most.
  const btVector3& seen = view.rows[axis];
  int across = 0;
  if (btFabs(seen[1]) > btFabs(seen[across])) across = 1;
  if (btFabs(seen[2]) > btFabs(seen[across])) across = 2;
  const int ki = across == 2 ? 0 : across + 1, li = across == 0 ? 2 : across - 1;
  const btScalar towards = sign * seen[across] > 0 ? btScalar(-1) : btScalar(1);
  const btVector3 middle = view.shift + view.columns[across] * (towards * view.q[across]);
  const btVector3 k = view.columns[ki] * view.q[ki], l = view.columns[li] * view.q[li];
  const btVector3 sum = k + l, difference = k - l;
  const btVector3 at[4] = {middle + sum, middle - difference, middle - sum, middle + difference};
  const btVector3 extent = k.absolute() + l.absolute();

  Candidate buffers[2][kMostCorners];
  Candidate *now = buffers[0], *next = buffers[1];
  int count = 4;
  for (int i = 0; i < 4; ++i) now[i] = {at[i], sign * at[i][axis] - view.p[axis], i};
  for (int side = 0; side < 4 && count > 0; ++side) {
    const int along = axis + 1 + side / 2, coordinate = along > 2 ? along - 3 : along;
    const btScalar side_sign = side % 2 ? btScalar(-1) : btScalar(1);
    const btScalar limit = view.p[coordinate] + kWiden * reach;
    if (side_sign * middle[coordinate] + extent[coordinate] <= limit) continue;
    count = clip(now, count, coordinate, side_sign, limit, side, next);
    std::swap(now, next);
  }
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (now[i].distance > reach) continue;
    if (kept < i) now[kept] = now[i];
    ++kept;
  }
  if (kept == 0) return false;
  patch.faces = name_faces(is_b, 2 * axis + int(sign < 0), 2 * across + int(towards < 0));

  int chosen[kPatchSize] = {0, 1, 2, 3};
  patch.count = kept;
  btVector3 normal(0, 0, 0);
  normal[axis] = sign;
  if (kept > kPatchSize) patch.count = choose_points(now, kept, normal, kSlack * reach, history, patch.faces, chosen);
  for (int i = 0; i < patch.count; ++i) {
    const Candidate& corner = now[chosen[i]];
    const btVector3 on_p = corner.at - normal * corner.distance, away = corner.at - view.shift;
    const btVector3 on_q = view.rows[0] * away.x() + view.rows[1] * away.y() + view.rows[2] * away.z();
    patch.points[i] = {is_b ? on_q : on_p, is_b ? on_p : on_q, corner.distance, corner.feature};
  }
  patch.normal = is_b ? seen * sign : -normal;
  return true;
}

struct EdgeAxis {
  btScalar separation;
  int a = -1, b = -1;  // axes of the two boxes
};

// The edges that separate most, if by more than this. The three axes of an edge of P with each edge of Q at once, times
// the sine of the two edges: what separates by less than zero separates by no more than that.
EdgeAxis best_edges(const btVector3& p, const btVector3& q, const btVector3* rows, const btVector3* size,
                    const btVector3& shift, btScalar least) {
  EdgeAxis best{least};
  for (int i = 0; i < 3; ++i) {
    const int i1 = i == 2 ? 0 : i + 1, i2 = i == 0 ? 2 : i - 1;
    const btVector3 around(q.y() * size[i].z() + q.z() * size[i].y(), q.z() * size[i].x() + q.x() * size[i].z(),
                           q.x() * size[i].y() + q.y() * size[i].x());
    const btVector3 apart =
        (rows[i1] * shift[i2] - rows[i2] * shift[i1]).absolute() - size[i2] * p[i1] - size[i1] * p[i2] - around;
    for (int j = 0; j < 3; ++j) {
      if (apart[j] <= best.separation && apart[j] <= 0) continue;
      const btScalar sine2 = 1 - rows[i][j] * rows[i][j];
      if (sine2 < kParallel) continue;
      const btScalar separation = apart[j] / btSqrt(sine2);
      if (separation > best.separation) best = {separation, i, j};
    }
  }
  return best;
}

bool touch_edges(const View& view, const EdgeAxis& edges, btScalar reach, Patch& patch) {
  const int i = edges.a, j = edges.b;
  const btScalar separation = edges.separation;
  btVector3 axis(0, 0, 0);
  axis[i] = 1;
  btVector3 normal = axis.cross(view.columns[j]).normalized();
  if (normal.dot(view.shift) < 0) normal = -normal;
  btVector3 on_p(0, 0, 0), on_q = view.shift;
  int name_p = i, name_q = j;
  for (int k = 0; k < 3; ++k) {
    if (k != i) {
      const bool ahead = normal[k] > 0;
      on_p[k] = ahead ? view.p[k] : -view.p[k];
      name_p = 2 * name_p + int(ahead);
    }
    if (k != j) {
      const bool behind = normal.dot(view.columns[k]) < 0;
      on_q += view.columns[k] * (behind ? view.q[k] : -view.q[k]);
      name_q = 2 * name_q + int(behind);
    }
  }
  // From their middles to where their lines are nearest to each other.
  const btVector3& column = view.columns[j];
  const btVector3 between = on_q - on_p;
  const btScalar cosine = column[i], sine2 = 1 - cosine * cosine;
  const btScalar along_p = between[i], along_q = between.dot(column);
  const btScalar s = (along_p - cosine * along_q) / sine2, t = (cosine * along_p - along_q) / sine2;
  if (separation > 0 && (btFabs(s) > view.p[i] + reach || btFabs(t) > view.q[j] + reach)) return false;
  on_p[i] += std::clamp(s, -view.p[i], view.p[i]);
  const btVector3 away = on_q + column * std::clamp(t, -view.q[j], view.q[j]) - view.shift;
  patch.normal = -normal;
  patch.faces = name_edges(name_p, name_q);
  patch.count = 1;
  patch.points[0] = {on_p, view.rows[0] * away.x() + view.rows[1] * away.y() + view.rows[2] * away.z(), separation, 0};
  return true;
}

}  // namespace

bool touch_boxes(const btVector3& a, const btTransform& at_a, const btVector3& b, const btTransform& at_b,
                 btScalar reach, const PatchHistory& history, Patch& patch) {
  const btMatrix3x3 turn = at_a.getBasis().transposeTimes(at_b.getBasis());
  const btVector3 shift = (at_b.getOrigin() - at_a.getOrigin()) * at_a.getBasis();
  const btVector3 *r = &turn[0], size[3] = {r[0].absolute(), r[1].absolute(), r[2].absolute()};

  btScalar face_a = -BT_LARGE_FLOAT, face_b = -BT_LARGE_FLOAT;
  int axis_a = 0, axis_b = 0;
  for (int i = 0; i < 3; ++i) {
    const btScalar s = btFabs(shift[i]) - a[i] - b.dot(size[i]);
    if (s > face_a) face_a = s, axis_a = i;
  }
  if (face_a > reach) return false;
  const btVector3 seen = r[0] * shift.x() + r[1] * shift.y() + r[2] * shift.z();  // along Q's axes
  const btVector3 apart_b = seen.absolute() - b - (size[0] * a.x() + size[1] * a.y() + size[2] * a.z());
  for (int j = 0; j < 3; ++j)
    if (apart_b[j] > face_b) face_b = apart_b[j], axis_b = j;
  if (face_b > reach) return false;

  EdgeAxis edges = best_edges(a, b, r, size, shift, preferred(std::max(face_a, face_b), reach));
  if (edges.a >= 0 && edges.separation > reach) return false;
  const btMatrix3x3 back = turn.transpose();
  const View view{a, b, {r[0], r[1], r[2]}, {back[0], back[1], back[2]}, shift};
  const View other{b, a, {back[0], back[1], back[2]}, {r[0], r[1], r[2]}, -seen};
  const bool is_b = face_b > preferred(face_a, reach);
  const bool on_face = is_b ? touch_face(other, true, axis_b, reach, history, patch)
                            : touch_face(view, false, axis_a, reach, history, patch);
  if (edges.a >= 0) {
    const bool before = edges_go_before(on_face, patch, edges.separation, reach);
    return (before && touch_edges(view, edges, reach, patch)) || on_face;
  }
  if (on_face) return true;
  if ((is_b ? face_b : face_a) > 0) return false;
  edges = best_edges(a, b, r, size, shift, -BT_LARGE_FLOAT);
  return edges.a >= 0 && touch_edges(view, edges, reach, patch);
}

}  // namespace lapjoint
