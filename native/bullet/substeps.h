// Bullet's bodies and contacts, and the scene's joints, as the substep solver has them.
//
// Impulses of normal rows stay with Bullet's contact points from step to step. Those of friction belong to a pair as a
// whole, and are kept here. So is that of a pair's only point: where another takes its place, as under a ball that
// rolls, the pair goes on with it.
#pragma once

#include <array>
#include <cmath>
#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bullet/ahead.h"
#include "bullet/joints.h"
#include "bullet/order.h"
#include "bullet/parts.h"
#include "bullet/surges.h"
#include "substeps/solver.h"

namespace lapjoint {

BodyState state_of(const btRigidBody& body);
void place_body(btRigidBody& body, const BodyState& state);
Real radius_of(const btRigidBody& body);  // of a sphere about its position that it is in

// What is measured of every step. A contact or joint between two workers is counted by the first of them.
struct StepMeasures {
  // As the step begins; lengths in m.
  double contact_count = 0, contact_point_count = 0, penetration_sum = 0, penetration_max = 0;
  double joint_gap_sum = 0, joint_gap_max = 0;
  // Of the step.
  double residual = 0;  // m/s
  double substeps = 0;
  double exchanges = 0, sent_bytes = 0;  // messages to one other worker, at most; and bytes to all
};

// A joint that broke in a step, or would have.
struct JointBreak {
  double step;  // of those taken at once
  double joint;
  double force, torque;  // N, N m: what it did in the step, in the mean
};

// A joint whose counted angle is next to other half turns than before.
struct HalfTurns {
  double step;  // the last of those taken at once
  double joint, half_turns;
};

// A contact that did as much in a step as one of its bodies wants to have reported.
struct Hit {
  double step;            // of those taken at once
  double body_a, body_b;  // the second may be static: -1 - s
  double impulse;         // N s, of all its points along their normals
  double point[3];        // m: the mean of its points as the step began, or as they met in it, by their impulses
  double normal[3];       // the direction in which the first body is pushed: the mean in the same way
};

// What a joint did in a step, in the mean: force [N] and torque about its anchor [N m] on its first body, in the frame
// of the joint on the second one.
struct JointReading {
  int joint;
  double wrench[6];
};

// A point of a contact in a step. The friction of a contact is shared evenly by its points.
struct PointReading {
  double body_a, body_b;              // the second may be static: -1 - s
  double point[3], normal[3], depth;  // m, as the step began; the normal pushes the first body
  double normal_impulse;              // N s, over the step
  double friction_impulse[3];         // N s, on the first body
  double angular_impulse[3];          // N m s, on the first body: of twist and rolling friction
};

// Who touches whom: of the first of some steps, all who do, later what changes.
struct Touch {
  enum Kind { kBegin, kEnd, kNear };  // near: does not touch, but goes on to if it did in the step before
  double step;                        // of those taken at once
  double body_a, body_b;              // the second may be static: -1 - s
  double kind;
  double speed;  // m/s: of what begins, that bodies came nearer with, along the normal
};

// A contact that starts to slide: its points are no faster across the normal than a threshold as the step begins, and
// faster as it ends.
struct Slide {
  double step;            // of those taken at once
  double body_a, body_b;  // the second may be static: -1 - s
  double point[3];        // m: the mean of its points as the step began, weighted by their impulses
  double normal[3];       // the direction in which the first body is pushed: the mean in the same way
  double speed;           // m/s: of its fastest point, as the step ends
};

// What can be read of bodies that sleep, and of those alone.
struct RestingReadings {
  StepMeasures measures;  // of contacts and joints
  std::vector<PointReading> points;
  std::vector<JointReading> joints;
  struct Resting {
    std::uint64_t bodies;  // as in a ContactKey
    bool touches;          // or is only near
  };
  std::vector<Resting> touches;
};

constexpr int kWasThere = 1 << 8;  // flag of a manifold's point: its contact was there in the last step

// Where a manifold's first point keeps a pair's impulses while the world's state is read or written.
template <typename Visit>
void each_kept(btManifoldPoint& point, Visit&& visit) {
  int k = 0;
  for (btScalar* value : {&point.m_contactMotion1, &point.m_contactMotion2, &point.m_contactCFM, &point.m_contactERP,
                          &point.m_frictionCFM, &point.m_prevRHS})
    visit(k++, *value);
}

constexpr double kStillTouching = 0.005;  // in length units: a touch does not end while bodies are nearer than that

// Columns of bodies whose touches are reported.
struct WatchedTouches {
  const double* hit_speed = nullptr;   // m/s; infinite: none
  const bool* touch_events = nullptr;  // whether begin and end are
  bool watches(std::uint64_t body) const { return touch_events[body] || !std::isinf(hit_speed[body]); }
};

class SubstepWorld {
 public:
  SubstepWorld(const SubstepSettings& settings, double length_unit, double mass_unit);
  // The scene's joints, of which there may be more than before.
  void set_tables(int body_count, const JointColumns& joints);
  // Whether a joint locks any axis.
  bool locks(int joint) const { return locked_[joint] != 0; }

