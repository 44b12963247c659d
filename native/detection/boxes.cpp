// Two boxes: fifteen axes, then a rectangle that clips another. What polyhedra.cpp does, with everything in registers.
#include <algorithm>
#include <type_traits>

#include "detection/polyhedron.h"

namespace lapjoint {

namespace {

constexpr int kMostCorners = 8;  // of a rectangle that four sides have clipped

struct Corner {
  btScalar u, v, distance;
  int feature;
};

// Clips to u <= limit, where u is one of the two coordinates times a sign.
template <int Coordinate>
int clip(const Corner* from, int count, btScalar sign, btScalar limit, int side, Corner* to) {
  const auto out_of = [&](const Corner& c) { return sign * (Coordinate == 0 ? c.u : c.v) - limit; };
  int made = 0;
  const Corner* last = from + count - 1;
  btScalar last_out = out_of(*last);
  for (int i = 0; i < count; ++i) {
    const Corner& corner = from[i];
    const btScalar out = out_of(corner);
    if ((out > 0) != (last_out > 0)) {
      const btScalar share = last_out / (last_out - out);
      to[made++] = {last->u + (corner.u - last->u) * share, last->v + (corner.v - last->v) * share,
                    last->distance + (corner.distance - last->distance) * share, name_cut(side, out > 0)};
    }
    if (out <= 0) to[made++] = corner;
    last = &corner;
    last_out = out;
  }
  return made;
}

// Box Q as box P sees it: Q's axes are the columns of `turn`.
struct View {
  btScalar p[3], q[3];
  btScalar turn[3][3];
  btScalar shift[3];
};

bool touch_face(const View& view, bool is_b, int axis, btScalar separation, btScalar reach, const PatchHistory& history,
                Patch& patch) {
  const int ui = (axis + 1) % 3, vi = (axis + 2) % 3;
  const btScalar sign = view.shift[axis] < 0 ? btScalar(-1) : btScalar(1);
  // The face of Q that faces this one most.
  int across = 0;
  for (int j = 1; j < 3; ++j)
    if (btFabs(view.turn[axis][j]) > btFabs(view.turn[axis][across])) across = j;
  const btScalar towards = sign * view.turn[axis][across] > 0 ? btScalar(-1) : btScalar(1);
  const int ki = (across + 1) % 3, li = (across + 2) % 3;
  const auto middle = [&](int i) { return view.shift[i] + towards * view.q[across] * view.turn[i][across]; };
  const btScalar mu = middle(ui), mv = middle(vi), md = sign * middle(axis) - view.p[axis];
  const btScalar ku = view.q[ki] * view.turn[ui][ki], kv = view.q[ki] * view.turn[vi][ki],
                 kd = sign * view.q[ki] * view.turn[axis][ki];
  const btScalar lu = view.q[li] * view.turn[ui][li], lv = view.q[li] * view.turn[vi][li],
                 ld = sign * view.q[li] * view.turn[axis][li];
  Corner buffers[2][kMostCorners] = {{{mu + ku + lu, mv + kv + lv, md + kd + ld, 0},
                                      {mu - ku + lu, mv - kv + lv, md - kd + ld, 1},
                                      {mu - ku - lu, mv - kv - lv, md - kd - ld, 2},
                                      {mu + ku - lu, mv + kv - lv, md + kd - ld, 3}}};
  Corner *now = buffers[0], *next = buffers[1];
  int count = 4;
  const btScalar widen = kWiden * reach, u_limit = view.p[ui] + widen, v_limit = view.p[vi] + widen;
  const btScalar u_half = btFabs(ku) + btFabs(lu), v_half = btFabs(kv) + btFabs(lv);
  const auto cut = [&](auto coordinate, btScalar side_sign, btScalar limit, int side) {
    count = clip<decltype(coordinate)::value>(now, count, side_sign, limit, side, next);
    std::swap(now, next);
  };
  using U = std::integral_constant<int, 0>;
  using V = std::integral_constant<int, 1>;
  if (mu + u_half > u_limit) cut(U(), 1, u_limit, 0);
  if (count > 0 && -mu + u_half > u_limit) cut(U(), -1, u_limit, 1);
  if (count > 0 && mv + v_half > v_limit) cut(V(), 1, v_limit, 2);
  if (count > 0 && -mv + v_half > v_limit) cut(V(), -1, v_limit, 3);

  int kept = 0;
  for (int i = 0; i < count; ++i)
    if (now[i].distance <= reach) now[kept++] = now[i];
  if (kept == 0) {
    // Apart they pass each other by. Inside each other, the corner that is deepest has been cut off by rounding.
    if (separation > 0) return false;
    const int k = kd > 0 ? -1 : 1, l = ld > 0 ? -1 : 1;
    const btScalar ks = btScalar(k), ls = btScalar(l);
    now[kept++] = {mu + ks * ku + ls * lu, mv + ks * kv + ls * lv, separation,
                   k > 0 ? (l > 0 ? 0 : 3) : (l > 0 ? 1 : 2)};
  }
  patch.faces = name_faces(is_b, 2 * axis + int(sign < 0), 2 * across + int(towards < 0));

  int chosen[kPatchSize] = {0, 1, 2, 3};
  patch.count = kept;
  if (kept > kPatchSize) {
    Candidate candidates[kMostCorners];
    for (int i = 0; i < kept; ++i) candidates[i] = {btVector3(now[i].u, now[i].v, 0), now[i].distance, now[i].feature};
    patch.count = choose_points(candidates, kept, btVector3(0, 0, 1), kSlack * reach, history, patch.faces, chosen);
  }
  for (int k = 0; k < patch.count; ++k) {
    const Corner& corner = now[chosen[k]];
    btScalar on_p[3], at[3];
    on_p[ui] = corner.u;
    on_p[vi] = corner.v;
    on_p[axis] = sign * view.p[axis];
    for (int i = 0; i < 3; ++i) at[i] = on_p[i] - view.shift[i];
    at[axis] += sign * corner.distance;
    const btVector3 first(on_p[0], on_p[1], on_p[2]);
    btScalar turned[3];
    for (int j = 0; j < 3; ++j) turned[j] = at[0] * view.turn[0][j] + at[1] * view.turn[1][j] + at[2] * view.turn[2][j];
    const btVector3 second(turned[0], turned[1], turned[2]);
    patch.points[k] = {is_b ? second : first, is_b ? first : second, corner.distance, corner.feature};
  }
  if (is_b) {
    patch.normal = btVector3(view.turn[axis][0], view.turn[axis][1], view.turn[axis][2]) * sign;
  } else {
    btScalar normal[3] = {0, 0, 0};
    normal[axis] = -sign;
    patch.normal = btVector3(normal[0], normal[1], normal[2]);
  }
  return true;
}

// The two edges along axis i of P and axis j of Q that are nearest along the normal.
bool touch_edges(const View& view, int i, int j, const btVector3& normal, btScalar separation, btScalar reach,
                 Patch& patch) {
  btVector3 on_p, on_q(view.shift[0], view.shift[1], view.shift[2]);
  int name_p = i, name_q = j;
  for (int k = 0; k < 3; ++k) {
    const bool ahead = normal[k] > 0;
    on_p[k] = k == i ? btScalar(0) : (ahead ? view.p[k] : -view.p[k]);
    if (k != i) name_p = 2 * name_p + int(ahead);
    const btVector3 column(view.turn[0][k], view.turn[1][k], view.turn[2][k]);
    if (k == j) continue;
    const bool behind = normal.dot(column) < 0;
    on_q += column * (behind ? view.q[k] : -view.q[k]);
    name_q = 2 * name_q + int(behind);
  }
  // From their middles to where their lines are nearest to each other.
  const btVector3 column(view.turn[0][j], view.turn[1][j], view.turn[2][j]), between = on_q - on_p;
  const btScalar cosine = view.turn[i][j], sine2 = 1 - cosine * cosine;
  const btScalar along_p = between[i], along_q = between.dot(column);
  const btScalar s = (along_p - cosine * along_q) / sine2, t = (cosine * along_p - along_q) / sine2;
  if (separation > 0 && (btFabs(s) > view.p[i] + reach || btFabs(t) > view.q[j] + reach)) return false;
  on_p[i] += std::clamp(s, -view.p[i], view.p[i]);
  on_q += column * std::clamp(t, -view.q[j], view.q[j]);
  on_q -= btVector3(view.shift[0], view.shift[1], view.shift[2]);
  btVector3 local;
  for (int k = 0; k < 3; ++k)
    local[k] = on_q[0] * view.turn[0][k] + on_q[1] * view.turn[1][k] + on_q[2] * view.turn[2][k];
  patch.normal = -normal;
  patch.faces = name_edges(name_p, name_q);
  patch.count = 1;
  patch.points[0] = {on_p, local, separation, 0};
  return true;
}

}  // namespace

bool touch_boxes(const btVector3& a, const btTransform& at_a, const btVector3& b, const btTransform& at_b,
                 btScalar reach, const PatchHistory& history, int& hint, Patch& patch) {
  View view;
  const btMatrix3x3 turn = at_a.getBasis().transposeTimes(at_b.getBasis());
  const btVector3 shift = (at_b.getOrigin() - at_a.getOrigin()) * at_a.getBasis();
  btScalar size[3][3];
  for (int i = 0; i < 3; ++i) {
    view.p[i] = a[i];
    view.q[i] = b[i];
    view.shift[i] = shift[i];
    for (int j = 0; j < 3; ++j) view.turn[i][j] = turn[i][j], size[i][j] = btFabs(turn[i][j]);
  }
  const auto &p = view.p, &q = view.q, &t = view.shift;
  const auto& r = view.turn;

  btScalar face_a = -BT_LARGE_FLOAT, face_b = -BT_LARGE_FLOAT;
  int axis_a = 0, axis_b = 0;
  for (int i = 0; i < 3; ++i) {
    const btScalar s = btFabs(t[i]) - p[i] - (q[0] * size[i][0] + q[1] * size[i][1] + q[2] * size[i][2]);
    if (s > face_a) face_a = s, axis_a = i;
  }
  if (face_a > reach) return false;
  btScalar seen[3];  // the shift along Q's axes
  for (int j = 0; j < 3; ++j) {
    seen[j] = t[0] * r[0][j] + t[1] * r[1][j] + t[2] * r[2][j];
    const btScalar s = btFabs(seen[j]) - q[j] - (p[0] * size[0][j] + p[1] * size[1][j] + p[2] * size[2][j]);
    if (s > face_b) face_b = s, axis_b = j;
  }
  if (face_b > reach) return false;

  const auto preferred = [&](btScalar separation) {
    return separation + kPreference * reach + kRelativePreference * btFabs(separation);
  };
  const btScalar least = preferred(std::max(face_a, face_b));
  btScalar edges = least;
  int edge_a = -1, edge_b = -1;
  for (int i = 0; i < 3; ++i) {
    const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
    for (int j = 0; j < 3; ++j) {
      const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
      const btScalar apart = btFabs(t[i2] * r[i1][j] - t[i1] * r[i2][j]) - (p[i1] * size[i2][j] + p[i2] * size[i1][j]) -
                             (q[j1] * size[i][j2] + q[j2] * size[i][j1]);
      // Times the sine of the two: larger than the separation where that is negative.
      if (apart <= edges && apart <= 0) continue;
      const btScalar sine2 = 1 - r[i][j] * r[i][j];
      if (sine2 < kParallel) continue;
      const btScalar separation = apart / btSqrt(sine2);
      if (separation > edges) edges = separation, edge_a = i, edge_b = j;
    }
  }
  (void)hint;
  if (edge_a >= 0) {
    if (edges > reach) return false;
    btVector3 axis(0, 0, 0);
    axis[edge_a] = 1;
    btVector3 normal = axis.cross(btVector3(r[0][edge_b], r[1][edge_b], r[2][edge_b])).normalized();
    if (normal.dot(shift) < 0) normal = -normal;
    return touch_edges(view, edge_a, edge_b, normal, edges, reach, patch);
  }
  if (face_b <= preferred(face_a)) return touch_face(view, false, axis_a, face_a, reach, history, patch);
  View back;
  for (int i = 0; i < 3; ++i) {
    back.p[i] = q[i];
    back.q[i] = p[i];
    back.shift[i] = -seen[i];
    for (int j = 0; j < 3; ++j) back.turn[i][j] = r[j][i];
  }
  return touch_face(back, true, axis_b, face_b, reach, history, patch);
}

}  // namespace lapjoint
