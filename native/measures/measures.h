// Measures of states that take too long in Python. Front: src/lapjoint/scene/measures.py
#pragma once

namespace lapjoint {

// Columns of a scene's joints, as in src/lapjoint/scene/tables.py.
struct JointTable {
  const int* body_a;
  const int* body_b;  // negative: the world
  const double* frame_a;
  const double* frame_b;
  const double* lower;
  const double* upper;
  const double* spring_stiffness;
};

// How far the two anchors of each named joint are apart along the directions it holds.
void joint_gaps(const double* states, const JointTable& joints, int count, const int* joint_ids, double* gaps);

// Sums over all bodies: kinetic energy, linear momentum (3), angular momentum about the origin (3).
void motion(int body_count, const double* states, const double* mass, const double* inertia, double* sums);

}  // namespace lapjoint
