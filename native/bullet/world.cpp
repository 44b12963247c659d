#include "bullet/world.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "assertions.h"
#include "bullet/errors.h"
#include "bullet/frames.h"
#include "bullet/memory.h"
#include "bullet/slot.h"
#include "bullet/tree.h"

namespace lapjoint {

namespace {

constexpr btScalar kTreeMargin = btScalar(0.05);  // that Bullet's tree adds to a box that moves
constexpr btScalar kFarthest = btScalar(1e9);     // that a plane's box reaches
constexpr int kMany = 512;                        // bodies of a batch that are worth building the tree anew

// A level plane's box ends above it, so that bodies in the air are no pairs with it.
void bound_plane(const btRigidBody& body, btVector3& low, btVector3& high) {
  const auto& plane = *static_cast<const btStaticPlaneShape*>(body.getCollisionShape());
  const btVector3 normal = body.getWorldTransform().getBasis() * plane.getPlaneNormal();
  const int axis = normal.absolute().maxAxis();
  for (int k = 0; k < 3; ++k)
    if (k != axis && normal[k] != 0) return;
  const btScalar at = body.getWorldTransform().getOrigin()[axis] + normal[axis] * plane.getPlaneConstant();
  if (normal[axis] > 0)
    high[axis] = at + gContactBreakingThreshold;
  else
    low[axis] = at - gContactBreakingThreshold;
}

}  // namespace

BulletWorld::BulletWorld(const WorldSettings& settings)
    : settings_(settings),
      shapes_(settings.length_unit, settings.margin, settings.exact_shapes),
      parts_(settings.length_unit),
      configuration_(settings.exact_shapes),
      dispatcher_(&configuration_, parts_),
      broadphase_(&pairs_) {
  if (settings.solver == "substeps") {
    SubstepSettings own;
    own.substeps = settings.substeps;
    own.tolerance = Real(settings.tolerance / settings.length_unit);
    own.max_substeps = settings.max_substeps;
    own.joints = settings.joints == "direct"  ? JointChoice::kDirect
                 : settings.joints == "swept" ? JointChoice::kSwept
                                              : JointChoice::kAuto;
    own.keep_forces = settings.keep_forces;
    own.push_speed /= Real(settings.length_unit);
    own.bounce_speed /= Real(settings.length_unit);
    substeps_ = std::make_unique<SubstepWorld>(own, settings.length_unit, settings.mass_unit);
    substeps_->set_slide_speed(settings.slide_speed);
    solver_ = std::make_unique<OpenSolver>();  // the world wants one
  } else {
    solver_ = make_solver(settings.solver, settings.solver_rows);
  }
  filter_.set_ghosts(&is_ghost_);
  pairs_.setOverlapFilterCallback(&filter_);
  // A plane finds one corner of a body a step; these look for the others at once, or sliding bodies rock.
  configuration_.setPlaneConvexMultipointIterations(4, 4);
  world_ =
      std::make_unique<OrderedWorld>(&dispatcher_, &broadphase_, solver_.get(), &configuration_, settings.exact_shapes);
  world_->setGravity(length(settings.gravity));
  ahead_ = std::make_unique<AheadFinder>(dispatcher_, broadphase_, filter_, world_->getDispatchInfo());
  if (substeps_) substeps_->set_ahead(ahead_.get(), world_->getGravity());
  if (substeps_ && settings.sleep) substeps_->set_islands(&island_);
  btContactSolverInfo& info = world_->getSolverInfo();
  const double threshold = settings.residual_threshold / settings.length_unit;
  info.m_numIterations = settings.iterations;
  info.m_leastSquaresResidualThreshold = btScalar(threshold * threshold);
  info.m_erp = btScalar(settings.joint_erp);
  info.m_erp2 = btScalar(settings.contact_erp);
  info.m_warmstartingFactor = btScalar(settings.warm_start);
  info.m_splitImpulse = settings.split_impulse;
  info.m_restitutionVelocityThreshold = btScalar(0.2 / settings.length_unit);
  if (settings.two_friction_directions) info.m_solverMode |= SOLVER_USE_2_FRICTION_DIRECTIONS;

  anchor_ = std::make_unique<btRigidBody>(btRigidBody::btRigidBodyConstructionInfo(0, nullptr, nullptr));
}

void BulletWorld::set_tables(const BodyColumns& bodies, const JointColumns& joints, std::shared_ptr<const void> owner) {
  const std::shared_ptr<const void> before = std::exchange(owner_, std::move(owner));
  body_columns_ = bodies;
  joint_columns_ = joints;
  parts_.set_bodies(body_columns_);
  for (int id = static_cast<int>(slots_.size()); id < bodies.count; ++id)
    thinnest_ = std::min(thinnest_, shapes_.thickness(bodies.shape_id[id]));
  slots_.resize(bodies.count);
  island_.resize(bodies.count, kAwake);
  still_.resize(bodies.count, 0);
  frozen_.set_body_count(bodies.count);
  is_ghost_.resize(bodies.count, 0);
  mark_.resize(bodies.count, 0);
  const int first = static_cast<int>(joint_live_.size());
  joint_live_.resize(joints.count, 0);
  joint_lists_.set_joints(bodies.count, joints);
  if (substeps_) {
    substeps_->set_tables(bodies.count, joints);
    substeps_->watch_touches(bodies.touches);
    substeps_->set_thinnest(thinnest_);
  }
  std::vector<int> joined;
  for (int j = first; j < joints.count; ++j) {
    const int a = joints.body_a[j], b = joints.body_b[j];
    wake_joint(j);
    if (!joints.collide[j] && b != kWorld) remove_pair(a, b);
    joined.push_back(a);
  }
  connect_joints(joined.data(), static_cast<int>(joined.size()));
  // Bodies whose new joints are to other workers' are ghosts from now on, or have such.
  if (!joined.empty()) members_changed_ = ghosts_are_stale_ = true;
}

int BulletWorld::define_shape(ShapeDefinition definition) {
  parts_.add_shape(definition);
  return shapes_.define(std::move(definition));
}

// Of two bodies that may not touch any more, as far as they are here.
void BulletWorld::remove_pair(int a, int b) {
  if (slots_[a] && slots_[b])
    pairs_.removeOverlappingPair(slot(a).body.getBroadphaseHandle(), slot(b).body.getBroadphaseHandle(), &dispatcher_);
}

BulletWorld::~BulletWorld() {
  wake_all();
  joints_.clear();
  leave(bodies_);
  commit();
  clear_contacts();
  for (Static& item : statics_) {
    broadphase_.destroyProxy(item.body->getBroadphaseHandle(), &dispatcher_);
    shapes_.release(item.shape_id, btQuaternion::getIdentity());
  }
  statics_.clear();
  for (const auto& [id, probe] : probes_) shapes_.release(body_columns_.shape_id[id], probe.turn);
  world_->set_members({}, {}, {});
}

btVector3 BulletWorld::length(const double* xyz) const {
  const double unit = settings_.length_unit;
  return {btScalar(xyz[0] / unit), btScalar(xyz[1] / unit), btScalar(xyz[2] / unit)};
}

// ---- into the world and out of it ----------------------------------------------------------------------------------

void BulletWorld::bounds(const btRigidBody& body, btVector3& low, btVector3& high) const {
  body.getCollisionShape()->getAabb(body.getWorldTransform(), low, high);
  if (body.getCollisionShape()->getShapeType() != STATIC_PLANE_PROXYTYPE) return;
  // A plane's box is so large that its volume overflows, and Bullet's tree writes outside of its lists.
  low.setMax(btVector3(-kFarthest, -kFarthest, -kFarthest));
  high.setMin(btVector3(kFarthest, kFarthest, kFarthest));
  if (settings_.exact_shapes) bound_plane(body, low, high);
}

void BulletWorld::enter_broadphase(btRigidBody& body, int number, int shape_id, FilterBits filter, btScalar room) {
  const auto [group, mask] = parts_.widest(shape_id, filter);
  btVector3 low, high;
  bounds(body, low, high);
  low -= btVector3(room, room, room);
  high += btVector3(room, room, room);
  broadphase_.m_gid = number - 1;  // the new proxy gets m_gid + 1: the body's own number, whenever it arrives
  body.setBroadphaseHandle(broadphase_.createProxy(low, high, body.getCollisionShape()->getShapeType(), &body,
                                                   static_cast<int>(group), static_cast<int>(mask), &dispatcher_));
}

void BulletWorld::add_static(const StaticBody& item) {
  btCollisionShape* shape = shapes_.acquire(item.shape_id, btQuaternion::getIdentity());
  btRigidBody::btRigidBodyConstructionInfo info(0, nullptr, shape);
  info.m_startWorldTransform = btTransform(quaternion(item.place + 3), length(item.place));
  info.m_friction = btScalar(std::sqrt(item.friction));
  info.m_restitution = btScalar(std::sqrt(item.restitution));
  info.m_rollingFriction = btScalar(item.rolling_friction / settings_.length_unit);
  auto body = std::make_unique<btRigidBody>(info);
  body->setActivationState(ISLAND_SLEEPING);
  body->setCcdSweptSphereRadius(shapes_.thickness(item.shape_id));
  const int number = kStaticBase + static_cast<int>(statics_.size());
  parts_.add_static(item);
  enter_broadphase(*body, number, item.shape_id, {item.group, item.mask});
  statics_.push_back({std::move(body), item.shape_id});
  members_changed_ = true;
}

BulletWorld::Slot& BulletWorld::slot(int body_id) const {
  LAPJOINT_ASSERT(body_id >= 0 && body_id < static_cast<int>(slots_.size()) && slots_[body_id]);
  return *slots_[body_id];
}

void BulletWorld::require(const int* ids, int count, bool active) const {
  for (int i = 0; i < count; ++i) {
    const int id = ids[i];
    if (id < 0 || id >= body_columns_.count)
      throw BodyError(id, "does not exist, the scene has " + std::to_string(body_columns_.count) + " bodies");
    if ((slots_[id] && !is_ghost_[id]) != active) throw BodyError(id, active ? "is not active" : "is already active");
  }
}

std::unique_ptr<BulletWorld::Slot> BulletWorld::make_body(int id) const {
  const BodyColumns& table = body_columns_;
  btVector3 moments;
  btQuaternion turn;
  const double mass_unit = settings_.mass_unit, length_unit = settings_.length_unit;
  principal_axes(table.inertia + 9 * id, mass_unit * length_unit * length_unit, moments, turn);
  btCollisionShape* shape = shapes_.acquire(table.shape_id[id], turn);
  btRigidBody::btRigidBodyConstructionInfo info(btScalar(table.mass[id] / mass_unit), nullptr, shape, moments);
  // Bullet multiplies the coefficients of two bodies; their roots make that the geometric mean.
  info.m_friction = btScalar(std::sqrt(table.friction[id]));
  info.m_restitution = btScalar(std::sqrt(table.restitution[id]));
  info.m_rollingFriction = btScalar(table.rolling_friction[id] / length_unit);
  info.m_linearDamping = btScalar(table.linear_damping[id]);
  info.m_angularDamping = btScalar(table.angular_damping[id]);
  auto made = std::make_unique<Slot>(info, turn);
  btRigidBody& body = made->body;
  body.setUserIndex(id);
  body.setGravity(world_->getGravity());
  body.setCcdSweptSphereRadius(shapes_.thickness(table.shape_id[id]));
  body.setActivationState(DISABLE_DEACTIVATION);  // Bullet's own sleep is not used
  // Where all moments are equal there is no gyroscopic torque to compute.
  if (moments.x() == moments.y() && moments.y() == moments.z()) body.setFlags(0);
  return made;
}

void BulletWorld::place_body(Slot& slot, const double* state) const {
  btQuaternion turn = quaternion(state + 3);
  if (slot.turned()) turn *= slot.turn;
  const btTransform place(turn.normalized(), length(state));
  const btVector3 linear = length(state + 7);
  const btVector3 angular{btScalar(state[10]), btScalar(state[11]), btScalar(state[12])};
  btRigidBody& body = slot.body;
  body.setWorldTransform(place);
  body.setInterpolationWorldTransform(place);
  body.setLinearVelocity(linear);
  body.setAngularVelocity(angular);
  body.setInterpolationLinearVelocity(linear);
  body.setInterpolationAngularVelocity(angular);
  body.updateInertiaTensor();
}

// None of them active, none twice; in ascending order.
std::vector<int> BulletWorld::require_new(const int* ids, int count) const {
  require(ids, count, false);
  std::vector<int> sorted(ids, ids + count);
  std::sort(sorted.begin(), sorted.end());
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) throw BodyError(*twin, "is activated twice");
  return sorted;
}

