// A step in substeps: contacts and joints are springs stiff enough for a substep, solved by one sweep; bodies move; a
// second sweep takes back the velocity that the springs gave. Many short steps with one sweep converge better than one
// long step with many (Macklin et al. 2019, "Small Steps in Physics Simulation"; Catto 2024, "Solver2D").
//
// It knows no engine. Bodies, contacts and joints are put in, in an order that decides the result; what became of them
// is there after `step`.
#pragma once

#include <vector>

#include "substeps/backing.h"
#include "substeps/between.h"
#include "substeps/bodies.h"
#include "substeps/contacts.h"
#include "substeps/direct_joints.h"
#include "substeps/joint_wrenches.h"
#include "substeps/joints.h"

namespace lapjoint {

struct SubstepSettings {
  int substeps = 4;
  Real tolerance = 0;     // deepest overlap that a step may leave without being solved with more substeps; 0: any
  int max_substeps = 64;  // with a tolerance
  JointChoice joints = JointChoice::kAuto;
  bool keep_forces = false;  // somebody reads what joints and contacts did
  // Springs: frequency as a share of 1 / substep, and damping ratio.
  Real contact_share = Real(0.25), contact_damping = 1;
  Real joint_share = Real(0.25), joint_damping = 2;
  // Of contacts with a body that has others behind it: a share, or a frequency [Hz] if that is less.
  Real backed_share = Real(0.1), backed_frequency = 60, backed_damping = 2;
  Real push_speed = 1;            // most that an overlap is taken back by; so many units a second
  Real bounce_speed = Real(0.2);  // from which there is restitution; the same
};

// Where a step's time goes [s].
struct SubstepTimes {
  double colouring = 0, preparing = 0, sweeps = 0, between = 0, direct = 0, moving = 0;
};

class SubstepSolver {
 public:
  SubstepSettings settings;
  Bodies bodies;
  std::vector<Contact> contacts;
  std::vector<Surface> surfaces;   // that contacts are with
  std::vector<Shift> shifts;       // of contacts that come within the step
  std::vector<int> contact_order;  // those between own bodies; it decides the result
  JointSweeps joints;
  Between between;  // with bodies of other workers
  DirectJoints direct_joints;
  Backing backing;  // how contacts see bodies of structures that are solved at once
  std::vector<Real> joint_impulses;
  // What rows of joints have done in the last step, at the same places; summed up if somebody wants it.
  std::vector<Real> joint_sums;
  bool sums_joints = false;
  // The same of contacts, of their normal rows.
  std::vector<PointImpulses> contact_sums;
  bool sums_contacts = false;
  // What surfaces that move have done for the bodies that touch them, by contact; empty where there are none.
  std::vector<Real> surface_work;
  // Forces of joints, and what friction has done: summed up in steps that somebody will read.
  JointWrenches wrenches;
  std::vector<FrictionImpulses> friction_sums;
  bool sums_forces = false;

  // With as many substeps as `settings` has. With a tolerance: twice as many, and so on, always from where the step
  // begins, until no contact overlaps by more.
  void step(Real timestep);

  // The largest change of a row's velocity in the last sweep.
  Real residual() const { return residual_; }
  // With a tolerance: the deepest overlap of a contact that the last step has left in any worker.
  Real overlap() const { return overlap_; }
  // Of the last step.
  int substeps() const { return substeps_; }
  const SubstepTimes& times() const { return times_; }
  // Updates of rows in the last step, those of substeps that did not do included.
  long row_updates() const { return row_updates_; }

 private:
  class Clock;
  // Moves bodies, and has the impulses of rows; nothing of it is in the bodies' states, contacts or joints yet.
  void solve(Real timestep, int substeps, int sweep_count, Clock& clock);
  Real find_overlap(Clock& clock);
  void solve_impacts(Clock& clock);
  void add_contacts();
  void add_impacts();
  void add_wrenches();

  ContactSweeps sweeps_;
  std::vector<Real> row_impulses_;  // scratch, of joints in a substep
  int substeps_ = 0;
  bool impacts_cross_ = false;  // some contact between workers has restitution
  Real residual_ = 0, overlap_ = 0;
  SubstepTimes times_;
  long row_updates_ = 0;
};

}  // namespace lapjoint
