// A Bullet world whose results depend on what is in it and not on how it came there.
//
// Stock Bullet numbers, sorts and stores bodies, pairs and constraints in the order of their arrival, and a
// Gauss-Seidel solver's result depends on that order. Here bodies, contacts and joints are always in the order of their
// scene numbers, so a body that left and came back, or a worker that was rebuilt, changes nothing.
#pragma once

#include <btBulletDynamicsCommon.h>

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bullet/joint_lists.h"

namespace lapjoint {

// Broadphase numbers: bodies keep their scene number, static bodies come after all of them.
constexpr int kStaticBase = 1 << 30;

// As the scene has it: of a static body s, -1 - s.
inline int scene_number(std::uint64_t number) {
  const int id = static_cast<int>(number);
  return id >= kStaticBase ? -1 - (id - kStaticBase) : id;
}

struct ContactKey {
  std::uint64_t bodies;  // (lower id, higher id)
  std::uint64_t parts;   // (part of the first, part of the second), for compounds
  btPersistentManifold* manifold;
  bool operator<(const ContactKey& other) const {
    return bodies != other.bodies ? bodies < other.bodies : parts < other.parts;
  }
};

inline std::uint64_t pair_key(int a, int b) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32) | static_cast<std::uint32_t>(b);
}

// Its bodies, lower number first, and their parts; as in a ContactKey.
std::pair<std::uint64_t, std::uint64_t> manifold_key(btPersistentManifold& manifold);
// The numbers of its bodies, kept with it: to ask them for it is to wait for memory.
std::pair<int, int> manifold_bodies(btPersistentManifold& manifold);

// Bodies whose boxes, with the reach of a contact, meet a box as they are now. Those that the tree has are larger, by
// how a body has moved so far: a world that goes on from a state has others.
std::vector<const btCollisionObject*> bodies_in_box(btBroadphaseInterface& broadphase, const btVector3& low,
                                                    const btVector3& high);

// All manifolds that hold at least one point, in canonical order.
void collect_contacts(btDispatcher& dispatcher, std::vector<ContactKey>& out);

// Which pairs may touch: groups and masks, never two static bodies, never an ignored pair or one that a joint holds.
class PairFilter : public btOverlapFilterCallback {
 public:
  explicit PairFilter(const JointLists& joints) : joints_(joints) {}
  void ignore(int body_a, int body_b);
  bool ignores(int body_a, int body_b) const;
  // Bodies of other workers, by number, touch only those that are none. Read in place; may change for those that are
  // not active.
  void set_ghosts(const std::vector<char>* is_ghost) { is_ghost_ = is_ghost; }
  // `body_b` is less than 0 for what is no body.
  bool is_own(int body_a, int body_b) const {
    return !is_ghost_ || !(*is_ghost_)[body_a] || (body_b >= 0 && !(*is_ghost_)[body_b]);
  }
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override;

 private:
  const JointLists& joints_;
  std::unordered_set<std::uint64_t> ignored_;  // whatever their joints are
  const std::vector<char>* is_ghost_ = nullptr;
};

// Bullet scans the whole pair cache for every body it removes. Here a batch of bodies is removed in one scan. And its
// hash knows 16 bits of a body's number: with more bodies, pairs share their places with more and more others.
class BatchPairCache : public btHashedOverlappingPairCache {
 public:
  void remove_pairs_of(const std::vector<char>& leaving_by_id, btDispatcher& dispatcher);
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override;
  btBroadphasePair* findPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override;
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher* dispatcher) override;

 private:
  int& head(const btBroadphaseProxy& a, const btBroadphaseProxy& b);
  int find(const btBroadphaseProxy* a, const btBroadphaseProxy* b);
  void link(int pair);
  void unlink(int pair);
  void grow();

  // Of pairs by their places in the array: first of each hash, and the next of the same.
  std::vector<int> heads_, next_;
  static constexpr int kNone = -1;
};

class OrderedWorld : public btDiscreteDynamicsWorld {
 public:
  OrderedWorld(btDispatcher* dispatcher, btBroadphaseInterface* broadphase, btConstraintSolver* solver,
               btCollisionConfiguration* configuration, bool exact);

  // Replace the lists of bodies and joints; both must be in order of their numbers.
  void set_members(const std::vector<btRigidBody*>& statics, const std::vector<btRigidBody*>& bodies,
                   const std::vector<btTypedConstraint*>& joints);

  // One step of exactly this length; without motion states and interpolation.
  void step_once(btScalar timestep);

  // Called in every step after gravity, to add other forces; may be none.
  void set_more_forces(std::function<void(btScalar)> add) { more_forces_ = std::move(add); }

  // Contacts and forces for a step of this length that another solver takes; it ends with clearForces.
  void find_own_contacts(btScalar timestep);
  void add_own_forces(btScalar timestep);

  // Does now what the next step can do already, if only the moving bodies, and new ones, change before it: broad phase
  // and narrow phase of all others. The step that follows does the rest; results are the same to the last bit.
  // `keeps_pairs`: those that are apart now may not be where the moving ones will be, and stay with their manifolds.
  void prepare(const std::vector<btRigidBody*>& moving, bool keeps_pairs);
  // A body has changed although it was not named: the next step does everything.
  void forget_prepared() { prepared_ = false; }
  bool has_prepared() const { return prepared_; }
  // Broad and narrow phase of all pairs at once, so that all have their algorithms.
  void find_all();
  // These bodies count as prepared, and with static ones all their pairs.
  void set_prepared(const std::vector<btRigidBody*>& bodies);
  static bool is_prepared(const btRigidBody& body) { return body.getUserIndex3() == kPrepared; }

  void performDiscreteCollisionDetection() override;

  // Of the last step, in canonical order. They are gone as soon as a body leaves.
  const std::vector<ContactKey>& solved_contacts() const { return contacts_; }

 protected:
  void calculateSimulationIslands() override {}  // the whole world is one group
  void solveConstraints(btContactSolverInfo& info) override;

 private:
  static constexpr int kPrepared = 1;

  void order_contacts();
  static bool stays(const btBroadphaseProxy* proxy);
  template <typename Wanted>
  void find_contacts(Wanted&& wanted);

  std::function<void(btScalar)> more_forces_;
  bool asks_;  // whether two bodies may touch, before it looks
  bool prepared_ = false, keeps_pairs_ = false;
  std::vector<ContactKey> contacts_;
  std::vector<btPersistentManifold*> manifolds_;
};

}  // namespace lapjoint
