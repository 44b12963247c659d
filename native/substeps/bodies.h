// What a step moves, in coordinates in which every body has the mass one.
//
// A velocity is held multiplied by the root of the mass, an angular velocity along the body's principal axes (as they
// lie when the step begins) and multiplied by the roots of the moments of inertia. A constraint's Jacobian is divided
// by the same: an impulse then changes a velocity by itself, without any inertia, and what cannot move has a Jacobian
// of zero. How far a body has moved since the step began is held alike, so the same Jacobian gives what became of a
// gap.
#pragma once

#include <vector>

#include "substeps/lanes.h"

namespace lapjoint {

// Of a body, from where Bullet has it to where Bullet takes it back.
struct BodyState {
  Real position[3];
  Real axes[9];  // row-major: columns are the principal axes in the world
  Real linear[3], angular[3];
};

// What does not change in a step.
struct BodyTraits {
  Real inverse_mass = 0, inverse_inertia[3] = {0, 0, 0};
  Real force[3] = {0, 0, 0}, torque[3] = {0, 0, 0};
  Real linear_damping = 0, angular_damping = 0;  // share of its velocity that it loses in a second
  bool gyroscopic = false;
  bool falls = false;  // no force but gravity
};

// Where a body is now.
struct Pose {
  double position[3], axes[9];
};

struct alignas(64) Motion {
  Lanes linear, angular;  // velocity; the fourth lane is zero, here and below
  Lanes moved, turned;    // since the step began
};

inline Real kinetic_energy(const Motion& motion) {
  const Lanes squares = motion.linear * motion.linear + motion.angular * motion.angular;
  return Real(0.5) * (squares[0] + squares[1] + squares[2]);
}

// From a world's vector to the body's own coordinates.
struct alignas(64) Frame {
  Lanes rows[3];  // of the matrix for angular Jacobians; the fourth lane: a coordinate of the position
  Lanes root;     // its first lane: 1 / root of the mass
};

// The same for four bodies.
struct Frames {
  Lanes3 rows[3], position;
  Lanes root;

  LAPJOINT_INLINE Lanes3 own(const Lanes3& world) const {
    return {dot(rows[0], world), dot(rows[1], world), dot(rows[2], world)};
  }
  // A rotation vector back in the world.
  LAPJOINT_INLINE Lanes3 world(const Lanes3& own) const {
    Lanes3 out = own.x * rows[0];
    add(own.y, rows[1], out);
    add(own.z, rows[2], out);
    return out;
  }
};

struct Bodies {
  std::vector<Motion> motion;  // one more than there are bodies: the last cannot move
  std::vector<Frame> frame;
  std::vector<BodyState> start;
  std::vector<BodyTraits> traits;
  std::vector<Pose> pose;  // of the last `find_poses`

  // What joints alone need is there only where the scene has some.
  void resize(int count, bool jointed);
  int fixed() const { return static_cast<int>(motion.size()) - 1; }

  // From `start` and `traits`.
  void begin(Real timestep, int substeps);
  // Adds what forces do in a substep, and what all constraints did in the last one. A body that carries nothing, as in
  // free flight, gets half of what gravity does here and half after it has moved: so it keeps its energy. One that
  // carries something would creep with it, and a pendulum would gain energy: its arms have turned by then.
  void begin_substep();
  void move(Real h);
  void find_poses();
  void find_pose(int place);
  void end_substep();
  // Into `start`.
  void finish(Real timestep, int substeps);
  // Rows have put last step's impulses into `moved` and `turned`: bodies carry them into the first substep. Of a body
  // that turns freely, half of what gyroscopic torques do comes here and half after the step: so it keeps its energy. A
  // fast one that is held has them in each substep.
  void take_carried();

  struct alignas(2 * sizeof(Lanes)) Twist {
    Lanes linear, angular;
  };
  // What the impulses of rows of joints that turned with their bodies are more than before: into the next substep with
  // them.
  std::vector<Twist> turned_impulses;
  // Velocities at the end of the last substep, for joints.
  std::vector<Twist> last;
  // By how much a body's kinetic energy has grown in the step, less what forces have done for it. Where they have
  // worked against it nothing is added: what it has gained in height does not count. Set by `finish`.
  std::vector<Real> gain;

  // What velocities will change by in the substep that is about to begin, without new impulses: before bodies move, and
  // in all.
  struct alignas(4 * sizeof(Lanes)) Coming {
    Lanes linear, angular, all_linear, all_angular;
  };
  std::vector<Coming> coming;  // where it was found since the last `forget_coming`
  void forget_coming() { has_coming_.assign(motion.size(), 0); }
  void find_coming(int place) {
    if (!has_coming_[place]) compute_coming(place);
  }
  void find_coming();  // of all

 private:
  void spin(int place);
  bool is_in_flight(int place) const;
  void compute_coming(int place);

  bool jointed_ = false;
  Real h_ = 0, timestep_ = 0;
  std::vector<char> spins_;  // fast, and is held
  std::vector<char> has_coming_;
  std::vector<Twist> pushed_;  // by forces in a substep; the fourth lane: share of velocity that is kept
  // Between substeps, what all constraints did in the last one; within one, velocities before any constraint.
  std::vector<Twist> carried_;
  std::vector<Real> flight_limit_;  // square of what a body carries at most in free flight; negative: never is
  std::vector<Real> late_;          // share of what forces do in this substep that comes after bodies have moved
};

template <auto Row, typename Of>
LAPJOINT_INLINE Lanes3 gather(const Of* of, const int* places) {
  Lanes a = of[places[0]].*Row, b = of[places[1]].*Row, c = of[places[2]].*Row, d = of[places[3]].*Row;
  transpose(a, b, c, d);
  return {a, b, c};
}

// Places that cannot move may be there several times, all others once.
template <auto Row, typename Of>
LAPJOINT_INLINE void scatter(const Lanes3& values, Of* of, const int* places) {
  Lanes a = values.x, b = values.y, c = values.z, d = all(0);
  transpose(a, b, c, d);
  of[places[0]].*Row = a;
  of[places[1]].*Row = b;
  of[places[2]].*Row = c;
  of[places[3]].*Row = d;
}

inline Frames gather_frames(const Frame* frames, const int* places) {
  Frames out;
  Lanes* position[3] = {&out.position.x, &out.position.y, &out.position.z};
  for (int k = 0; k < 3; ++k) {
    Lanes a = frames[places[0]].rows[k], b = frames[places[1]].rows[k], c = frames[places[2]].rows[k],
          d = frames[places[3]].rows[k];
    transpose(a, b, c, d);
    out.rows[k] = {a, b, c};
    *position[k] = d;
  }
  for (int i = 0; i < kLanes; ++i) out.root[i] = frames[places[i]].root[0];
  return out;
}

}  // namespace lapjoint
