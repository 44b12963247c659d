// Convex polyhedra: their faces and edges, and how two of them touch.
#pragma once

#include <LinearMath/btTransform.h>

#include <vector>

#include "detection/patch.h"

namespace lapjoint {

struct Polyhedron {
  struct Face {
    btVector3 normal;  // outwards
    btScalar offset;   // of its plane: normal . x
    int first, count;  // its corners in `loops`, counterclockwise seen from outside
  };
  struct Edge {
    btVector3 at, along;    // a corner, and the unit vector to the other as the left face goes round
    btVector3 left, right;  // normals of its two faces
    btScalar length;
    int from, to;  // the two corners
  };

  std::vector<btVector3> corners;
  std::vector<Face> faces;
  std::vector<Edge> edges;
  std::vector<int> loops;
  std::vector<btVector3> sides;   // of each corner in `loops`: outward normal of the side to the next one
  std::vector<int> corner_faces;  // faces around each corner: from corner_first[i] to corner_first[i + 1]
  std::vector<int> corner_first;
  std::vector<btScalar> x, y, z;  // of corners, the last one repeated up to a multiple of eight
  btVector3 centre;               // mean of the corners
  btScalar inner = 0;             // radius of a ball around it that is inside

  // The hull of points (x y z ...), in units of `unit`. Faces that are flat to a hundred thousandth of the size are
  // one; a hull thinner than a ten thousandth of its size is made so thick.
  static Polyhedron hull(const double* points, int count, double unit);
  static Polyhedron box(const btVector3& half);
  // The two ends of a cylinder along z alone, of 24 sides each.
  static Polyhedron ends(btScalar radius, btScalar half);
  // The base of a cone alone, so far below its centre.
  static Polyhedron base(btScalar radius, btScalar below);
  // Two faces back to back; into one that has been a triangle before, or is new.
  static void make_triangle(const btVector3* corner, Polyhedron& into);

  btScalar least_along(const btVector3& direction) const;
  int corner_along(const btVector3& direction) const;  // the first of those that are least
  void finish();                                       // everything that follows from corners, faces and loops
};

// How two polyhedra touch, if no axis separates them by more than `reach`: the axis of least depth, then the one face
// clipped by the sides of the other. Two edges go before that face only where they separate more than its deepest
// clipped point: of edges that are nearly parallel, rounding would choose one pair in one step and the face in the
// next. `hint` is the axis that separated them last, a face of A, of B, or none; it changes nothing but the time this
// takes. B's faces go before all else by as much as `lean`: a triangle's sides are no faces of the mesh that it is of.
bool touch_polyhedra(const Polyhedron& a, const btTransform& at_a, const Polyhedron& b, const btTransform& at_b,
                     btScalar reach, const PatchHistory& history, int& hint, Patch& patch, btScalar lean = 0);

// The same for two boxes with these half edges.
bool touch_boxes(const btVector3& a, const btTransform& at_a, const btVector3& b, const btTransform& at_b,
                 btScalar reach, const PatchHistory& history, Patch& patch);

// Names of what touches, to find a point again in the next step. A point is a corner of the clipped face, or where a
// side cuts it on the way in or out.
inline int name_faces(bool is_b, int reference, int incident) {
  return (incident & 0x7FFF) << 16 | (reference & 0x3FFF) << 2 | int(is_b);
}
inline int name_edges(int a, int b) { return (a & 0x7FFF) << 16 | (b & 0x3FFF) << 2 | 2; }
inline int name_cut(int side, bool leaving) { return 0x10000 + 2 * side + int(leaving); }

// Shares of the reach: by how much a face goes before an edge, contact areas are clipped too wide, the deepest point
// may change before others are chosen, and what is left of a face may be shallower than two edges.
constexpr btScalar kPreference = btScalar(0.01), kWiden = btScalar(0.005), kSlack = btScalar(0.05),
                   kGuard = btScalar(0.25);
constexpr btScalar kRelativePreference = btScalar(0.01);
constexpr btScalar kParallel = btScalar(1e-6);  // square of the sine from which two edges have a common normal

// By how much something must separate to go before a face that separates by this.
inline btScalar preferred(btScalar separation, btScalar reach) {
  return separation + kPreference * reach + kRelativePreference * btFabs(separation);
}

// Whether two edges that separate by so much go before what is left of a face: where there is nothing, where all of it
// is deeper, and where the sides have cut off all that is deep.
inline bool edges_go_before(bool on_face, const Patch& patch, btScalar separation, btScalar reach) {
  if (!on_face) return true;
  btScalar deepest = patch.points[0].distance;
  for (int k = 1; k < patch.count; ++k) deepest = btMin(deepest, patch.points[k].distance);
  return separation > preferred(deepest, reach) || deepest > separation + kGuard * reach;
}

}  // namespace lapjoint
