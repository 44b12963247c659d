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

// How two polyhedra touch, if no axis separates them by more than `reach`: the axis of least depth, faces before edges
// by a hundredth of the depth and of the reach; then the one face clipped by the sides of the other. `hint` is the axis
// that separated them last, a face of A, of B, or none; it changes nothing but the time this takes. B's
// faces go before all else by as much as `lean`: a triangle's sides are no faces of the mesh that it is of.
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

// Shares of the reach: by how much a face goes before an edge, contact areas are clipped too wide, and the deepest
// point may change before others are chosen.
constexpr btScalar kPreference = btScalar(0.01), kWiden = btScalar(0.005), kSlack = btScalar(0.05);
constexpr btScalar kRelativePreference = btScalar(0.01);
constexpr btScalar kParallel = btScalar(1e-6);  // square of the sine from which two edges have a common normal

}  // namespace lapjoint
