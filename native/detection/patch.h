// Where two shapes touch: up to four points that span the contact area.
#pragma once

#include <LinearMath/btTransform.h>

#include <cstddef>

namespace lapjoint {

constexpr int kPatchSize = 4;

struct PatchPoint {
  btVector3 on_a, on_b;  // each in its shape's frame
  btScalar distance;     // along the normal; negative inside each other
  int feature;           // which corner, or which side cut it
};

struct Patch {
  btVector3 normal;  // from B to A, in A's frame
  int faces = 0;     // which faces or edges touch
  int count = 0;
  PatchPoint points[kPatchSize];
};

// What a pair's last patch was, as far as the next one may depend on it; read where it is.
struct PatchHistory {
  int count = 0;
  const int* first_faces = nullptr;  // and those of the next points a stride further each
  const int* first_feature = nullptr;
  std::size_t stride = 0;  // in bytes

  int faces(int k) const { return at(first_faces, k); }
  int feature(int k) const { return at(first_feature, k); }
  int at(const int* first, int k) const {
    return *reinterpret_cast<const int*>(reinterpret_cast<const char*>(first) + k * stride);
  }
};

// A corner of the contact area, in the frame of the face that it is clipped to.
struct Candidate {
  btVector3 at;
  btScalar distance;
  int feature;
};

// Picks up to four of the candidates, ascending in `chosen` but for those that were there before: the deepest, and
// those that span the largest area with it. Last time's are kept while the deepest is among them but for `slack`: on
// faces that lie flat on each other, rounding would pick others in every step. Returns how many.
int choose_points(const Candidate* candidates, int count, const btVector3& normal, btScalar slack,
                  const PatchHistory& history, int faces, int* chosen);

}  // namespace lapjoint