  // A joint that holds its bodies; `turn`: from the scene's body frame to Bullet's. Places of bodies are their places
  // in the world's list; `fixed` is one past the last.
  struct LiveJoint {
    int id, a, b;
    btQuaternion turn_a, turn_b;
  };
  // Whenever bodies, joints or neighbours come or go; bodies are in the world's order, neighbours have their places.
  // `whole`: structures across workers, by their lowest bodies, that are narrow enough between workers to be solved at
  // once. `parted`: places of bodies with locking joints to bodies that are not here. `stale`: neighbours are about to
  // change; joints that are nobody's are no error.
  void set_members(const std::vector<btRigidBody*>& bodies, const std::vector<LiveJoint>& joints, int self,
                   std::vector<Neighbour> neighbours, const std::vector<int>& whole, const std::vector<int>& parted,
                   bool stale);

  // Static bodies that move, or whose surface does, by number, ascending, and how they do in the next step.
  void set_surfaces(const std::vector<int>& numbers, const std::vector<const btRigidBody*>& bodies,
                    std::vector<Surface> surfaces);
  // The same surfaces as they moved in the step before; only where contacts that start to slide are looked for.
  void set_earlier_surfaces(std::vector<Surface> surfaces) { earlier_surfaces_ = std::move(surfaces); }

  // Who finds contacts that fast bodies come to within a step, and the gravity that they have.
  void set_ahead(AheadFinder* ahead, const btVector3& gravity) { ahead_ = ahead, gravity_ = gravity; }

  // Thickness of the thinnest body of the scene. What is static and moves no farther in a step than bodies are thick
  // cannot pass through any, however thin it is itself.
  void set_thinnest(btScalar thickness) { thinnest_ = thickness; }

  // From contacts as the dispatcher has them: computes a step, and writes it into the world's bodies and contacts.
  // `is_last`: of those taken at once; its forces are kept, if any are.
  void solve(btDispatcher& dispatcher, btScalar timestep, bool is_last);
  void write_back();

  // Together with other workers. Before contacts are looked for, they send each other where their bodies are.
  void set_mailboxes(Mailboxes* mailboxes) { solver_.between.set_mailboxes(mailboxes); }
  void exchange_states();
  // Own bodies are watched from where they are now, and whether one has moved further than that since: after `solve`.
  // A fast one is watched by where it may be within the next step. `reaches`: of own bodies, in their order.
  struct Reach {
    Real any_way;
    Real low[3], high[3];  // of its position, on its way
  };
  void watch_bodies(const std::vector<const btRigidBody*>& own, const std::vector<Reach>& reaches);
  bool have_moved_far(btScalar timestep) const;
  // Fast bodies, and static ones that move as fast, in a step.
  struct FastBody {
    int number;           // as the broadphase has it
    btVector3 low, high;  // a box that it stays within, whatever it meets, and all that goes on as fast from there
    btVector3 from, to;   // its way, if it meets nothing
    btScalar radius;
  };
  std::vector<FastBody> fast_bodies(btScalar timestep) const;
  // How far it moves in a step if it is fast, else nothing.
  std::optional<btVector3> fast_way(const btRigidBody& body, btScalar timestep) const;
  // Places of own bodies that cannot be computed with any more; within a step that has failed, and after `solve`.
  std::vector<int> find_not_finite() const;
  // Whose constraint one between these bodies is: of the own ones, of a neighbour by its place in the list, or
  // nobody's.
  static constexpr int kOwn = -1, kNobody = -2;
  int owner_of(int place_a, int place_b) const;
  bool is_reported(int owner) const;  // whether this worker counts a constraint of that owner, which two may have

