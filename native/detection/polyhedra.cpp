// Two convex polyhedra: separating axes, then clipping.
//
// The axis of largest separation is a face's normal, or the common normal of two edges whose arcs cross on the Gauss
// map (Gregorius, "The Separating Axis Test between Convex Polyhedra", GDC 2013). All of it is in A's frame.
#include <algorithm>

#include "detection/polyhedron.h"

namespace lapjoint {

namespace {

struct FaceAxis {
  btScalar separation = -BT_LARGE_FLOAT;
  int face = -1;
};

struct EdgeAxis {
  btScalar separation = -BT_LARGE_FLOAT;
  int a = -1, b = -1;
  btVector3 normal;  // from A to B
};

struct TurnedEdge {
  btVector3 along, left, right, at;
  int number;
};

struct Workspace {
  std::vector<btScalar> bounds;
  std::vector<TurnedEdge> edges_a, edges_b;
  std::vector<Candidate> area, clipped;
};

Workspace& workspace() {
  static thread_local Workspace space;
  return space;
}

// Q as P sees it.
struct View {
  const Polyhedron &p, &q;
  btMatrix3x3 turn;
  btVector3 shift;
  btVector3 to_q(const btVector3& direction) const { return direction * turn; }
  btScalar separation(int face) const {
    const Polyhedron::Face& f = p.faces[face];
    return q.least_along(to_q(f.normal)) + f.normal.dot(shift) - f.offset;
  }
};

// The face of P that separates most. A face cannot separate by more than its distance from the ball inside Q: those
// that are no better by that than the best so far are left out.
FaceAxis best_face(const View& view, btScalar reach) {
  std::vector<btScalar>& bounds = workspace().bounds;
  const btVector3 middle = view.turn * view.q.centre + view.shift;
  const int count = static_cast<int>(view.p.faces.size());
  bounds.resize(count);
  int likely = 0;
  for (int f = 0; f < count; ++f) {
    bounds[f] = view.p.faces[f].normal.dot(middle) - view.p.faces[f].offset - view.q.inner;
    if (bounds[f] > bounds[likely]) likely = f;
  }
  // A bound is rounded too: one in a hundred thousand.
  const btScalar room = btScalar(1e-5) * (btFabs(bounds[likely]) + view.q.inner);
  FaceAxis best{view.separation(likely), likely};
  for (int f = 0; f < count && best.separation <= reach; ++f) {
    if (f == likely || bounds[f] + room < best.separation) continue;
    const btScalar separation = view.separation(f);
    if (separation > best.separation || (separation == best.separation && f < best.face)) best = {separation, f};
  }
  return best;
}

// Edges of the one that can separate by more than `least` from what is in direction `away`.
template <typename Turn>
void collect_edges(const Polyhedron& shape, const btVector3& away, btScalar least, Turn&& turn,
                   std::vector<TurnedEdge>& into) {
  into.clear();
  for (int i = 0; i < static_cast<int>(shape.edges.size()); ++i) {
    const Polyhedron::Edge& edge = shape.edges[i];
    if (least > 0 && edge.left.dot(away) < least && edge.right.dot(away) < least) {
      // Not at the ends of its arc; perhaps where the arc is nearest to the direction.
      const btScalar along = edge.along.dot(away);
      if (away.length2() - along * along < least * least) continue;
      const btVector3 across = away.cross(edge.along);
      if (across.dot(edge.left) < 0 || across.dot(edge.right) > 0) continue;
    }
    into.push_back(turn(edge, i));
  }
}

EdgeAxis best_edges(const View& view, btScalar least, btScalar reach) {
  Workspace& space = workspace();
  const btVector3 away = view.turn * view.q.centre + view.shift - view.p.centre;
  const btScalar bound = (least + view.p.inner + view.q.inner) * btScalar(1 - 1e-5);
  collect_edges(
      view.p, away, bound,
      [](const Polyhedron::Edge& edge, int i) { return TurnedEdge{edge.along, edge.left, edge.right, edge.at, i}; },
      space.edges_a);
  collect_edges(
      view.q, -view.to_q(away), bound,
      [&](const Polyhedron::Edge& edge, int i) {
        return TurnedEdge{view.turn * edge.along, -(view.turn * edge.left), -(view.turn * edge.right),
                          view.turn * edge.at + view.shift, i};
      },
      space.edges_b);
  EdgeAxis best;
  best.separation = least;
  for (const TurnedEdge& a : space.edges_a) {
    for (const TurnedEdge& b : space.edges_b) {
      // The arcs of their normals cross: the ends of each are on both sides of the other, and on the same half.
      const btScalar cl = b.left.dot(a.along), cr = b.right.dot(a.along);
      if (cl * cr >= 0) continue;
      const btScalar al = a.left.dot(b.along), ar = a.right.dot(b.along);
      if (al * ar >= 0 || cl * ar <= 0) continue;
      btVector3 normal = a.along.cross(b.along);
      const btScalar sine2 = normal.length2();
      if (sine2 < kParallel) continue;
      normal /= btSqrt(sine2);
      if (normal.dot(a.left + a.right) < 0) normal = -normal;
      const btScalar separation = normal.dot(b.at - a.at);
      if (separation <= best.separation) continue;
      best = {separation, a.number, b.number, normal};
      if (separation > reach) return best;
    }
  }
  return best;
}

// Of the face of Q that faces P's face most, what is within the sides of P's face.
void clip(const View& view, int reference, int& incident, btScalar widen) {
  Workspace& space = workspace();
  const Polyhedron &p = view.p, &q = view.q;
  const Polyhedron::Face& face = p.faces[reference];
  const btVector3 direction = view.to_q(face.normal);
  const int corner = q.corner_along(direction);
  incident = q.corner_faces[q.corner_first[corner]];
  for (int k = q.corner_first[corner]; k < q.corner_first[corner + 1]; ++k)
    if (q.faces[q.corner_faces[k]].normal.dot(direction) < q.faces[incident].normal.dot(direction))
      incident = q.corner_faces[k];
  const Polyhedron::Face& other = q.faces[incident];
  space.area.clear();
  for (int k = 0; k < other.count; ++k) {
    const int at = q.loops[other.first + k];
    const btVector3 place = view.turn * q.corners[at] + view.shift;
    space.area.push_back({place, face.normal.dot(place) - face.offset, at});
  }
  for (int k = 0; k < face.count && !space.area.empty(); ++k) {
    const btVector3& side = p.sides[face.first + k];
    const btScalar offset = side.dot(p.corners[p.loops[face.first + k]]) + widen;
    bool cuts = false;
    for (const Candidate& point : space.area) cuts |= side.dot(point.at) > offset;
    if (!cuts) continue;
    space.clipped.clear();
    const Candidate* last = &space.area.back();
    btScalar last_out = side.dot(last->at) - offset;
    for (const Candidate& point : space.area) {
      const btScalar out = side.dot(point.at) - offset;
      if ((out > 0) != (last_out > 0)) {
        const btScalar share = last_out / (last_out - out);
        space.clipped.push_back({last->at + (point.at - last->at) * share,
                                 last->distance + (point.distance - last->distance) * share, name_cut(k, out > 0)});
      }
      if (out <= 0) space.clipped.push_back(point);
      last = &point;
      last_out = out;
    }
    space.area.swap(space.clipped);
  }
}

// Nothing, if the two faces pass each other by: apart, or because two edges separate a little more.
bool touch_face(const View& view, bool is_b, const FaceAxis& axis, btScalar reach, const PatchHistory& history,
                Patch& patch) {
  std::vector<Candidate>& area = workspace().area;
  const btVector3& normal = view.p.faces[axis.face].normal;
  int incident;
  clip(view, axis.face, incident, kWiden * reach);
  std::erase_if(area, [&](const Candidate& point) { return point.distance > reach; });
  if (area.empty()) return false;
  patch.faces = name_faces(is_b, axis.face, incident);
  int chosen[kPatchSize];
  patch.count =
      choose_points(area.data(), static_cast<int>(area.size()), normal, kSlack * reach, history, patch.faces, chosen);
  for (int k = 0; k < patch.count; ++k) {
    const Candidate& point = area[chosen[k]];
    const btVector3 on_p = point.at - normal * point.distance, on_q = (point.at - view.shift) * view.turn;
    patch.points[k] = {is_b ? on_q : on_p, is_b ? on_p : on_q, point.distance, point.feature};
  }
  patch.normal = is_b ? normal * view.turn : -normal;
  return true;
}

bool touch_edges(const View& view, const EdgeAxis& axis, btScalar reach, Patch& patch) {
  const Polyhedron::Edge &a = view.p.edges[axis.a], &b = view.q.edges[axis.b];
  const btVector3 along_b = view.turn * b.along, between = view.turn * b.at + view.shift - a.at;
  // Where the lines are nearest to each other, and within their ends but for the reach if they are apart.
  const btScalar cosine = a.along.dot(along_b), sine2 = 1 - cosine * cosine;
  const btScalar on_a = between.dot(a.along), on_b = between.dot(along_b);
  btScalar s = (on_a - cosine * on_b) / sine2, t = (cosine * on_a - on_b) / sine2;
  if (axis.separation > 0 && (s < -reach || s > a.length + reach || t < -reach || t > b.length + reach)) return false;
  s = std::clamp(s, btScalar(0), a.length);
  t = std::clamp(t, btScalar(0), b.length);
  patch.normal = -axis.normal;
  patch.faces = name_edges(axis.a, axis.b);
  patch.count = 1;
  patch.points[0] = {a.at + a.along * s, b.at + b.along * t, axis.separation, 0};
  return true;
}

}  // namespace

bool touch_polyhedra(const Polyhedron& a, const btTransform& at_a, const Polyhedron& b, const btTransform& at_b,
                     btScalar reach, const PatchHistory& history, int& hint, Patch& patch, btScalar lean) {
  const btMatrix3x3 turn = at_a.getBasis().transposeTimes(at_b.getBasis());
  const btVector3 shift = (at_b.getOrigin() - at_a.getOrigin()) * at_a.getBasis();
  const View from_a{a, b, turn, shift}, from_b{b, a, turn.transpose(), -(shift * turn)};
  const int faces_a = static_cast<int>(a.faces.size());
  if (hint >= 0 && (hint < faces_a ? from_a.separation(hint) : from_b.separation(hint - faces_a)) > reach) return false;
  hint = -1;
  const FaceAxis face_a = best_face(from_a, reach);
  if (face_a.separation > reach) return hint = face_a.face, false;
  const FaceAxis face_b = best_face(from_b, reach);
  if (face_b.separation > reach) return hint = faces_a + face_b.face, false;
  const btScalar face = std::max(face_a.separation, face_b.separation + lean);
  const EdgeAxis edges = best_edges(from_a, preferred(face, reach), reach);
  if (edges.separation > reach && edges.a >= 0) return false;
  const bool is_b = face_b.separation + lean > preferred(face_a.separation, reach);
  const FaceAxis& axis = is_b ? face_b : face_a;
  const bool on_face = touch_face(is_b ? from_b : from_a, is_b, axis, reach, history, patch);
  if (edges.a >= 0) {
    const bool before = edges_go_before(on_face, patch, edges.separation, reach);
    return (before && touch_edges(from_a, edges, reach, patch)) || on_face;
  }
  if (on_face) return true;
  if (axis.separation > 0 || lean > 0) return false;
  const EdgeAxis any = best_edges(from_a, -BT_LARGE_FLOAT, reach);
  return any.a >= 0 && touch_edges(from_a, any, reach, patch);
}

}  // namespace lapjoint
