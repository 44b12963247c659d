#include "bullet/ahead.h"

#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btManifoldResult.h>
#include <LinearMath/btTransformUtil.h>

#include <algorithm>
#include <cmath>

namespace lapjoint {

namespace {

constexpr int kMostPlaces = 4096;  // that one body is looked at on its way past another
constexpr int kHalvings = 14;      // between the last free place and the first touching one
constexpr int kGenerations = 3;    // of ways that begin where another one ends
constexpr std::size_t kMostLegs = 4096;
// In reaches of a contact: what is nearer touches already.
constexpr btScalar kTouches = btScalar(0.01);
// Bodies that are met so shortly after the first, in thicknesses, are met at once.
constexpr btScalar kAtOnce = btScalar(0.5);

// The box around a body on its whole way, and around all that it has contacts with as it begins.
void bound(const Way& way, btVector3& low, btVector3& high) {
  btVector3 end_low, end_high;
  way.body->getCollisionShape()->getAabb(way.from, low, high);
  const btScalar left = 1 - way.begin, swing = std::min(left * way.radius * way.turns.length(), way.swing()),
                 wider = gContactBreakingThreshold + swing;
  const btVector3 room(wider, wider, wider), moved = left * way.moves;
  end_low = low + moved;
  end_high = high + moved;
  low.setMin(end_low);
  high.setMax(end_high);
  low -= room;
  high += room;
}

// When the boxes around two bodies overlap, as shares of the step; none if they never do.
std::optional<std::pair<btScalar, btScalar>> find_overlap(const Way& a, const Way& b) {
  const btScalar begin = std::max(a.begin, b.begin);
  btVector3 low_a, high_a, low_b, high_b;
  a.body->getCollisionShape()->getAabb(a.at(begin), low_a, high_a);
  b.body->getCollisionShape()->getAabb(b.at(begin), low_b, high_b);
  const btScalar room = gContactBreakingThreshold + (a.swing() + b.swing());
  const btVector3 closes = a.moves - b.moves;  // of a, seen from b
  btScalar first = 0, last = 1 - begin;
  for (int k = 0; k < 3; ++k) {
    const btScalar before = low_b[k] - high_a[k] - room, behind = high_b[k] - low_a[k] + room;
    if (closes[k] == 0) {
      if (before > 0 || behind < 0) return std::nullopt;
      continue;
    }
    btScalar enter = before / closes[k], leave = behind / closes[k];
    if (enter > leave) std::swap(enter, leave);
    first = std::max(first, enter);
    last = std::min(last, leave);
  }
  if (!(first <= last)) return std::nullopt;
  return std::pair(begin + first, begin + last);
}

// Whether contacts of the step's begin are enough: neither body could pass through the other, and they come no closer
// than contacts reach.
bool stay_near(const Way& a, const Way& b) {
  const auto swing = [](const Way& way) {
    return way.body->getCollisionShape()->getShapeType() == SPHERE_SHAPE_PROXYTYPE ? btScalar(0) : way.swing();
  };
  const btScalar left = gContactBreakingThreshold - (swing(a) + swing(b));
  return left > 0 && (a.moves - b.moves).length2() < left * left && !a.is_fast() && !b.is_fast();
}

// For each way, the later ones in the list whose boxes meet its own.
std::vector<std::vector<int>> find_meetings(const std::vector<Way>& ways) {
  struct Box {
    btVector3 low, high;
    int place;
  };
  std::vector<Box> boxes(ways.size());
  for (std::size_t i = 0; i < ways.size(); ++i) {
    bound(ways[i], boxes[i].low, boxes[i].high);
    boxes[i].place = static_cast<int>(i);
  }
  std::sort(boxes.begin(), boxes.end(), [](const Box& x, const Box& y) { return x.low.x() < y.low.x(); });
  std::vector<std::vector<int>> found(ways.size());
  const auto meets = [](const Box& x, const Box& y) {
    for (int k = 1; k < 3; ++k)
      if (x.low[k] > y.high[k] || y.low[k] > x.high[k]) return false;
    return true;
  };
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t k = i + 1; k < boxes.size() && boxes[k].low.x() <= boxes[i].high.x(); ++k)
      if (meets(boxes[i], boxes[k]) && !stay_near(ways[boxes[i].place], ways[boxes[k].place]))
        found[std::min(boxes[i].place, boxes[k].place)].push_back(std::max(boxes[i].place, boxes[k].place));
  return found;
}

std::uint64_t key_of(const Way& a, const Way& b) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(a.number)) << 32) |
         static_cast<std::uint32_t>(b.number);
}

}  // namespace