  // Impulses that are kept here go to the contact points for as long as these are read or written, and come back.
  void save_to_points(btDispatcher& dispatcher);
  void load_from_points(btDispatcher& dispatcher);
  // Those of contacts that were in the last step, but have no points any more, after `save_to_points`: of each its two
  // bodies, as the scene numbers them, two parts, which part of the points and how many, and seven impulses.
  static constexpr int kPassedNumbers = 6, kPassedValues = 7;
  int passed_count() const { return static_cast<int>(passed_.size()); }
  void read_passed(int* numbers, btScalar* values) const;
  void add_passed(const int* numbers, const btScalar* values, int count);
  // The same for manifolds of bodies that fall asleep, and that wake.
  void freeze(const std::vector<btPersistentManifold*>& manifolds);
  void thaw(const std::vector<btPersistentManifold*>& manifolds);
  void forget_contacts() { kept_.clear(); }
  void forget_contacts_of(const std::vector<char>& marked_by_id);

  // The island of each body that sleeps, by number; others have kAwake. Read in place. Contacts of those that sleep are
  // left alone.
  void set_islands(const std::vector<int>* islands) { islands_ = islands; }
  bool is_asleep(int number) const { return number < kStaticBase && islands_ && (*islands_)[number] >= 0; }
  // Adds what can be read of a contact that was frozen, and of joints among some bodies, which have their places there.
  void read_resting(btPersistentManifold& manifold, RestingReadings& into) const;
  void read_resting(const std::vector<LiveJoint>& joints, const std::vector<const btRigidBody*>& bodies,
                    btScalar timestep, RestingReadings& into) const;
  // Of all that sleep, from now on.
  void set_resting(RestingReadings all);
  // Whether one of a joint's axes is to move, by a motor or a drive.
  bool is_driven(int joint) const;

  // Warm-start data of joints.
  int joint_impulse_count(const std::vector<int>& live) const;
  void read_joint_impulses(const std::vector<int>& live, int* joint_ids, btScalar* impulses) const;
  void set_joint_impulses(const int* joint_ids, const btScalar* impulses, int count);
  void forget_joint(int joint_id);
  void leave_joint(int joint_id);  // one of its bodies leaves
  void forget_joints();
  void forget_kept();  // what joints keep besides: turns, and how far gears have slipped

  // What drives are to do from the next step on (bullet/drives.cpp): `axes` are those of the joints' six, `targets` two
  // for each, a position and a velocity. One that is not driven is an error. Returns joints that have other targets
  // now.
  std::vector<int> set_drive_targets(const int* joint_ids, const int* axes, const double* targets, int count);
  // All that were set, by six times the joint and the axis; and as if none had been.
  const std::map<int, std::array<double, 2>>& drive_targets() const { return targets_; }
  void forget_drive_targets();
  // Half turns that joints' counted angles are next to; 0 of others.
  void read_half_turns(const int* joint_ids, int count, int* half_turns) const;
  void set_half_turns(const int* joint_ids, int count, const int* half_turns);
  // Joints that are here whose half turns are others than when this was last asked for, or set, ascending.
  std::vector<HalfTurns> take_turned();

  // Of every step since `forget_measures`, without a limit.
  const std::vector<StepMeasures>& measures() const { return measures_; }
  void forget_measures() {
    measures_.clear();
    touches_.clear();
    slides_.clear();
  }
  void measure_mail(const Mailboxes& mailboxes);  // after the step

  // After `solve`: joints that did more than they can bear, ascending. Both workers find one that is between them, from
  // the same numbers; `is_reported`: this one is to tell.
  struct Overload {
    JointBreak found;
    bool is_reported;
  };
  std::vector<Overload> find_overloads(btScalar timestep);

  // After `solve`: islands whose energy rises (bullet/surges.cpp).
  bool some_body_rises() const;
  std::vector<IslandPart> find_parts(bool all_crossing) const;

