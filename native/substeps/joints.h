// Joints in substeps: locked axes in blocks of up to three rows, and rows for limits, drives, springs and friction.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "substeps/bodies.h"
#include "substeps/colours.h"
#include "substeps/contacts.h"
#include "substeps/drive_response.h"

namespace lapjoint {

// Something on one of a joint's six axes that is not locked, or between its bodies.
struct AxisDefinition {
  enum Kind {
    kLower,
    kUpper,
    kMotor,  // also the friction of one axis: a motor that stands still
    kSpring,
    kDrive,
    kEqual,  // as a locked axis
    kDrag    // friction about any axis; a joint has three such, solved together
  };
  // In place of an axis: angles of a ball joint's two x axes, the distance of anchors, how far gears have slipped.
  enum Coordinate { kTwist = 6, kSwing, kGear, kLength };
  int kind, axis;
  Real value;      // the limit, the motor's velocity, the spring's rest, the drive's target
  Real force = 0;  // of a motor, drive or friction, at most
  Real stiffness = 0, damping = 0;
  Real velocity = 0;     // a drive's second target
  bool counted = false;  // an angle over several turns

  bool is_angular() const { return axis >= 3 && axis != kLength; }
  bool is_limit() const { return kind == kLower || kind == kUpper; }
  // Whether a structure that is solved at once has it in its matrix: all but springs, and gears, which keep count.
  bool is_solved_at_once() const { return kind != kSpring && axis != kGear; }
  // Whether it ties bodies together as a locked axis does, if not all the time.
  bool ties() const { return is_solved_at_once() && kind != kDrive; }
  // Whether a row of it that is solved at once may come to a bound of its impulse.
  bool has_bounds() const { return is_solved_at_once() && kind != kEqual && (kind != kDrive || !std::isinf(force)); }
  Real sign() const { return kind == kUpper ? -1 : 1; }  // an upper limit is a lower one of the opposite
};

struct JointDefinition {
  int id = 0;
  int a = 0, b = 0;         // places of bodies
  std::uint8_t locked = 0;  // a bit for each of the six axes
  bool ties = false;        // has something that holds its bodies, all the time or at times
  bool direct = false;      // its locked axes are not swept
  bool may_break = false;   // under its load
  // The joint's frame in each body's.
  Real place_a[3], axes_a[9], place_b[3], axes_b[9];
  int first_axis = 0, axis_count = 0;  // in the list of axes
  int first_impulse = 0;  // in the list of impulses: six for the locked axes, one for each axis, and what is kept
  // Whether a number is kept with the impulses: half turns that its angle is next to, or by how much a gear has
  // slipped.
  bool keeps = false;
  Real ratio = 0;  // of a gear
  // Of a bond, how stiff its rows are: along, and about its three axes. A rigid one is so much heavier than what it
  // holds; an elastic one is a spring, per length and per angle, with damping of so much time.
  enum Bond { kNoBond, kRigid, kElastic };
  Bond bond = kNoBond;
  double bond_stiffness[4] = {0, 0, 0, 0}, bond_damping_time = 0;
  bool shares = false;  // its bodies have more axes than one: limits, drives and the like, of this joint or others

  bool is_point() const { return (locked & 7) == 7; }
  // Whether its bodies are one but for what loads do to it.
  bool welds() const { return locked == 63 && bond != kElastic; }
  int kept_place() const { return first_impulse + 6 + axis_count; }
};

// A row of a joint for where its bodies are, with a Jacobian in their own coordinates.
struct JointRow {
  Real along[3];  // zero for one that turns
  Real own_a[3], own_b[3];
  Real error;
};

struct JointSettings {
  Softness soft;
  Real push_speed = 0;
  Real h = 0;
  int substeps = 1;
};

class JointSweeps {
 public:
  // Anew whenever joints or places of bodies change. `axes` are read in every step: targets may have changed.
  void define(std::vector<JointDefinition> joints, const std::vector<AxisDefinition>& axes, int fixed);
  const std::vector<JointDefinition>& joints() const { return joints_; }
  bool empty() const { return joints_.empty(); }
  // Whether any row reads `Bodies::last`: those of springs and drives do.
  bool reads_last() const { return reads_last_; }
  // Whether rows are made from `Bodies::pose`; points are not.
  bool needs_poses() const { return !turns_.empty() || !slides_.empty() || !axis_rows_.empty() || !drags_.empty(); }

  // `impulses`: of the last step, sums over its substeps.
  void prepare(const Bodies& bodies, const JointSettings& settings, const std::vector<Real>& impulses);
  void warm_start(Bodies& bodies) const;
  // Bodies have moved: rows for where they are. What a row holds up stays what it was at the step's beginning, only its
  // directions and errors are new. With those of the beginning, whatever turns would lose speed to its joints.
  void turn(Bodies& bodies);
  void solve(Bodies& bodies);
  // The largest velocity that a row still had.
  Real relax(Bodies& bodies);
  void store(std::vector<Real>& impulses) const;
  // Adds the impulses of the substep just taken to `sums`, which has their places too.
  void add_impulses(std::vector<Real>& sums) const;
  long row_count() const { return row_count_; }

  // What an axis gives way by for an impulse; and its row for where bodies are, where it is no locked one.
  static double inertia_of(const JointDefinition& joint, const AxisDefinition& axis, const Bodies& bodies);
  static void row_of(const JointDefinition& joint, int axis, const Bodies& bodies, JointRow& row);
  static double angle_of(double angle, double& half_turns);  // over turns, from the half turns it was next to