void BulletWorld::activate(const int* ids, int count, const double* states) {
  std::vector<int> taken_over;
  for (int i = 0; i < count; ++i)
    if (ids[i] >= 0 && ids[i] < body_columns_.count && is_ghost_[ids[i]]) taken_over.push_back(ids[i]);
  std::sort(taken_over.begin(), taken_over.end());
  taken_over.erase(std::unique(taken_over.begin(), taken_over.end()), taken_over.end());
  for (const int id : taken_over) wake(id, true);
  leave(taken_over);
  ghosts_are_stale_ = true;
  const std::vector<int> sorted = require_new(ids, count);
  for (int i = 0; i < count; ++i) {
    slots_[ids[i]] = make_body(ids[i]);
    place_body(*slots_[ids[i]], states + kStateSize * i);
    still_[ids[i]] = 0;
  }
  enter(ids, count, sorted);
}

// Bodies that have been made and placed. Their boxes are as roomy as those of bodies that move: else the first step
// would take all of them out of the tree, and put them in again one after the other.
void BulletWorld::enter(const int* ids, int count, const std::vector<int>& sorted) {
  btDbvt& tree = broadphase_.m_sets[btDbvtBroadphase::DYNAMIC_SET];
  const bool many = count >= kMany && count >= tree.m_leaves / 4;
  std::vector<btDbvtNode*> leaves;
  if (many) leaves = take_leaves(tree);
  broadphase_.m_deferedcollide = many;  // pairs are looked for by going down the tree once, and not once for each body
  for (const int id : sorted) {
    enter_broadphase(slot(id).body, id, body_columns_.shape_id[id], {body_columns_.group[id], body_columns_.mask[id]},
                     gContactBreakingThreshold + kTreeMargin);
    if (many) leaves.push_back(std::exchange(tree.m_root, nullptr));
  }
  broadphase_.m_deferedcollide = false;
  if (many) {
    build_tree(tree, leaves);
    find_pairs_of(sorted);
    has_grown_ = true;
  }
  const auto middle = bodies_.insert(bodies_.end(), sorted.begin(), sorted.end());
  std::inplace_merge(bodies_.begin(), middle, bodies_.end());
  LAPJOINT_ASSERT(std::adjacent_find(bodies_.begin(), bodies_.end(), std::greater_equal<>()) ==
                  bodies_.end());  // each once
  connect_joints(ids, count);
  members_changed_ = true;
}