  // What contacts ask for their surface, if any part of a body has its own or a rule is not the default; else none.
  void set_part_surfaces(const PartTable* surfaces) { part_surfaces_ = surfaces; }

  // After `solve`: adds contacts that did as much as the lower of their bodies' thresholds [N s], in the order of
  // bodies. One between two workers is found by the first of them. Only where it was set before.
  void set_finds_hits(bool finds) { finds_hits_ = finds; }
  void find_hits(const double* thresholds, std::vector<Hit>& into);

  // Of steps from now on, whether touches of these bodies are found; those since `forget_measures`, in the order of
  // steps and bodies. One between two workers is found by the first of them.
  void set_finds_touches(bool finds) { finds_touches_ = finds; }
  void watch_touches(const WatchedTouches& bodies) { watched_touches_ = bodies; }
  const std::vector<Touch>& touches() const { return touches_; }
  // Contacts that start to slide faster than this [m/s]; infinite: they are not looked for. The same for the rest.
  void set_slide_speed(double speed) { slide_speed_ = speed; }
  bool finds_slides() const { return !std::isinf(slide_speed_); }
  const std::vector<Slide>& slides() const { return slides_; }
  // What the last of the steps has left to be read: joints ascending, points in the order of
  // bodies. What is between two workers is kept by the first of them.
  const std::vector<JointReading>& kept_joints() const { return kept_joints_; }
  const std::vector<PointReading>& kept_points() const { return kept_points_; }

  const SubstepSolver& solver() const { return solver_; }
  // Of the last step: to take contacts in, order them, and give them back [s].
  double ordering_time() const { return ordering_; }

 private:
  // Of a contact of the solver, which is some points of a manifold with one normal.
  struct Name {
    std::uint64_t key;  // decides the order
    std::uint64_t bodies, parts;
    int part;  // of the manifold's points
    auto operator<=>(const Name&) const = default;
  };
  struct Source {
    Name name;
    btPersistentManifold* manifold;
    int count;
    std::uint8_t points[Contact::kPoints];
    int owner;
    int ahead = kThere;  // of a contact that comes within the step, its number
    static constexpr int kThere = -1;
  };
  struct Kept {
    Name name;
    int count;
    Real normal;  // of a single point
    Real tangential[3], angular[3];
    // Whether its impulse is that of a source whose only point is new.
    bool replaces(const Source& source) const;
  };
  // In the dispatcher's order, and the numbers of its entries in the order of their names.
  void collect(btDispatcher& dispatcher);
  void add_sources(btPersistentManifold& manifold, int ahead);
  // The parts of a manifold, as many as it has points at most, without their owner; returns how many.
  static int split(btPersistentManifold& manifold, int ahead, Source* into);
  static void save_to_points(const Source& source, const Kept* kept);
  static void load_from_points(const Source& source, std::vector<Kept>& into);
  JointDefinition define_joint(const LiveJoint& joint) const;
  // Contacts that fast bodies come to within the step.
  void find_ahead(btScalar timestep);
  void set_joints(const std::vector<LiveJoint>& joints, int self, std::vector<Neighbour> neighbours,
                  const std::vector<int>& whole, const std::vector<int>& parted, bool stale);
  int place_of(int number) const;
  void add_axes(int joint);
  bool counts_turns(int joint) const;
  void read_contacts();
  void measure_contacts(StepMeasures& into);
  void measure_joints(const std::vector<JointDefinition>& joints, const std::vector<BodyState>& states,
                      StepMeasures& into) const;
  void add_resting(StepMeasures& into) const;
  void add_to_hit(int source, Hit& hit) const;
  void set_energy_limits();
  double driven_work(const JointDefinition& joint, const Bodies& begin) const;
  double axis_error(const JointDefinition& joint, const AxisDefinition& axis, const JointRow& row) const;
  double joint_return(const JointDefinition& joint, const Bodies& begin) const;
  double contact_return(std::size_t number) const;
  void set_sums(bool keeps);
  void keep_forces(btScalar timestep);
  const Real* smoothed_load(int joint, btScalar timestep);
  bool breaks(const JointDefinition& bond, const Real* sums, double force_unit) const;
  void find_touches();
  double approach(int source) const;
  // Of a contact's first body relative to its second, where one of its points is, as the step began or ends.
  btVector3 velocity_at(int source, int point, bool ends) const;
  double sliding_speed(int source, bool ends) const;
  void find_slides();
  double first_side(int source) const;
  btVector3 met_of(int source) const;
  void sort_by_bodies(std::vector<int>& sources);
  void read_body(int place);
  void read_bodies(btScalar timestep);