  // Rows of a joint's locked axes, in their order, for where bodies are.
  static int rows_of(const JointDefinition& joint, const Bodies& bodies, JointRow* rows);
  // The row of one of its other axes, in the direction that its impulses have; its error is the coordinate itself.
  static JointRow row_of_axis(const JointDefinition& joint, const AxisDefinition& axis, const Bodies& bodies);
  // Of turning about a direction of the world.
  static JointRow row_about(const JointDefinition& joint, const double* direction, const Bodies& bodies);

 private:
  struct alignas(64) Block {
    int a[kLanes], b[kLanes];
    bool is_point;
    Lanes root_a, root_b;
    Lanes3 along[3];  // not of points: theirs are the world's axes
    Lanes3 own_a[3], own_b[3];
    Lanes inverse[6];
    Lanes error[3], impulse[3], most;
    Lanes3 arm_a, arm_b, apart;  // of points, when the step begins: arms, and what is between the bodies
    Lanes3 place_a, place_b;     // of points, in the bodies' frames
  };
  struct alignas(64) AxisRow {
    int a[kLanes], b[kLanes];
    Lanes root_a, root_b;
    Lanes3 along, own_a, own_b;
    Lanes error, response, impulse, low, high;
    // impulse = kept * impulse - mass * velocity - extra
    Lanes kept, mass, extra;
  };
  struct Axis {  // of a lane
    int joint = -1, axis = -1;
    bool is_direct = false;                                 // solved with its structure
    bool is_reduced = false;                                // see HeldRows
    Real shares[6] = {0, 0, 0, 0, 0, 0};                    // of its impulse that the joint's locked axes have too
    DriveResponse response;                                 // of a spring or drive
    Real turned_a[3] = {0, 0, 0}, turned_b[3] = {0, 0, 0};  // of a gear: as its bodies were when it was last looked at
  };
  // Friction of four ball joints, about the world's axes.
  struct alignas(64) Drag {
    int a[kLanes], b[kLanes];
    Lanes root_a, root_b;
    Lanes3 along[3], own_a[3], own_b[3];  // reduced: see HeldRows
    Lanes inverse[6], impulse[3], most;
  };

  static void define_blocks(const Colours& colours, const std::vector<int>& joint_of, bool is_point,
                            std::vector<Block>& blocks, std::vector<int>& lanes);
  void prepare_points(const Bodies& bodies);
  void prepare_blocks(std::vector<Block>& blocks, const std::vector<int>& lanes, int first_axis, const Bodies& bodies);
  void prepare_axes(const Bodies& bodies);
  void prepare_drags(const Bodies& bodies, const std::vector<Real>& impulses);
  void put_axis_row(AxisRow& row, int lane, Axis& axis, const Bodies& bodies);
  void put_drag_rows(Drag& drag, int lane, int number, const Bodies& bodies);
  static void put_inverse(Block& block);
  static void put_drag_inverse(Drag& drag);
  // Calls visit(joint, locked axis, share, impulse) for what rows that are reduced do by way of locked axes.
  template <typename Visit>
  void each_share(Visit&& visit) const;
  Real* block_impulse(int joint, int axis);
  int find_sweep_count(const Bodies& bodies);
  void slip(const AxisRow& row, int lane, Axis& axis, const Bodies& bodies);
  void put_block_rows(Block& block, int lane, int number, int first_axis, const Bodies& bodies) const;
  static void turn_points(Block& block, const Bodies& bodies);
  // Calls visit(place, impulse) for every row.
  template <typename Visit>
  void each_impulse(Visit&& visit) const;
  template <bool kBias>
  void update_axes(const Bodies& bodies);
  template <bool kBias>
  Real sweep_blocks(std::vector<Block>& blocks, Bodies& bodies);
  Real sweep_axes(Bodies& bodies);
  Real sweep_drags(Bodies& bodies);
  template <bool kBias>
  Real sweep(Bodies& bodies);

  JointSettings settings_;
  std::vector<JointDefinition> joints_;
  const std::vector<AxisDefinition>* axes_ = nullptr;
  std::vector<Real> kept_;  // of each joint, where it keeps something
  // Blocks that turn, blocks along some axes, points; each with the joint of every lane.
  std::vector<Block> turns_, slides_, points_;
  std::vector<int> turn_lanes_, slide_lanes_, point_lanes_;
  std::vector<AxisRow> axis_rows_;
  std::vector<Axis> axis_lanes_;
  std::vector<Drag> drags_;
  std::vector<int> drag_lanes_;    // their joints
  std::vector<Real> drag_shares_;  // 18 for each lane: of its three rows, of the joint's six axes
  std::vector<int> lane_at_[3];    // by joint: of its block among those that turn, slide, points
  long row_count_ = 0;
  // Of what is swept together: roots of the lightest and the heaviest body's inverse masses.
  struct Masses {
    Real most_root = 0, least_root = 0;
    bool has_axes = false;  // limits, motors and the like
    int joint_count = 0;
  };
  std::vector<Masses> masses_;
  std::vector<int> masses_of_;  // by joint, less than 0: not swept
  int sweep_count_ = 1;
  bool reads_last_ = false;
};

}  // namespace lapjoint
