// The Bullet engine behind arrays: bodies are in the world or out of it, states go in and out in bulk.
//
// Numbers at this border are the scene's: metres, kilograms, seconds, scene numbers of bodies and joints. Inside,
// lengths and masses are multiples of `length_unit` and `mass_unit`, because Bullet's margins and thresholds are
// absolute and tuned for bodies of about one unit.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bullet/ahead.h"
#include "bullet/exact.h"
#include "bullet/joints.h"
#include "bullet/motions.h"
#include "bullet/order.h"
#include "bullet/parts.h"
#include "bullet/sensors.h"
#include "bullet/shapes.h"
#include "bullet/sleep.h"
#include "bullet/substeps.h"
#include "fields/fields.h"
#include "solver/direct.h"
#include "solver/open_solver.h"

namespace lapjoint {

constexpr int kStateSize = 13;
// Columns of a world's state: of a body, and the whole and the other numbers of a contact point.
constexpr int kBodyValues = 20, kPointNumbers = 7, kPointValues = 35;

struct WorldSettings {
  double length_unit = 1;             // m; a power of two keeps conversions exact
  double mass_unit = 1;               // kg; the same
  double gravity[3] = {0, 0, -9.81};  // m/s^2
  std::string solver = "sequential";  // substeps, dantzig
  int substeps = 4;                   // with the solver of that name; so the next three
  double tolerance = 0;               // m: overlap from which a step takes more substeps; 0: never
  int max_substeps = 64;              // that it takes then
  std::string joints = "auto";        // direct, swept
  int solver_rows = 300;              // rows with bounds that a direct solver takes on at once
  int iterations = 50;
  double residual_threshold = 0;  // m/s
  double joint_erp = 0.2;
  double contact_erp = 0.05;
  double warm_start = 0.85;
  bool split_impulse = true;
  bool two_friction_directions = true;
  bool sleep = false;           // with the substep solver; so the next three
  double sleep_speed = 0.02;    // length units a second
  double sleep_spin = 0.1;      // rad/s
  int sleep_steps = 250;        // that a body has to be slower for
  double margin = 0.04;         // in length units
  bool exact_shapes = false;    // boxes and hulls end where they are drawn, whatever the margin
  bool has_neighbours = false;  // steps are taken together with other workers
  double timestep = 0;          // s, of the steps that `clearances` look ahead by; 0: they do not
  bool keep_forces = false;     // of the last step of a call, to be read; with the substep solver
  bool finds_surges = true;     // with the substep solver
  // m/s: contacts that start to slide faster than this are found, with the substep solver; infinite: none.
  double slide_speed = std::numeric_limits<double>::infinity();
};

// The scene's body table, column by column; owned by the scene.
struct BodyColumns {
  int count = 0;
  const int* shape_id = nullptr;
  const double* mass = nullptr;
  const double* inertia = nullptr;  // count x 9
  const double* friction = nullptr;
  const double* restitution = nullptr;
  const double* rolling_friction = nullptr;
  const double* linear_damping = nullptr;
  const double* angular_damping = nullptr;
  const std::uint32_t* group = nullptr;
  const std::uint32_t* mask = nullptr;
  const double* hit_impulse = nullptr;  // N s, infinite where no hit is reported
  WatchedTouches touches;
  const std::uint8_t* friction_combine = nullptr;  // CombineRule; the same for restitution
  const std::uint8_t* restitution_combine = nullptr;
};

struct StaticBody {
  int shape_id;
  double place[7];  // position, quaternion w x y z
  double friction, restitution, rolling_friction;
  std::uint32_t group, mask;
  std::uint8_t friction_combine, restitution_combine;
};

// Another worker, and the bodies that both have: own ones, and the other's; ascending.
struct NeighbourBodies {
  int worker, turn;
  std::vector<int> border, ghosts;
  bool operator==(const NeighbourBodies&) const = default;
};

// Of a contact cache, the points of one manifold, as a world's state has them.
struct CachedManifold {
  std::array<int, 2> bodies;
  std::vector<int> numbers;
  std::vector<btScalar> points;
};

// Most that a message of choosing ghosts has for a body.
std::size_t ghost_message_bytes();

class BulletWorld {
 public:
  explicit BulletWorld(const WorldSettings& settings);
  ~BulletWorld();
  BulletWorld(const BulletWorld&) = delete;
  BulletWorld& operator=(const BulletWorld&) = delete;