btTransform Way::at(btScalar share) const {
  const btScalar duration = share - begin;
  if (turns.isZero()) return btTransform(from.getBasis(), from.getOrigin() + duration * moves);
  btTransform out;
  btTransformUtil::integrateTransform(from, moves, turns, duration, out);
  return out;
}

Way way_of(const btCollisionObject& body, int number, const btVector3& linear, const btVector3& angular,
           const btVector3& gravity, btScalar radius, btScalar inverse_mass, btScalar timestep, int substeps) {
  Way way;
  way.body = &body;
  way.number = number;
  way.start = way.from = body.getWorldTransform();
  // Velocity changes before each substep.
  const btScalar falls = timestep * btScalar(substeps + 1) / btScalar(2 * substeps);
  way.moves = timestep * (linear + falls * gravity);
  way.turns = timestep * angular;
  way.radius = radius;
  way.inverse_mass = inverse_mass;
  return way;
}

// Two bodies at places on their ways, looked at by the world's own algorithms.
class AheadFinder::Probe {
 public:
  Probe(AheadFinder& finder, const Way& a, const Way& b) : finder_(finder), ways_{&a, &b} {
    for (int side = 0; side < 2; ++side) {
      const btCollisionObject& body = *ways_[side]->body;
      objects_[side].setCollisionShape(const_cast<btCollisionShape*>(body.getCollisionShape()));
      objects_[side].setUserIndex(ways_[side]->number);  // by which parts that may not touch are known
      objects_[side].setFriction(body.getFriction());
      objects_[side].setRestitution(body.getRestitution());
      objects_[side].setRollingFriction(body.getRollingFriction());
      objects_[side].setSpinningFriction(body.getSpinningFriction());
    }
    const btCollisionObjectWrapper first = wrapper(0), second = wrapper(1);
    algorithm_ = finder_.dispatcher_.findAlgorithm(&first, &second, nullptr, BT_CONTACT_POINT_ALGORITHMS);
  }
  ~Probe() {
    algorithm_->~btCollisionAlgorithm();
    finder_.dispatcher_.freeCollisionAlgorithm(algorithm_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Looks at the bodies there: `manifolds` are theirs from now on.
  void look(btScalar share) {
    share_ = share;
    for (int side = 0; side < 2; ++side) objects_[side].setWorldTransform(ways_[side]->at(share));
    for (int k = 0; k < manifolds_.size(); ++k) manifolds_[k]->clearManifold();  // it remembers nothing
    const btCollisionObjectWrapper first = wrapper(0), second = wrapper(1);
    btManifoldResult result(&first, &second);
    algorithm_->processCollision(&first, &second, finder_.info_, &result);
    manifolds_.resize(0);
    algorithm_->getAllContactManifolds(manifolds_);
  }

  // Whether a point is as near as that; with `ahead`, only if there was more than a touch before it.
  bool touches(btScalar distance, bool ahead) const {
    for (int k = 0; k < manifolds_.size(); ++k)
      for (int p = 0; p < manifolds_[k]->getNumContacts(); ++p) {
        const btManifoldPoint& point = manifolds_[k]->getContactPoint(p);
        if (point.getDistance() <= distance && (!ahead || is_ahead(*manifolds_[k], point))) return true;
      }
    return false;
  }

  // The normal of the deepest point, from b to a.
  btVector3 normal(bool ahead) const {
    btVector3 found(0, 0, 0);
    btScalar least = BT_LARGE_FLOAT;
    for (int k = 0; k < manifolds_.size(); ++k)
      for (int p = 0; p < manifolds_[k]->getNumContacts(); ++p) {
        const btManifoldPoint& point = manifolds_[k]->getContactPoint(p);
        if (point.getDistance() >= least || (ahead && !is_ahead(*manifolds_[k], point))) continue;
        least = point.getDistance();
        found = side_of(manifolds_[k]->getBody0()) == 0 ? point.m_normalWorldOnB : -point.m_normalWorldOnB;
      }
    return found;
  }

  void keep(bool ahead, std::vector<AheadContact>& into) const {
    for (int k = 0; k < manifolds_.size(); ++k) {
      const btPersistentManifold& from = *manifolds_[k];
      const Way &first = *ways_[side_of(from.getBody0())], &second = *ways_[side_of(from.getBody1())];
      AheadContact made;
      made.manifold = std::make_unique<btPersistentManifold>(first.body, second.body, 0, gContactBreakingThreshold,
                                                             gContactBreakingThreshold);
      made.manifold->m_companionIdA = first.number + 1;
      made.manifold->m_companionIdB = second.number + 1;
      const btVector3 &now_a = from.getBody0()->getWorldTransform().getOrigin(),
                      &now_b = from.getBody1()->getWorldTransform().getOrigin();
      made.met = now_b - second.start.getOrigin();
      made.shift = now_a - first.start.getOrigin() - made.met;
      for (int p = 0; p < from.getNumContacts(); ++p) {
        btManifoldPoint point = from.getContactPoint(p);
        if (ahead && !is_ahead(from, point)) continue;
        point.m_distance1 = gap(from, point);
        point.m_positionWorldOnB -= made.met;
        point.m_positionWorldOnA -= made.met;
        point.m_appliedImpulse = 0;
        point.m_lifeTime = 0;
        made.manifold->addManifoldPoint(point);
      }
      const int count = made.manifold->getNumContacts();
      if (count == 0) continue;
      into.push_back(std::move(made));
      if (count < 3 && (first.is_fast() || second.is_fast())) keep_core(from, into);
    }
  }

 private:
  // A body that is met by a corner begins to turn, and may turn by more in the rest of the step than its contact knows
  // of. Its core, a ball as thick as it is, stays on its side: a contact without arms and friction. Where it bounces,
  // half as thick: the core is to stop nothing that the corner sends back.
  void keep_core(const btPersistentManifold& from, std::vector<AheadContact>& into) const {
    const AheadContact& whole = into.back();
    int deepest = 0;
    for (int p = 1; p < from.getNumContacts(); ++p)
      if (from.getContactPoint(p).getDistance() < from.getContactPoint(deepest).getDistance()) deepest = p;
    const Way &first = *ways_[side_of(from.getBody0())], &second = *ways_[side_of(from.getBody1())];
    const bool is_first = !first.is_static() && (second.is_static() || first.moves.length2() >= second.moves.length2());
    btManifoldPoint point = from.getContactPoint(deepest);
    const btVector3& normal = point.m_normalWorldOnB;
    const btCollisionObject* object = is_first ? from.getBody0() : from.getBody1();
    if (object->getCollisionShape()->getShapeType() == SPHERE_SHAPE_PROXYTYPE) return;  // it is its own core
    const btVector3& middle = object->getWorldTransform().getOrigin();
    const btScalar thick = thickness_of(*(is_first ? first : second).body) *
                           (point.m_combinedRestitution > 0 ? btScalar(0.5) : btScalar(1)),
                   side = is_first ? btScalar(1) : btScalar(-1);
    const btScalar away = std::max(side * normal.dot(middle - point.m_positionWorldOnB) - thick, btScalar(0));
    point.m_positionWorldOnA = point.m_positionWorldOnB = middle - side * thick * normal;
    point.m_distance1 = away;
    point.m_distance1 = gap(from, point);
    point.m_positionWorldOnA -= whole.met;
    point.m_positionWorldOnB -= whole.met;
    point.m_appliedImpulse = point.m_combinedFriction = point.m_combinedRestitution = 0;
    point.m_lifeTime = 0;
    point.m_contactPointFlags = kCore;
    AheadContact made;
    made.manifold = std::make_unique<btPersistentManifold>(first.body, second.body, 0, gContactBreakingThreshold,
                                                           gContactBreakingThreshold);
    made.manifold->m_companionIdA = first.number + 1;
    made.manifold->m_companionIdB = second.number + 1;
    made.met = whole.met;
    made.shift = whole.shift;
    made.manifold->addManifoldPoint(point);
    into.push_back(std::move(made));
  }

  btCollisionObjectWrapper wrapper(int side) const {
    const btCollisionObject& object = objects_[side];
    return {nullptr, object.getCollisionShape(), &object, object.getWorldTransform(), -1, -1};
  }
  int side_of(const btCollisionObject* object) const { return object == &objects_[0] ? 0 : 1; }

  // How far a point was from touching as the step began, along its normal and for the arms that it has here: what the
  // bodies' ways take away is exactly what the solver will see.
  btScalar gap(const btPersistentManifold& manifold, const btManifoldPoint& point) const {
    const auto along = [&](const btCollisionObject* object, const btVector3& at) {
      const Way& way = *ways_[side_of(object)];
      const btVector3& now = object->getWorldTransform().getOrigin();
      const btVector3 moved = now - way.start.getOrigin() + (share_ * way.turns).cross(at - now);
      return point.m_normalWorldOnB.dot(moved);
    };
    return point.getDistance() - along(manifold.getBody0(), point.getPositionWorldOnA()) +
           along(manifold.getBody1(), point.getPositionWorldOnB());
  }
  bool is_ahead(const btPersistentManifold& manifold, const btManifoldPoint& point) const {
    return gap(manifold, point) > kTouches * gContactBreakingThreshold;
  }

  AheadFinder& finder_;
  const Way* ways_[2];
  btCollisionObject objects_[2];
  btCollisionAlgorithm* algorithm_;
  btManifoldArray manifolds_;
  btScalar share_ = 0;
};

std::optional<AheadFinder::Hit> AheadFinder::look_along(const Way& a, const Way& b, bool keeps) {
  const auto overlap = find_overlap(a, b);
  const bool is_first = a.begin == 0 && b.begin == 0;
  if (!overlap) {
    if (keeps && is_first) passed.insert(key_of(a, b));
    return std::nullopt;
  }
  const auto [first, last] = *overlap;
  Probe probe(*this, a, b);
  probe.look(first);
  // What touches already is a contact without us: of these bodies, only other parts are looked for.
  const bool ahead = probe.touches(kTouches * gContactBreakingThreshold, false);
  if (keeps && is_first && !ahead) passed.insert(key_of(a, b));
  const btScalar spacing = kFastShare * (thickness_of(*a.body) + thickness_of(*b.body));
  const btScalar length = (last - first) * ((a.moves - b.moves).length() + a.swing() + b.swing());
  const int count = static_cast<int>(std::clamp(std::ceil(length / spacing), btScalar(1), btScalar(kMostPlaces)));
  btScalar free = first, touching = -1;
  for (int i = 1; i <= count; ++i) {
    const btScalar share = first + (last - first) * btScalar(i) / btScalar(count);
    probe.look(share);
    if (probe.touches(0, ahead)) {
      touching = share;
      break;
    }
    free = share;
  }
  if (touching < 0) return std::nullopt;
  for (int i = 0; i < kHalvings; ++i) {
    const btScalar middle = (free + touching) / 2;
    probe.look(middle);
    (probe.touches(0, ahead) ? touching : free) = middle;
  }
  probe.look(touching);
  if (keeps) probe.keep(ahead, contacts);
  return Hit{touching, probe.normal(ahead)};
}

bool AheadFinder::passes(btPersistentManifold& manifold) const {
  if (!passed.contains(manifold_key(manifold).first)) return false;
  for (int p = 0; p < manifold.getNumContacts(); ++p)
    if (manifold.getContactPoint(p).getDistance() <= kTouches * gContactBreakingThreshold) return false;
  return true;
}

void AheadFinder::find(const Question& question) {
  forget();
  legs_.clear();
  for (const Way& way : question.fast) legs_.push_back({way, -1, 0});
  const std::vector<std::vector<int>> meetings = find_meetings(question.fast);
  const std::vector<int> none;
  for (std::size_t i = 0; i < legs_.size() && i < kMostLegs; ++i) {
    const Leg leg = legs_[i];  // the list grows
    find_along(question, leg, i < meetings.size() ? meetings[i] : none);
  }
}

void AheadFinder::find_along(const Question& question, const Leg& leg, const std::vector<int>& meetings) {
  const Way& way = leg.way;
  btVector3 low, high;
  bound(way, low, high);
  const btVector3 room(question.other_way, question.other_way, question.other_way);
  const auto number = [](const btCollisionObject* object) { return object->getBroadphaseHandle()->m_uniqueId; };
  std::vector<Way> others;
  const auto is_fast = [&](int id) {
    const auto at = std::lower_bound(question.fast.begin(), question.fast.end(), id,
                                     [](const Way& one, int value) { return one.number < value; });
    return at != question.fast.end() && at->number == id;
  };
  for (const btCollisionObject* object : bodies_in_box(broadphase_, low - room, high + room))
    if (!is_fast(number(object))) others.push_back(question.way_of(*object));
  // Fast ones need not be where the tree has them. Two of them are looked at once.
  if (leg.generation == 0)
    for (const int place : meetings) others.push_back(question.fast[place]);
  else
    others.insert(others.end(), question.fast.begin(), question.fast.end());
  std::sort(others.begin(), others.end(), [](const Way& x, const Way& y) { return x.number < y.number; });

  struct Met {
    const Way* other;
    Hit hit;
    std::size_t first, end;  // its contacts
    bool is_own;
  };
  std::vector<Met> met;
  auto* proxy = const_cast<btBroadphaseProxy*>(way.body->getBroadphaseHandle());
  for (const Way& other : others) {
    if (other.number == leg.except || other.number == way.number) continue;
    if (leg.generation == 0 && stay_near(way, other)) continue;
    auto* other_proxy = const_cast<btBroadphaseProxy*>(other.body->getBroadphaseHandle());
    if (!filter_.needBroadphaseCollision(proxy, other_proxy)) continue;
    const Owner owner = question.owner_of(way.number, other.number);
    if (owner == Owner::kNobody || (owner == Owner::kBetween && leg.generation > 0)) continue;
    const std::size_t before = contacts.size();
    const bool is_lower = way.number < other.number;
    auto hit = is_lower ? look_along(way, other, true) : look_along(other, way, true);
    if (!hit) continue;
    if (!is_lower) hit->normal = -hit->normal;
    met.push_back({&other, *hit, before, contacts.size(), owner == Owner::kOwn});
  }

  // It does not pass what cannot be moved: there its way bends. What it would meet behind that is left out.
  btScalar end = 2;
  const Met* wall = nullptr;
  for (const Met& one : met)
    if (one.other->is_static() && one.hit.share < end) end = one.hit.share, wall = &one;
  if (!wall && leg.generation == kGenerations) return;
  const btScalar length = way.moves.length() + way.swing();
  const btScalar at_once = length > 0 ? kAtOnce * thickness_of(*way.body) / length : btScalar(0);
  std::vector<char> drops(contacts.size(), 0);
  for (const Met& one : met) {
    if (one.is_own && one.hit.share > end + at_once) {
      std::fill(drops.begin() + one.first, drops.begin() + one.end, 1);
      continue;
    }
    if (leg.generation == kGenerations) continue;
    if (one.other->is_static() || !one.is_own) continue;
    // What is met may be as fast as what meets it, from there on.
    Leg next{*one.other, way.number, leg.generation + 1};
    next.way.from = one.other->at(one.hit.share);
    next.way.begin = one.hit.share;
    const btScalar closes = one.hit.normal.dot(way.moves - one.other->moves);
    if (closes < 0) next.way.moves += closes * one.hit.normal;
    legs_.push_back(next);
  }
  if (wall && !way.is_static() && leg.generation < kGenerations) {
    Leg next{way, wall->other->number, leg.generation + 1};
    next.way.from = way.at(end);
    next.way.begin = end;
    const btScalar closes = wall->hit.normal.dot(way.moves - wall->other->moves);
    if (closes < 0) next.way.moves -= closes * wall->hit.normal;
    legs_.push_back(next);
  }
  for (std::size_t i = drops.size(); i-- > 0;)
    if (drops[i]) contacts.erase(contacts.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace lapjoint