// Pairs of these with any other whose boxes in the tree overlap.
void BulletWorld::find_pairs_of(const std::vector<int>& ids) {
  struct Meeting : btDbvt::ICollide {
    btOverlappingPairCache& pairs;
    const std::vector<char>& wanted;
    Meeting(btOverlappingPairCache& into, const std::vector<char>& by_id) : pairs(into), wanted(by_id) {}
    bool is_wanted(const btDbvtProxy& proxy) const {
      return proxy.m_uniqueId < kStaticBase && wanted[proxy.m_uniqueId];
    }
    void Process(const btDbvtNode* a, const btDbvtNode* b) override {
      auto *first = static_cast<btDbvtProxy*>(a->data), *second = static_cast<btDbvtProxy*>(b->data);
      if (a != b && (is_wanted(*first) || is_wanted(*second))) pairs.addOverlappingPair(first, second);
    }
  } meeting(pairs_, mark_);
  for (const int id : ids) mark_[id] = 1;
  btDbvt &moving = broadphase_.m_sets[btDbvtBroadphase::DYNAMIC_SET],
         &resting = broadphase_.m_sets[btDbvtBroadphase::FIXED_SET];
  moving.collideTTpersistentStack(moving.m_root, resting.m_root, meeting);
  moving.collideTTpersistentStack(moving.m_root, moving.m_root, meeting);
  for (const int id : ids) mark_[id] = 0;
}