  // The scene's tables, which are read in place. They may grow: those of before are the first rows of the new ones.
  // `owner` has them, and is kept as long as they are needed: a world may outlive its scene.
  void set_tables(const BodyColumns& bodies, const JointColumns& joints, std::shared_ptr<const void> owner);
  int define_shape(ShapeDefinition definition);
  void ignore_pair(int body_a, int body_b) { filter_.ignore(body_a, body_b); }
  void add_static(const StaticBody& definition);

  // Static bodies that move, or whose surfaces do (bullet/kinematic.cpp); with the substep solver. The velocity of a
  // surface is relative to the body and in its frame: linear, and angular about its position.
  void set_motion(int number, GivenMotion motion);
  void set_surface_velocity(int number, const std::array<double, 6>& velocity);
  // So many steps have been taken: kinematic bodies are where they are then.
  void set_step(std::int64_t step, double timestep);
  // Where they are, in the order of their numbers.
  std::vector<Place> kinematic_places() const;
  void set_kinematic_places(const std::vector<Place>& places);

  // Batches. `states` is count x 13. A number that is missing, doubled, already active (or not active) is a BodyError
  // and leaves the world as it was. A state that is not finite after a step is a NotFiniteError.
  void activate(const int* ids, int count, const double* states);
  // `migrates`: to another worker, so that what sleeps with them has no reason to move.
  void deactivate(const int* ids, int count, bool migrates = false);
  void set_states(const int* ids, int count, const double* states);
  // The i-th state goes to row rows[i], or i where there are no rows.
  void get_states(const int* ids, int count, double* states, const int* rows = nullptr) const;
  void add_forces(const int* ids, int count, const double* forces, const double* torques);

  // Force fields, which push active bodies in every step (bullet/world_fields.cpp). What `call` does comes before: it
  // may add forces, and is given how many steps have been taken. Shapes are those that buoyancy is to know.
  void set_fields(std::vector<FieldDefinition> fields);
  void set_field_shape(int shape_id, FieldShape shape);
  void set_before_step(std::function<void(std::int64_t)> call);
  void field_force(int id, double timestep, double* force, double* torque) const;

  void clear_contacts();  // empty the contact cache and that of joint impulses

  void set_iterations(int iterations) { world_->getSolverInfo().m_numIterations = iterations; }
  void step(double timestep, int count);

  // Steps together with other workers. A body that is near one of another worker's, or jointed to it, is a ghost there:
  // it is no active body, and joints and contacts between a ghost and an own body are solved by both workers. Workers
  // choose ghosts themselves (bullet/ghosts.cpp).
  //
  // `turns`: of this worker's pair with each worker. `whole`: structures across workers that are solved at once where
  // that is little work, by their lowest bodies, ascending.
  void set_turns(int self, std::vector<int> turns, std::vector<int> whole);
  // So many steps, as all other workers do. `choose`: ghosts anew before the first, because bodies have come, gone or
  // been moved; with all workers or with none. False if a step is abandoned: nothing has moved in it.
  bool step_with_neighbours(double timestep, Mailboxes& mailboxes, std::uint64_t attempt, int count, bool choose);
  int ghost_count() const { return static_cast<int>(bodies_.size()) - active_count(); }
  void ghost_ids(int* ids) const;
  // Bodies that were not finite in the last such step that failed: they keep their states.
  const std::vector<int>& lost_bodies() const { return lost_; }

  void detect();
  // What the next step can do already if, of the active bodies, only these are moved before it.
  void prepare(const int* moving, int count);
  // How far pairs of bodies, active or not, are from a contact at the given states (one row per body of the scene):
  // 0 where they have one, or fast bodies come to one within a step; else at least so much [m].
  void clearances(const int* pairs, int count, const double* states, double* clearance);

