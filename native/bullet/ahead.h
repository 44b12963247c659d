// Contacts that fast bodies come to within a step.
//
// Contacts are found where a step begins, up to a small reach. A body that moves farther in a step than half its own
// thickness could pass through what it meets. So its way is looked along, every half thickness and then between the
// last place where it is free and the first where it touches, for where it meets others. That contact is solved in the
// step with the normal that it has there, and with the gap that is still before it. What is passed by is no contact,
// however near.
#pragma once

#include <btBulletDynamicsCommon.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "bullet/order.h"

namespace lapjoint {

// A contact that comes within the step, as if it were there already: its points have the gaps of the step's begin.
struct AheadContact {
  std::unique_ptr<btPersistentManifold> manifold;
  btVector3 shift;  // from where the manifold's first body is to where its points take it to be
  btVector3 met;    // from its points to where the bodies meet
};

// Half of a body's least extent. It is kept as the body's swept radius, which Bullet has no other use for here.
inline btScalar thickness_of(const btCollisionObject& body) { return body.getCcdSweptSphereRadius(); }

// Flag of a manifold's point: it is a core's, and has no surface.
constexpr int kCore = 1 << 9;

// How far a body moves in a step before it is fast, as a share of its thickness.
constexpr btScalar kFastShare = btScalar(0.5);

// Whether any point of a body moves farther than that in a step.
inline bool moves_farther(btScalar limit, const btVector3& linear, const btVector3& angular, btScalar radius,
                          btScalar timestep) {
  const btScalar squares = linear.length2() + radius * radius * angular.length2();
  if (2 * squares * timestep * timestep <= limit * limit) return false;  // nearly all of them, without a root
  return (linear.length() + radius * angular.length()) * timestep > limit;
}

inline bool is_fast(btScalar thickness, const btVector3& linear, const btVector3& angular, btScalar radius,
                    btScalar timestep) {
  return moves_farther(kFastShare * thickness, linear, angular, radius, timestep);
}

// How far a body moves in a step before its way is looked along. Contacts are found up to a reach, so that one that
// two bodies close faster than that is found late, and they overlap. A body that bounces is to be met where it touches:
// its speed there is what it comes back with. Others may sink in by a little, and so may those of little restitution:
// they hardly come back, and to look along the way of every ball of a bowl would take twice a step's time.
inline btScalar sure_way(const btCollisionObject& body, btScalar thickness) {
  constexpr btScalar kSinks = btScalar(0.05);  // share of the thickness
  constexpr btScalar kBounces = btScalar(0.15);
  const btScalar restitution = body.getRestitution() * body.getRestitution();  // bodies have the root of theirs
  const btScalar reach = gContactBreakingThreshold / 2;                        // the other may move as far
  return std::min(kFastShare * thickness, restitution > kBounces ? reach : reach + kSinks * thickness);
}

// How a body moves in a step, or in what is left of it, if nothing is in its way.
struct Way {
  const btCollisionObject* body;
  int number;              // broadphase number
  btTransform start;       // where it is as the step begins
  btTransform from;        // where this way begins
  btScalar begin = 0;      // and when, as a share of the step
  btVector3 moves, turns;  // in a whole step
  btScalar radius;         // of a sphere about its position that it is in
  btScalar inverse_mass = 0;

  btTransform at(btScalar share) const;
  // How far turning takes any point of it in a whole step: no farther than across the sphere.
  btScalar swing() const { return std::min(radius * turns.length(), 2 * radius); }
  bool is_static() const { return inverse_mass == 0; }
  bool is_fast() const { return moves.length() + radius * turns.length() > kFastShare * thickness_of(*body); }
};

// Of a body that moves with these velocities, under gravity, in a step of so many substeps.
Way way_of(const btCollisionObject& body, int number, const btVector3& linear, const btVector3& angular,
           const btVector3& gravity, btScalar radius, btScalar inverse_mass, btScalar timestep, int substeps);

class AheadFinder {
 public:
  AheadFinder(btCollisionDispatcher& dispatcher, btBroadphaseInterface& broadphase, const PairFilter& filter,
              const btDispatcherInfo& info)
      : dispatcher_(dispatcher), broadphase_(broadphase), filter_(filter), info_(info) {}

  enum class Owner { kOwn, kBetween, kNobody };
  struct Question {
    std::vector<Way> fast;   // ascending
    btScalar other_way = 0;  // the longest of all others
    std::function<Way(const btCollisionObject&)> way_of;
    // Whose a pair's contact is. One between two workers is found by both, from the ways of its bodies alone.
    std::function<Owner(int, int)> owner_of;
  };
  void find(const Question& question);
  void forget() {
    contacts.clear();
    passed.clear();
  }

  // Of the last `find`.
  std::vector<AheadContact> contacts;
  // Pairs, as in a ContactKey, whose contacts of the step's begin are none if they are apart: they go by each other, or
  // meet elsewhere.
  std::unordered_set<std::uint64_t> passed;

  // Whether the contacts of the step's begin that this has are none.
  bool passes(btPersistentManifold& manifold) const;

  // Whether two bodies, which may be in no world, meet on their ways.
  bool meet(const Way& a, const Way& b) { return look_along(a, b, false).has_value(); }

 private:
  class Probe;
  struct Hit {
    btScalar share;
    btVector3 normal;  // from b to a
  };
  struct Leg {
    Way way;
    int except;  // what it has just met
    int generation;
  };
  // Where they meet first; `keeps`: the contact too.
  std::optional<Hit> look_along(const Way& a, const Way& b, bool keeps);
  // `meetings`: places of fast bodies that may be met.
  void find_along(const Question& question, const Leg& leg, const std::vector<int>& meetings);

  btCollisionDispatcher& dispatcher_;
  btBroadphaseInterface& broadphase_;
  const PairFilter& filter_;
  const btDispatcherInfo& info_;
  std::vector<Leg> legs_;
};

}  // namespace lapjoint