// A joint is live when both its bodies are active, or one is and the other is the world; not where all are ghosts.
void BulletWorld::connect_joints(const int* ids, int count) {
  const std::size_t before = joints_.size();
  for (int i = 0; i < count; ++i) {
    joint_lists_.each(ids[i], [&](int joint) {
      const int a = joint_columns_.body_a[joint], b = joint_columns_.body_b[joint];
      if (joint_live_[joint] || joint_lists_.is_broken(joint) || !slots_[a] || (b != kWorld && !slots_[b])) return;
      if (!filter_.is_own(a, b)) return;
      joint_live_[joint] = 1;
      if (substeps_) {
        joints_.push_back({joint, nullptr});
        return;
      }
      const btQuaternion none = btQuaternion::getIdentity();
      joints_.push_back(
          {joint, make_joint(joint_columns_, joint, slot(a).body, b == kWorld ? *anchor_ : slot(b).body, slot(a).turn,
                             b == kWorld ? none : slot(b).turn, settings_.length_unit, settings_.mass_unit)});
      joints_.back().constraint->setUserConstraintId(joint);
    });
  }
  const auto by_id = [](const LiveJoint& x, const LiveJoint& y) { return x.id < y.id; };
  std::sort(joints_.begin() + before, joints_.end(), by_id);
  std::inplace_merge(joints_.begin(), joints_.begin() + before, joints_.end(), by_id);
  LAPJOINT_ASSERT(std::is_sorted(joints_.begin(), joints_.end(), by_id));
}

void BulletWorld::deactivate(const int* ids, int count, bool migrates) {
  require(ids, count, true);
  std::vector<int> sorted(ids, ids + count);
  std::sort(sorted.begin(), sorted.end());
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) throw BodyError(*twin, "is deactivated twice");
  ghosts_are_stale_ = true;
  leave(sorted, migrates);
}

// Active bodies or ghosts.
void BulletWorld::leave(const std::vector<int>& ids, bool migrates) {
  if (ids.empty()) return;
  const std::vector<int> going = ids;
  for (const int id : going)
    if (island_[id] != kAwake && is_ghost_[id])
      forget_sleeper(id);
    else
      wake(id, migrates);
  LAPJOINT_ASSERT(std::none_of(mark_.begin(), mark_.end(), [](char mark) { return mark != 0; }));
  for (const int id : going) mark_[id] = 1;
  contacts_solved_ = false;
  const auto leaving = [this](int body) { return body != kWorld && mark_[body]; };
  std::erase_if(joints_, [&](const LiveJoint& joint) {
    const bool gone = leaving(joint_columns_.body_a[joint.id]) || leaving(joint_columns_.body_b[joint.id]);
    if (gone) joint_live_[joint.id] = 0;
    return gone;
  });
  for (const int id : substeps_ ? going : std::vector<int>())  // also of joints that wait for their other bodies
    joint_lists_.each(id, [&](int joint) { substeps_->leave_joint(joint); });
  if (substeps_) substeps_->forget_contacts_of(mark_);
  pairs_.remove_pairs_of(mark_, dispatcher_);
  std::erase_if(bodies_, leaving);
  for (NeighbourBodies& neighbour : neighbours_) {
    std::erase_if(neighbour.border, leaving);
    std::erase_if(neighbour.ghosts, leaving);
  }
  for (const int id : going) {
    Slot& gone = slot(id);
    broadphase_.destroyProxy(gone.body.getBroadphaseHandle(), &dispatcher_);
    shapes_.release(body_columns_.shape_id[id], gone.turn);
    slots_[id].reset();
    mark_[id] = is_ghost_[id] = 0;
  }
  members_changed_ = true;
}

void BulletWorld::commit() {
  if (!members_changed_) return;
  if (parts_.has_surfaces()) ask_for_surfaces();
  std::vector<btRigidBody*> statics;
  movers_.clear();
  movers_.reserve(bodies_.size());
  std::vector<btTypedConstraint*> joints;
  for (Static& item : statics_) statics.push_back(item.body.get());
  awake_.clear();
  if (!islands_.empty())
    std::copy_if(bodies_.begin(), bodies_.end(), std::back_inserter(awake_),
                 [this](int id) { return island_[id] == kAwake; });
  for (const int id : awake()) {
    slot(id).body.setUserIndex2(static_cast<int>(movers_.size()));
    movers_.push_back(&slot(id).body);
  }
  for (LiveJoint& joint : joints_)
    if (joint.constraint) joints.push_back(joint.constraint.get());
  world_->set_members(statics, movers_, joints);
  if (substeps_) {
    std::vector<SubstepWorld::LiveJoint> live;
    live.reserve(joints_.size());
    const int fixed = static_cast<int>(movers_.size());
    for (const LiveJoint& joint : joints_) {
      const int a = joint_columns_.body_a[joint.id], b = joint_columns_.body_b[joint.id];
      const bool to_world = b == kWorld;
      // Between two steps one may be awake already: a body that has come from another worker, or a new joint's.
      if (island_[a] != kAwake || (!to_world && island_[b] != kAwake)) continue;
      live.push_back({joint.id, slot(a).body.getUserIndex2(), to_world ? fixed : slot(b).body.getUserIndex2(),
                      slot(a).turn, to_world ? btQuaternion::getIdentity() : slot(b).turn});
    }
    substeps_->set_members(movers_, live, self_, places_of_neighbours(), whole_, parted_places(), ghosts_are_stale_);
    const auto reports_hits = [this](int id) { return !std::isinf(body_columns_.hit_impulse[id]); };
    substeps_->set_finds_hits(std::any_of(bodies_.begin(), bodies_.end(), reports_hits));
    const auto reports_touches = [this](int id) { return body_columns_.touches.watches(id); };
    substeps_->set_finds_touches(std::any_of(bodies_.begin(), bodies_.end(), reports_touches));
  }
  members_changed_ = false;
}