  // The state that the next step depends on, to the last bit, between two steps: what Bullet holds of each active body,
  // ascending, and every contact point of its cache, one manifold after the other. A world of the same scene and
  // settings that restores it goes on as this one does; whatever it had before is gone. See bullet/state.cpp for the
  // columns.
  int cached_point_count();
  void read_state(btScalar* bodies, bool* prepared, int* point_bodies, int* point_numbers, btScalar* points);
  void restore(const int* ids, int count, const btScalar* bodies, const bool* prepared, int point_count,
               const int* point_bodies, const int* point_numbers, const btScalar* points);
  // Of bodies in the same order: the island of each that sleeps, else -1; and for how many steps it has been still.
  void read_sleep(int* islands, int* still) const;
  // Of bodies that have come from other worlds: their islands are awake, and sleep again as soon as they can.
  void merge_sleep(const int* ids, int count, const int* islands, const int* still);
  void restore_sleep(const int* ids, int count, const int* islands, const int* still);
  // Merge contact points of active bodies from another world's contact cache; they replace those of the same pairs.
  // With neighbours, those of bodies that are not here wait until ghosts are chosen.
  void merge_contact_cache(int point_count, const int* point_bodies, const int* point_numbers, const btScalar* points);
  // Impulses of contacts that were in the last step, in substeps, and have no points in the cache: known once points
  // were counted. See SubstepWorld.
  int passed_count() const { return substeps_ ? substeps_->passed_count() : 0; }
  void read_passed(int* numbers, btScalar* values) const {
    if (substeps_) substeps_->read_passed(numbers, values);
  }
  void add_passed(const int* numbers, const btScalar* values, int count) {
    if (substeps_) substeps_->add_passed(numbers, values, count);
  }
  // Warm-start data of joints, in substeps: their last impulses, one after the other, each with its joint.
  int joint_impulse_count() const;
  void read_joint_impulses(int* joint_ids, btScalar* impulses) const;
  void merge_joint_cache(const int* joint_ids, const btScalar* impulses, int count);

  // Drives and counted angles, in substeps; others have none. See SubstepWorld.
  void set_drive_targets(const int* joint_ids, const int* axes, const double* targets, int count) {
    if (!substeps_) return;
    for (const int joint : substeps_->set_drive_targets(joint_ids, axes, targets, count)) wake_joint(joint);
  }
  // Those that were set, each by six times the joint and the axis, and two numbers.
  int drive_target_count() const { return substeps_ ? static_cast<int>(substeps_->drive_targets().size()) : 0; }
  void read_drive_targets(int* axes, double* targets) const;
  void forget_drive_targets() {
    if (substeps_) substeps_->forget_drive_targets();
  }
  void read_half_turns(const int* joint_ids, int count, int* half_turns) const {
    if (substeps_) substeps_->read_half_turns(joint_ids, count, half_turns);
  }
  void set_half_turns(const int* joint_ids, int count, const int* half_turns) {
    if (substeps_) substeps_->set_half_turns(joint_ids, count, half_turns);
  }
  std::vector<HalfTurns> take_turned() { return substeps_ ? substeps_->take_turned() : std::vector<HalfTurns>(); }

  // Joints that are broken, and no others: they hold nothing, and their bodies may touch. A joint that breaks does so
  // by itself after the step that was too much for it, unless `set_breaks` says otherwise: then it is only reported.
  void set_broken(const std::vector<int>& joint_ids);
  std::vector<int> broken_joints() const;              // ascending
  void add_broken(const std::vector<int>& joint_ids);  // besides those that are
  void set_breaks(bool breaks) { breaks_ = breaks; }
  // In all steps of the last call.
  const std::vector<JointBreak>& breaks() const { return broke_; }
  const std::vector<Hit>& hits() const { return hits_; }
  const std::vector<Surge>& surges() const { return surges_; }
  const std::vector<Touch>& touches() const;
  const std::vector<Slide>& slides() const;
  // Of the last step, with `keep_forces`; of a joint that is not here or did not exist in it, zeros. `forces` is
  // count x 6.
  void joint_forces(const int* joint_ids, int count, double* forces) const;
  const std::vector<PointReading>& contact_points() const;

  // Volumes that sense bodies: see bullet/sensors.h. What one is on is nothing, or the static body s if it is -1 - s.
  void add_sensor(int shape_id, const double* place, std::uint32_t mask, int on);
  SensorWatch* sensors() { return sensors_.get(); }

  // Bodies that sleep (bullet/sleep.cpp): own ones.
  int sleeping_count() const;
  void wake_joint(int joint) {  // its bodies
    wake(joint_columns_.body_a[joint]);
    wake(joint_columns_.body_b[joint]);
  }
  // Own bodies whose states may be others than when this was last called: those that are awake, or were.
  std::vector<int> take_moved();

