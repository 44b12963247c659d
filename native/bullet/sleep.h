// Bodies that sleep: their pairs and contacts are kept apart from those that a step looks at.
//
// What sleeps stands still in time: nothing of it is looked at, moved or forgotten. Its contact points stay as the last
// detection left them, with the impulses of the last step, so that it wakes as it fell asleep.
#pragma once

#include <btBulletDynamicsCommon.h>

#include <vector>

#include "bullet/order.h"
#include "bullet/parts.h"
#include "bullet/substeps.h"

namespace lapjoint {

constexpr int kAwake = -1;      // the island of a body that does not sleep
constexpr int kSleepEvery = 8;  // steps from one look for islands that fall asleep to the next

struct ContactPair {
  int body_a;
  int body_b;  // of a static body s: -1 - s
  int point_count;
  double depth;  // m, of the deepest point; negative while apart
};

// Bodies that fell asleep together, as far as a world has them, and what can be read of them meanwhile.
struct SleepingIsland {
  std::vector<int> bodies;  // ascending, ghosts among them
  bool is_new = true;       // nothing of the rest is known yet
  std::vector<ContactPair> contacts;
  RestingReadings readings;
};

// Pairs of which both ends sleep or cannot be moved.
class FrozenPairs {
 public:
  FrozenPairs(PartDispatcher& dispatcher, BatchPairCache& pairs) : dispatcher_(dispatcher), pairs_(pairs) {}
  void set_body_count(int count) { first_.resize(count, -1); }
  bool empty() const { return count_ == 0; }

  // Takes the pairs out of the cache that rest; calls frozen(manifold) for their manifolds.
  template <typename Rests, typename Frozen>
  void freeze(Rests&& rests, Frozen&& frozen) {
    btBroadphasePairArray& all = pairs_.getOverlappingPairArray();
    for (int i = 0; i < all.size();) {
      if (rests(all[i]))
        freeze_pair(all[i], frozen);  // another one is in its place now
      else
        ++i;
    }
  }
  static bool touches(const btBroadphasePair& pair) {
    bool any = false;
    each_manifold(pair.m_algorithm, [&](btPersistentManifold& manifold) { any |= manifold.getNumContacts() > 0; });
    return any;
  }
  // Puts a body's pairs back, and adds their manifolds to the list.
  void thaw(int body, std::vector<btPersistentManifold*>& thawed);
  // The same for those with one static body.
  void thaw(int body, int static_number, std::vector<btPersistentManifold*>& thawed);
  // How many pairs with a static body are frozen.
  int count_on(int static_number) const {
    const auto at = static_cast<std::size_t>(static_number - kStaticBase);
    return at < count_on_.size() ? count_on_[at] : 0;
  }
  // Whether the pair with another body is.
  bool has(int body, int other) const;

  // Calls visit(other, manifold) for each manifold of a body's pairs that has points.
  template <typename Visit>
  void each_contact(int body, Visit&& visit) const {
    for (int at = first_[body]; at >= 0;) {
      const Pair& pair = all_[at];
      const int side = pair.proxies[0]->m_uniqueId == body ? 0 : 1, other = pair.proxies[1 - side]->m_uniqueId;
      each_manifold(pair.algorithm, [&](btPersistentManifold& manifold) {
        if (manifold.getNumContacts() > 0) visit(other, manifold);
      });
      at = pair.next[side];
    }
  }

 private:
  struct Pair {
    btBroadphaseProxy* proxies[2];
    btCollisionAlgorithm* algorithm;
    int next[2];  // of each of its bodies
  };
  template <typename Visit>
  static void each_manifold(btCollisionAlgorithm* algorithm, Visit&& visit) {
    if (!algorithm) return;
    btManifoldArray manifolds;
    algorithm->getAllContactManifolds(manifolds);
    for (int i = 0; i < manifolds.size(); ++i) visit(*manifolds[i]);
  }
  template <typename Frozen>
  void freeze_pair(btBroadphasePair& pair, Frozen&& frozen) {
    const int at = add(pair);
    each_manifold(all_[at].algorithm, [&](btPersistentManifold& manifold) {
      if (manifold.getNumContacts() > 0) frozen(manifold);
      dispatcher_.set_aside(manifold);
    });
  }
  int add(btBroadphasePair& pair);
  void unlink(int at, int side);
  void put_back(int at, std::vector<btPersistentManifold*>& thawed);

  PartDispatcher& dispatcher_;
  BatchPairCache& pairs_;
  std::vector<Pair> all_;
  std::vector<int> free_;      // places in it
  std::vector<int> first_;     // by body number
  std::vector<int> count_on_;  // by static body; may be too short
  int count_ = 0;
};

}  // namespace lapjoint