// Places of own bodies with locking joints to bodies that are not here.
std::vector<int> BulletWorld::parted_places() const {
  std::vector<int> found;
  if (static_cast<int>(joints_.size()) == joint_columns_.count) return found;
  const auto leads_away = [&](int joint) {
    const int a = joint_columns_.body_a[joint], b = joint_columns_.body_b[joint];
    return substeps_->locks(joint) && !joint_lists_.is_broken(joint) && (!slots_[a] || (b != kWorld && !slots_[b]));
  };
  for (std::size_t place = 0; place < movers_.size(); ++place) {
    const int id = movers_[place]->getUserIndex();
    bool is_parted = false;
    if (!is_ghost_[id]) joint_lists_.each(id, [&](int joint) { is_parted = is_parted || leads_away(joint); });
    if (is_parted) found.push_back(static_cast<int>(place));
  }
  return found;
}

void BulletWorld::ask_for_surfaces() {
  if (substeps_) return substeps_->set_part_surfaces(&parts_);
  solver_->set_surface_hook([this](btPersistentManifold& manifold, btScalar& arm) {
    const auto [a, b] = manifold_bodies(manifold);
    for (int k = 0; k < manifold.getNumContacts(); ++k) {
      btManifoldPoint& point = manifold.getContactPoint(k);
      const CombinedSurface own = parts_.combine({a, point.m_index0}, {b, point.m_index1});
      point.m_combinedFriction = own.friction;
      point.m_combinedRestitution = own.restitution;
      arm = own.rolling;
    }
  });
}

void BulletWorld::clear_contacts() {
  wake_all();
  contacts_solved_ = false;
  if (substeps_) {
    substeps_->forget_contacts();
    substeps_->forget_joints();
  }
  struct Every : btOverlapCallback {
    bool processOverlap(btBroadphasePair&) override { return true; }
  } every;
  pairs_.processAllOverlappingPairs(&every, &dispatcher_);
  // The tree finds a pair again only when one of its boxes is new to it. All leave before any comes back, for a
  // returning body pairs up at once with those that are there.
  for (const int id : bodies_) broadphase_.destroyProxy(slot(id).body.getBroadphaseHandle(), &dispatcher_);
  for (const int id : bodies_)
    enter_broadphase(slot(id).body, id, body_columns_.shape_id[id], {body_columns_.group[id], body_columns_.mask[id]});
}

// ---- states --------------------------------------------------------------------------------------------------------

void BulletWorld::set_states(const int* ids, int count, const double* states) {
  require(ids, count, true);
  for (int i = 0; i < count; ++i) {
    wake(ids[i]);
    if (OrderedWorld::is_prepared(slot(ids[i]).body)) world_->forget_prepared();
    place_body(slot(ids[i]), states + kStateSize * i);
  }
}

void BulletWorld::get_states(const int* ids, int count, double* states, const int* rows) const {
  require(ids, count, true);
  const double unit = settings_.length_unit;
  for (int i = 0; i < count; ++i) {
    const Slot& from = slot(ids[i]);
    const btTransform& place = from.body.getWorldTransform();
    btQuaternion turn = place.getRotation();
    if (from.turned()) turn *= from.turn.inverse();
    const btVector3& position = place.getOrigin();
    const btVector3& linear = from.body.getLinearVelocity();
    const btVector3& angular = from.body.getAngularVelocity();
    double* out = states + kStateSize * static_cast<std::size_t>(rows ? rows[i] : i);
    for (int k = 0; k < 3; ++k) {
      out[k] = position[k] * unit;
      out[7 + k] = linear[k] * unit;
      out[10 + k] = angular[k];
    }
    out[3] = turn.w();
    out[4] = turn.x();
    out[5] = turn.y();
    out[6] = turn.z();
  }
}

void BulletWorld::add_forces(const int* ids, int count, const double* forces, const double* torques) {
  require(ids, count, true);
  const double length_unit = settings_.length_unit, mass_unit = settings_.mass_unit;
  for (int i = 0; i < count; ++i) {
    wake(ids[i]);
    btRigidBody& body = slot(ids[i]).body;
    body.applyCentralForce(length(forces + 3 * i) / btScalar(mass_unit));
    body.applyTorque(length(torques + 3 * i) / btScalar(length_unit * mass_unit));
  }
}

int BulletWorld::active_count() const {
  return static_cast<int>(std::count_if(bodies_.begin(), bodies_.end(), [this](int id) { return !is_ghost_[id]; }));
}