  int active_count() const;
  void active_ids(int* ids) const;
  int live_joint_count() const { return static_cast<int>(joints_.size()); }
  void live_joint_ids(int* ids) const;
  const std::vector<ContactPair>& contacts();  // of the last step or detect, in order of body numbers
  const std::vector<ContactPair>& collected_contacts() const { return contacts_; }
  double residual() const;  // m/s
  // Of the last step, 0 with another solver; the deepest overlap that it left [m], known with a tolerance.
  int substep_count() const;
  double substep_overlap() const;
  // Where the time of the last step went, in substeps [s]: detection, order, colours, rows, sweeps, direct joints,
  // motion; its updates of rows, and joints that are solved directly.
  std::array<double, 9> substep_profile() const;
  // Of every step of the last call of `step` or `step_with_neighbours`, in substeps; none with another solver.
  const std::vector<StepMeasures>& step_measures() const {
    static const std::vector<StepMeasures> none;
    return substeps_ ? substeps_->measures() : none;
  }
  int fallback_count() const {
    return substeps_ ? substeps_->solver().direct_joints.failed_count() : solver_->fallback_count();
  }

 private:
  struct Slot;  // one active body

  Slot& slot(int body_id) const;
  std::vector<int> cached_joints() const;  // whose impulses are part of the state
  void require(const int* ids, int count, bool active) const;
  std::vector<int> require_new(const int* ids, int count) const;
  void enter(const int* ids, int count, const std::vector<int>& sorted);
  void leave(const std::vector<int>& ids, bool migrates = false);
  std::unique_ptr<Slot> make_body(int body_id) const;
  void place_body(Slot& slot, const double* state) const;
  void enter_broadphase(btRigidBody& body, int number, int shape_id, FilterBits filter, btScalar room = 0);
  btCollisionObject* object(int number) const;  // of a body, or of a static body s: -1 - s
  btPersistentManifold* manifold_of(const int* bodies, const int* numbers);
  void find_pairs_of(const std::vector<int>& ids);
  void connect_joints(const int* ids, int count);
  // Sleep: see bullet/sleep.cpp. What is woken between two steps is announced to other workers as the next one begins.
  struct Group {
    int label = kAwake;  // its lowest own body
    std::vector<int> bodies;
  };
  const std::vector<int>& awake() const { return islands_.empty() ? bodies_ : awake_; }
  void wake(int body, bool stays_still = false);
  void wake_island(int label, bool stays_still = false);
  void wake_all();
  void forget_sleep();
  void forget_sleeper(int ghost);
  std::vector<int> thaw_static(int number);
  bool static_moves(int number) const {
    return number < static_cast<int>(static_moves_.size()) && static_moves_[number];
  }
  void find_touched(double timestep);
  void wake_together(Mailboxes* mailboxes);
  void count_still();
  std::vector<Group> find_resting_groups();
  void agree_on_groups(Mailboxes& mailboxes, std::vector<Group>& groups);
  void fall_asleep(Mailboxes* mailboxes);
  void put_to_sleep(int id, int label);
  void freeze_sleepers();
  void find_step_contacts(double timestep, Mailboxes* mailboxes);
  void find_lost();
  bool is_resting_reported(int a, int b) const;
  int worker_of(int body) const;
  void read_island(SleepingIsland& island);
  void read_resting();
  const std::vector<ContactPair>& resting_contacts();
  static bool comes_before(const ContactPair& x, const ContactPair& y);
  void add_frozen_contacts(std::vector<ContactKey>& keys) const;
  void commit();
  void ask_for_surfaces();
  std::vector<Neighbour> places_of_neighbours() const;
  std::vector<int> parted_places() const;
  void choose_ghosts(Mailboxes& mailboxes, double timestep);
  struct Arriving {
    int id, island;
    BodyState state;
  };
  void set_ghosts(std::vector<NeighbourBodies> chosen, const std::vector<Arriving>& arriving);
  int other_end(int joint, int body) const;
  bool has_points(const std::array<int, 2>& bodies);
  void merge_manifolds(const std::vector<CachedManifold>& given);
  void take_step_with_neighbours(double timestep, Mailboxes& mailboxes, bool is_first, bool is_last);
  bool is_reported(const ContactKey& key) const;
  bool meet_ahead(const int* pair, const double* states, btCollisionObject* objects);  // at these states
  void check_finite() const;
  void bounds(const btRigidBody& body, btVector3& low, btVector3& high) const;
  void watch_forces();
  void add_field_forces(double timestep);
  struct Kinematic;
  Kinematic& kinematic(int number);
  void place_kinematic(Kinematic& body, const Place& place);
  void begin_kinematic_step(double timestep);
  void end_kinematic_step();
  void look_at_sensors();
  // Surges of a step (bullet/surges.cpp): what is found here, before it is finished, and whether other workers are to
  // know; and what all have found.
  static constexpr unsigned kMovesFar = 1, kRises = 2;  // what workers say as they finish a step
  unsigned find_rising();
  void find_surges(Mailboxes* mailboxes);
  void break_overloaded(double timestep);
  void break_joint(int joint);
  void remove_pair(int body_a, int body_b);
  void mend_joint(int joint);
  btVector3 length(const double* xyz) const;

