#include "assertions.h"
#include "bullet/sleep.h"

namespace lapjoint {

int FrozenPairs::add(btBroadphasePair& pair) {
  int at = static_cast<int>(all_.size());
  if (free_.empty()) {
    all_.emplace_back();
  } else {
    at = free_.back();
    free_.pop_back();
  }
  LAPJOINT_ASSERT(pair.m_pProxy0->m_uniqueId < pair.m_pProxy1->m_uniqueId);
  Pair& made = all_[at];
  made.proxies[0] = pair.m_pProxy0;
  made.proxies[1] = pair.m_pProxy1;
  made.algorithm = pair.m_algorithm;
  for (int side = 0; side < 2; ++side) {
    const int number = made.proxies[side]->m_uniqueId;
    made.next[side] = -1;
    if (number < kStaticBase) {
      made.next[side] = std::exchange(first_[number], at);
      continue;
    }
    const auto place = static_cast<std::size_t>(number - kStaticBase);
    if (place >= count_on_.size()) count_on_.resize(place + 1, 0);
    ++count_on_[place];
  }
  ++count_;
  pair.m_algorithm = nullptr;  // it stays
  pairs_.removeOverlappingPair(made.proxies[0], made.proxies[1], &dispatcher_);
  return at;
}

void FrozenPairs::unlink(int at, int side) {
  const int number = all_[at].proxies[side]->m_uniqueId;
  if (number >= kStaticBase) {
    LAPJOINT_ASSERT(count_on_[number - kStaticBase] > 0);
    --count_on_[number - kStaticBase];
    return;
  }
  int* link = &first_[number];
  while (*link != at) {
    LAPJOINT_ASSERT(*link >= 0);  // it is in the list of each of its bodies
    Pair& other = all_[*link];
    link = &other.next[other.proxies[0]->m_uniqueId == number ? 0 : 1];
  }
  *link = all_[at].next[side];
}

void FrozenPairs::put_back(int at, std::vector<btPersistentManifold*>& thawed) {
  const Pair pair = all_[at];
  unlink(at, 0);
  unlink(at, 1);
  free_.push_back(at);
  --count_;
  each_manifold(pair.algorithm, [&](btPersistentManifold& manifold) { dispatcher_.take_back(manifold); });
  if (btBroadphasePair* live = pairs_.addOverlappingPair(pair.proxies[0], pair.proxies[1])) {
    live->m_algorithm = pair.algorithm;
    each_manifold(pair.algorithm, [&](btPersistentManifold& manifold) {
      if (manifold.getNumContacts() > 0) thawed.push_back(&manifold);
    });
  } else if (pair.algorithm) {  // they may not touch any more
    pair.algorithm->~btCollisionAlgorithm();
    dispatcher_.freeCollisionAlgorithm(pair.algorithm);
  }
}

void FrozenPairs::thaw(int body, std::vector<btPersistentManifold*>& thawed) {
  while (first_[body] >= 0) put_back(first_[body], thawed);
}

void FrozenPairs::thaw(int body, int static_number, std::vector<btPersistentManifold*>& thawed) {
  for (int at = first_[body]; at >= 0;) {
    const int next = all_[at].next[all_[at].proxies[0]->m_uniqueId == body ? 0 : 1];
    if (all_[at].proxies[0]->m_uniqueId == static_number || all_[at].proxies[1]->m_uniqueId == static_number)
      put_back(at, thawed);
    at = next;
  }
}

bool FrozenPairs::has(int body, int other) const {
  for (int at = first_[body]; at >= 0;) {
    const Pair& pair = all_[at];
    const int side = pair.proxies[0]->m_uniqueId == body ? 0 : 1;
    if (pair.proxies[1 - side]->m_uniqueId == other) return true;
    at = pair.next[side];
  }
  return false;
}

}  // namespace lapjoint