void BulletWorld::active_ids(int* ids) const {
  std::copy_if(bodies_.begin(), bodies_.end(), ids, [this](int id) { return !is_ghost_[id]; });
}

void BulletWorld::ghost_ids(int* ids) const {
  std::copy_if(bodies_.begin(), bodies_.end(), ids, [this](int id) { return is_ghost_[id] != 0; });
}

void BulletWorld::live_joint_ids(int* ids) const {
  for (std::size_t i = 0; i < joints_.size(); ++i) ids[i] = joints_[i].id;
}

std::vector<int> BulletWorld::cached_joints() const {
  std::vector<int> ids(joints_.size());
  live_joint_ids(ids.data());
  if (!settings_.has_neighbours) return ids;
  ids.clear();  // those that are not live may be so once ghosts are chosen
  for (const int id : bodies_)
    if (!is_ghost_[id]) joint_lists_.each(id, [&](int joint) { ids.push_back(joint); });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// ---- time ----------------------------------------------------------------------------------------------------------

void BulletWorld::step(double timestep, int count) {
  if (!neighbours_.empty() || !waiting_.empty()) set_ghosts({}, {});  // there are no other workers any more
  commit();
  solver_->begin_step();
  if (substeps_) substeps_->forget_measures();
  broke_.clear();
  hits_.clear();
  surges_.clear();
  for (int i = 0; i < count; ++i) {
    if (!substeps_) {
      world_->step_once(btScalar(timestep));
      ++step_;
      look_at_sensors();
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    find_step_contacts(timestep, nullptr);
    detection_time_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    substeps_->solve(dispatcher_, btScalar(timestep), i + 1 == count);
    find_rising();
    find_surges(nullptr);
    substeps_->write_back();
    end_kinematic_step();
    world_->clearForces();
    substeps_->find_hits(body_columns_.hit_impulse, hits_);
    break_overloaded(timestep);
    look_at_sensors();
    if (settings_.sleep) count_still();
    commit();
  }
  contacts_solved_ = count > 0 && !substeps_;
  if (std::exchange(has_grown_, false)) give_back_memory();
  check_finite();
}

// ---- with neighbours -----------------------------------------------------------------------------------------------

void BulletWorld::set_turns(int self, std::vector<int> turns, std::vector<int> whole) {
  if (!substeps_ || !settings_.has_neighbours)
    throw std::invalid_argument("this world takes no steps with neighbours: they need the substep solver");
  if (self < 0 || self >= static_cast<int>(turns.size()))
    throw std::invalid_argument("turns of worker " + std::to_string(self) + " are of others");
  self_ = self;
  members_changed_ |= whole != whole_;
  whole_ = std::move(whole);
  if (turns == turns_) return;
  turns_ = std::move(turns);
  ghosts_are_due_ = true;
}

std::vector<Neighbour> BulletWorld::places_of_neighbours() const {
  std::vector<Neighbour> found;
  const auto places = [this](const std::vector<int>& ids, std::vector<int>& into) {
    for (const int id : ids)
      if (island_[id] == kAwake) into.push_back(slot(id).body.getUserIndex2());
  };
  for (const NeighbourBodies& from : neighbours_) {
    Neighbour& neighbour = found.emplace_back();
    neighbour.worker = from.worker;
    neighbour.turn = from.turn;
    places(from.border, neighbour.border);
    places(from.ghosts, neighbour.ghosts);
    if (neighbour.border.empty() && neighbour.ghosts.empty()) found.pop_back();  // all of them sleep, in both workers
  }
  return found;
}

bool BulletWorld::step_with_neighbours(double timestep, Mailboxes& mailboxes, std::uint64_t attempt, int count,
                                       bool choose) {
  if (!substeps_ || mailboxes.worker_count() != static_cast<int>(turns_.size()))
    throw std::invalid_argument("the turns of worker " + std::to_string(self_) + " are not set for " +
                                std::to_string(mailboxes.worker_count()) + " workers");
  if (ghosts_are_stale_ && !choose)
    throw std::invalid_argument("bodies of worker " + std::to_string(self_) + " have changed, but ghosts stay");
  contacts_solved_ = false;
  substeps_->forget_measures();
  broke_.clear();
  hits_.clear();
  surges_.clear();
  ghosts_are_due_ |= choose;
  struct Connection {
    SubstepWorld& world;
    Connection(SubstepWorld& own, Mailboxes& mail) : world(own) { world.set_mailboxes(&mail); }
    ~Connection() { world.set_mailboxes(nullptr); }
  } connection(*substeps_, mailboxes);
  try {
    for (int step = 0; step < count; ++step) {
      mailboxes.begin_step(attempt + static_cast<std::uint64_t>(step), step == 0);
      take_step_with_neighbours(timestep, mailboxes, step == 0, step + 1 == count);
    }
    if (std::exchange(has_grown_, false)) give_back_memory();
  } catch (const StepAbandoned&) {
    // Another worker may have been the first to find what began here, and passed through it unseen: say so, too.
    find_lost();
    forget_sleep();
    commit();  // bodies may have left since the last step: the world must not touch them
    world_->clearForces();
    if (!lost_.empty()) throw NotFiniteError(lost_.front());
    return false;
  } catch (const MotionNotFinite&) {
    world_->clearForces();
    find_lost();
    forget_sleep();
    throw NotFiniteError(lost_.front());
  }
  return true;
}

// Bodies that the step which has failed left without numbers; none if it had not come as far as to move any.
void BulletWorld::find_lost() {
  lost_.clear();
  if (members_changed_) return;
  for (const int place : substeps_->find_not_finite()) lost_.push_back(awake()[place]);
}

void BulletWorld::take_step_with_neighbours(double timestep, Mailboxes& mailboxes, bool is_first, bool is_last) {
  if (settings_.sleep && is_first) wake_together(&mailboxes);
  if (ghosts_are_due_) choose_ghosts(mailboxes, timestep);
  LAPJOINT_ASSERT(!ghosts_are_due_ && !ghosts_are_stale_);  // the same bodies in both workers of a pair
  commit();
  substeps_->exchange_states();
  const auto start = std::chrono::steady_clock::now();
  find_step_contacts(timestep, &mailboxes);
  detection_time_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  substeps_->solve(dispatcher_, btScalar(timestep), is_last);
  if (!substeps_->find_not_finite().empty()) throw MotionNotFinite();
  const unsigned says = (substeps_->have_moved_far(btScalar(timestep)) ? kMovesFar : 0) | find_rising();
  const unsigned said = mailboxes.finish_step(says);
  ghosts_are_due_ = said & kMovesFar;
  find_surges(said & kRises ? &mailboxes : nullptr);
  substeps_->write_back();
  end_kinematic_step();
  substeps_->measure_mail(mailboxes);
  world_->clearForces();
  substeps_->find_hits(body_columns_.hit_impulse, hits_);
  break_overloaded(timestep);
  look_at_sensors();
  if (settings_.sleep) count_still();
}

// ---- what can be read of a step ------------------------------------------------------------------------------------

const std::vector<Touch>& BulletWorld::touches() const {
  static const std::vector<Touch> none;
  return substeps_ ? substeps_->touches() : none;
}

const std::vector<Slide>& BulletWorld::slides() const {
  static const std::vector<Slide> none;
  return substeps_ ? substeps_->slides() : none;
}

void BulletWorld::joint_forces(const int* joint_ids, int count, double* forces) const {
  std::fill(forces, forces + 6 * static_cast<std::size_t>(count), 0.0);
  if (!substeps_) return;
  const std::vector<JointReading>& kept = substeps_->kept_joints();
  LAPJOINT_ASSERT(std::is_sorted(kept.begin(), kept.end(),
                                 [](const JointReading& x, const JointReading& y) { return x.joint < y.joint; }));
  for (int i = 0; i < count; ++i) {
    const auto found = std::lower_bound(kept.begin(), kept.end(), joint_ids[i],
                                        [](const JointReading& one, int joint) { return one.joint < joint; });
    if (found != kept.end() && found->joint == joint_ids[i])
      std::copy(found->wrench, found->wrench + 6, forces + 6 * i);
  }
}

const std::vector<PointReading>& BulletWorld::contact_points() const {
  static const std::vector<PointReading> none;
  return substeps_ ? substeps_->kept_points() : none;
}

// ---- joints that break ---------------------------------------------------------------------------------------------

void BulletWorld::break_overloaded(double timestep) {
  for (const SubstepWorld::Overload& one : substeps_->find_overloads(btScalar(timestep))) {
    if (one.is_reported) broke_.push_back(one.found);
    if (breaks_) break_joint(static_cast<int>(one.found.joint));
  }
}

void BulletWorld::set_broken(const std::vector<int>& joint_ids) {
  std::vector<char> wanted(joint_live_.size(), 0);
  for (const int joint : joint_ids) {
    if (joint < 0 || joint >= joint_columns_.count)
      throw std::invalid_argument("joint " + std::to_string(joint) + " does not exist");
    wanted[joint] = 1;
  }
  for (int joint = 0; joint < joint_columns_.count; ++joint) {
    if (wanted[joint] && !joint_lists_.is_broken(joint)) break_joint(joint);
    if (!wanted[joint] && joint_lists_.is_broken(joint)) mend_joint(joint);
  }
}

std::vector<int> BulletWorld::broken_joints() const {
  std::vector<int> broken;
  for (int joint = 0; joint < joint_columns_.count; ++joint)
    if (joint_lists_.is_broken(joint)) broken.push_back(joint);
  return broken;
}

void BulletWorld::add_broken(const std::vector<int>& joint_ids) {
  for (const int joint : joint_ids)
    if (joint < 0 || joint >= joint_columns_.count)
      throw std::invalid_argument("joint " + std::to_string(joint) + " does not exist");
  for (const int joint : joint_ids)
    if (!joint_lists_.is_broken(joint)) break_joint(joint);
}

void BulletWorld::break_joint(int joint) {
  LAPJOINT_ASSERT(!joint_lists_.is_broken(joint));
  wake_joint(joint);
  joint_lists_.set_broken(joint, true);
  if (joint_live_[joint]) {
    joint_live_[joint] = 0;
    joints_.erase(std::find_if(joints_.begin(), joints_.end(), [&](const LiveJoint& one) { return one.id == joint; }));
    members_changed_ = true;
  }
  if (substeps_) substeps_->forget_joint(joint);
  const int a = joint_columns_.body_a[joint], b = joint_columns_.body_b[joint];
  if (b == kWorld || joint_columns_.collide[joint] || filter_.ignores(a, b) || !slots_[a] || !slots_[b]) return;
  // The broadphase looks for pairs of bodies that move out of their boxes: of these it may never again.
  btBroadphaseProxy *first = slot(a).body.getBroadphaseHandle(), *second = slot(b).body.getBroadphaseHandle();
  const auto *leaf_a = static_cast<btDbvtProxy*>(first)->leaf, *leaf_b = static_cast<btDbvtProxy*>(second)->leaf;
  if (Intersect(leaf_a->volume, leaf_b->volume)) pairs_.addOverlappingPair(first, second);
}

void BulletWorld::mend_joint(int joint) {
  LAPJOINT_ASSERT(joint_lists_.is_broken(joint));
  wake_joint(joint);
  joint_lists_.set_broken(joint, false);
  const int a = joint_columns_.body_a[joint], b = joint_columns_.body_b[joint];
  if (b != kWorld && !joint_columns_.collide[joint]) remove_pair(a, b);
  if (!slots_[a] || (b != kWorld && !slots_[b])) return;
  connect_joints(&a, 1);
  members_changed_ = true;
}

void BulletWorld::detect() {
  commit();
  contacts_solved_ = false;
  world_->performDiscreteCollisionDetection();
}

void BulletWorld::prepare(const int* moving, int count) {
  require(moving, count, true);
  commit();
  contacts_solved_ = false;
  std::vector<btRigidBody*> bodies;
  for (int i = 0; i < count; ++i) bodies.push_back(&slot(moving[i]).body);
  for (const int id : awake())
    if (is_ghost_[id]) bodies.push_back(&slot(id).body);  // which others move, and are still where the step began
  world_->prepare(bodies, !neighbours_.empty());
}

void BulletWorld::check_finite() const {
  for (const int id : awake()) {
    const btRigidBody& body = slot(id).body;
    const btVector3& x = body.getWorldTransform().getOrigin();
    const btVector3& v = body.getLinearVelocity();
    const btVector3& w = body.getAngularVelocity();
    const btScalar sum = x.dot(x) + v.dot(v) + w.dot(w);
    if (!std::isfinite(sum)) throw NotFiniteError(id);
  }
}

const std::vector<ContactPair>& BulletWorld::contacts() {
  if (!contacts_solved_) collect_contacts(dispatcher_, contact_keys_);
  const std::vector<ContactKey>& keys = contacts_solved_ ? world_->solved_contacts() : contact_keys_;
  contacts_.clear();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ContactKey& key = keys[i];
    if (!neighbours_.empty() && !is_reported(key)) continue;
    double depth = -1e30;
    for (int k = 0; k < key.manifold->getNumContacts(); ++k)
      depth = std::max(depth, -static_cast<double>(key.manifold->getContactPoint(k).getDistance()));
    depth *= settings_.length_unit;
    // A compound touches with several parts: they are one contact.
    if (i > 0 && keys[i - 1].bodies == key.bodies) {  // which is reported or not as this one is
      contacts_.back().point_count += key.manifold->getNumContacts();
      contacts_.back().depth = std::max(contacts_.back().depth, depth);
    } else {
      contacts_.push_back({scene_number(key.bodies >> 32), scene_number(key.bodies & 0xFFFFFFFFu),
                           key.manifold->getNumContacts(), depth});
    }
  }
  if (islands_.empty()) return contacts_;
  const std::vector<ContactPair>& resting = resting_contacts();
  const auto middle = contacts_.insert(contacts_.end(), resting.begin(), resting.end());
  std::inplace_merge(contacts_.begin(), middle, contacts_.end(), comes_before);
  LAPJOINT_ASSERT(std::is_sorted(contacts_.begin(), contacts_.end(), comes_before));
  return contacts_;
}

// A contact between workers is reported by the first of the two.
bool BulletWorld::is_reported(const ContactKey& key) const {
  const int a = static_cast<int>(key.bodies >> 32), b = static_cast<int>(key.bodies & 0xFFFFFFFFu);
  if (substeps_->is_asleep(a) || substeps_->is_asleep(b)) return is_resting_reported(a, b);
  const auto place = [&](std::uint64_t number) {
    const int id = static_cast<int>(number);
    return id >= kStaticBase ? static_cast<int>(movers_.size()) : slot(id).body.getUserIndex2();
  };
  return substeps_->is_reported(substeps_->owner_of(place(key.bodies >> 32), place(key.bodies & 0xFFFFFFFFu)));
}

std::array<double, 9> BulletWorld::substep_profile() const {
  if (!substeps_) return {};
  const SubstepSolver& solver = substeps_->solver();
  const SubstepTimes& times = solver.times();
  return {detection_time_,
          substeps_->ordering_time(),
          times.colouring,
          times.preparing,
          times.sweeps,
          times.direct,
          times.moving,
          static_cast<double>(solver.row_updates()),
          static_cast<double>(solver.direct_joints.joint_count())};
}

int BulletWorld::substep_count() const { return substeps_ ? substeps_->solver().substeps() : 0; }

double BulletWorld::substep_overlap() const {
  return substeps_ ? static_cast<double>(substeps_->solver().overlap()) * settings_.length_unit : 0;
}

double BulletWorld::residual() const {
  if (substeps_) return static_cast<double>(substeps_->solver().residual()) * settings_.length_unit;
  return std::sqrt(static_cast<double>(solver_->residual_squared())) * settings_.length_unit;
}

}  // namespace lapjoint