  std::shared_ptr<const void> owner_;  // of the tables; goes last
  WorldSettings settings_;
  BodyColumns body_columns_;
  JointColumns joint_columns_;
  JointLists joint_lists_;
  mutable ShapeLibrary shapes_;
  PartTable parts_;
  WorldConfiguration configuration_;
  PartDispatcher dispatcher_;
  PairFilter filter_{joint_lists_};
  BatchPairCache pairs_;
  btDbvtBroadphase broadphase_;
  std::unique_ptr<OpenSolver> solver_;
  std::unique_ptr<SubstepWorld> substeps_;  // in place of the solver
  int self_ = 0;                            // this worker's number
  std::vector<NeighbourBodies> neighbours_;
  std::vector<int> turns_, whole_, lost_;
  std::vector<char> is_ghost_;           // by body number
  bool ghosts_are_due_ = false;          // somebody's body has moved far since they were chosen
  bool ghosts_are_stale_ = false;        // own bodies have come or gone since
  std::vector<CachedManifold> waiting_;  // for ghosts to be chosen
  std::unique_ptr<OrderedWorld> world_;
  std::unique_ptr<AheadFinder> ahead_;
  std::unique_ptr<btRigidBody> anchor_;  // what joints to the world hold on to

  struct Static {
    std::unique_ptr<btRigidBody> body;
    int shape_id;
  };
  std::vector<Static> statics_;
  // A static body that moves, or whose surface does.
  struct Kinematic {
    int number;
    GivenMotion motion;
    Place now, next;  // at the begin of a step, and at its end
    std::array<double, 6> surface_velocity{};
  };
  std::vector<Kinematic> kinematic_;  // ascending
  Fields fields_;
  std::map<int, FieldShape> field_shapes_;  // by shape number
  std::function<void(std::int64_t)> before_step_;
  std::int64_t step_ = 0;                     // that have been taken
  std::vector<std::unique_ptr<Slot>> slots_;  // by body number; empty: not active
  std::vector<int> bodies_;                   // active body numbers, ascending
  std::vector<btRigidBody*> movers_;          // those that are awake, as the world has them
  std::vector<int> awake_;                    // their numbers, where some sleep
  std::vector<int> island_, still_;           // by body number: kAwake or where it sleeps; steps that it was still for
  std::map<int, SleepingIsland> islands_;     // by their lowest bodies
  FrozenPairs frozen_{dispatcher_, pairs_};
  std::vector<int> touched_, woken_;  // islands: to wake in this step; that have been woken since the last
  std::vector<int> unread_;           // bodies that fell asleep since their states were last read
  std::vector<char> static_moves_;    // by number, in this step; may be too short
  bool resting_changed_ = false, resting_contacts_are_old_ = true;
  std::vector<ContactPair> resting_contacts_;  // ascending
  struct LiveJoint {
    int id;
    std::unique_ptr<btTypedConstraint> constraint;
  };
  std::vector<LiveJoint> joints_;  // ascending
  std::vector<char> joint_live_;
  bool breaks_ = true;
  std::vector<JointBreak> broke_;
  std::vector<Hit> hits_;
  std::vector<IslandPart> rising_;
  std::vector<Surge> surges_;
  std::unique_ptr<SensorWatch> sensors_;
  std::vector<char> mark_;  // scratch, by body number, all zero between calls
  std::vector<ContactKey> contact_keys_;
  std::vector<ContactPair> contacts_;
  btScalar thinnest_ = BT_LARGE_FLOAT;  // thickness of the thinnest body of the scene
  bool members_changed_ = false;
  bool has_grown_ = false;        // by many bodies at once, since the last step
  double detection_time_ = 0;     // of the last step [s]
  bool contacts_solved_ = false;  // the world has the contacts of the last step, in order

  struct Probe {  // a body's shape, kept for `clearances`
    btCollisionShape* shape;
    btQuaternion turn;
  };
  const Probe& probe(int body_id);
  std::map<int, Probe> probes_;
};

}  // namespace lapjoint