  JointColumns columns_;
  double length_unit_, mass_unit_;
  static constexpr int kLoadValues = 6;   // that a bond keeps whose load is smoothed, behind its impulses
  std::vector<int> first_impulse_ = {0};  // of each joint of the scene, and where the next one's would be
  std::vector<AxisDefinition> axes_;
  std::vector<int> first_axis_ = {0};
  std::map<int, std::array<double, 2>> targets_;  // of drives, where they were set
  std::vector<std::uint8_t> locked_;
  std::vector<std::uint8_t> ties_;  // see JointDefinition
  struct Counted {
    int joint, place;  // of its half turns
    Real known;        // to whoever asks for them
  };
  std::vector<Counted> counted_;  // by joint
  std::vector<int> axis_counts_;  // by body: axes of its joints
  Counted* find_counted(int joint);
  Structures structures_;
  std::vector<btRigidBody*> bodies_;
  struct Watched {
    int number;
    Real radius;
    Real position[3], axes[9];
    Reach reach;
  };
  const std::vector<int>* islands_ = nullptr;
  RestingReadings resting_;
  AheadFinder* ahead_ = nullptr;
  btVector3 gravity_{0, 0, 0};
  btScalar thinnest_ = 0;
  std::vector<int> fast_;                            // places of fast bodies, ascending
  std::vector<Real> radii_, thickness_, sure_ways_;  // by place
  Real slow_square_ = 0;                             // of the fastest of the others
  std::vector<Watched> watched_;                     // by number; of those that sleep too
  struct Member {
    int place;
    Real rolling;
  };
  const PartTable* part_surfaces_ = nullptr;
  std::vector<Member> members_;  // by body number
  std::vector<const btRigidBody*> moving_statics_;
  std::vector<int> surface_of_;               // by number of a static body; may be too short
  std::vector<int> ghost_of_;                 // by place: the neighbour whose body it is, or kOwn
  std::vector<std::vector<char>> is_border_;  // of each neighbour, by place
  std::vector<char> is_first_;                // of each neighbour: whether this worker comes before it
  std::vector<JointDefinition> measured_joints_;
  struct Breakable {
    JointDefinition joint;
    bool is_reported;
  };
  std::vector<Breakable> breakable_;  // by number
  static constexpr Real kNoLimit = std::numeric_limits<Real>::infinity();
  Real timestep_ = 0;                            // of the last step
  std::vector<Real> energy_limits_;              // by place; of ghosts none
  std::vector<std::pair<int, int>> joint_ends_;  // of all joints between bodies
  std::vector<JointDefinition> driven_;          // with motors, drives or springs, and reported here
  std::vector<StepMeasures> measures_;
  struct MeasuredPair {
    std::uint64_t bodies;
    int points;
    double depth;
  };
  std::vector<MeasuredPair> pairs_;  // scratch
  std::vector<int> wanted_sources_;  // the same
  std::vector<std::pair<std::uint64_t, int>> keyed_sources_;
  bool finds_hits_ = false, finds_touches_ = false;
  WatchedTouches watched_touches_;
  struct Touching {
    std::uint64_t bodies;
    bool is_sure;  // or only so if it was before the first of the steps
  };
  std::vector<Touching> touching_;  // in the order of bodies
  std::vector<Touch> touches_;
  double slide_speed_ = std::numeric_limits<double>::infinity();
  std::vector<Slide> slides_;
  std::vector<Surface> earlier_surfaces_;
  std::vector<JointReading> kept_joints_;
  std::vector<PointReading> kept_points_;
  std::vector<Source> sources_;
  std::vector<std::pair<std::uint64_t, int>> sorted_, scratch_;
  std::vector<Kept> kept_;    // in the order of names
  std::vector<Kept> passed_;  // of them, those without points when points were last saved
  SubstepSolver solver_;
  double ordering_ = 0;
};

}  // namespace lapjoint
