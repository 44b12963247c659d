#include "bullet/exact.h"

#include <BulletCollision/CollisionDispatch/btCollisionCreateFunc.h>
#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btConvexConvexAlgorithm.h>
#include <BulletCollision/CollisionDispatch/btManifoldResult.h>
#include <BulletCollision/CollisionShapes/btTriangleShape.h>

#include <algorithm>
#include <vector>

#include "bullet/height_field.h"
#include "bullet/round_shapes.h"
#include "detection/polyhedron.h"

namespace lapjoint {

namespace {

using Wrapper = btCollisionObjectWrapper;

btScalar reach_of(const btPersistentManifold& manifold) {
  return std::min(manifold.getContactBreakingThreshold(), gContactBreakingThreshold);
}

const Polyhedron& polyhedron_of(const Wrapper& wrapper) {
  return *static_cast<const Polyhedron*>(wrapper.getCollisionShape()->getUserPointer());
}

// ---- manifolds -----------------------------------------------------------------------------------------------------
//
// A point keeps what touches in m_partId0 (faces or edges of both shapes) and m_partId1 (which point of them): Bullet
// uses the two for triangles alone, and they are part of a world's state. Parts of compounds are in m_index0 and 1.

PatchHistory history_of(const btPersistentManifold* manifold) {
  if (!manifold) return {};
  const btManifoldPoint& first = manifold->getContactPoint(0);
  return {manifold->getNumContacts(), &first.m_partId0, &first.m_partId1, sizeof(btManifoldPoint)};
}

bool has_features(const btPersistentManifold& manifold, const Patch& patch) {
  if (manifold.getNumContacts() != patch.count) return false;
  for (int k = 0; k < patch.count; ++k) {
    const btManifoldPoint& point = manifold.getContactPoint(k);
    if (point.m_partId0 != patch.faces || point.m_partId1 != patch.points[k].feature) return false;
  }
  return true;
}

// A point of each shape's frame in its body's.
struct Frames {
  Frames(const Wrapper& a, const Wrapper& b)
      : a(&a.getCollisionObject()->getWorldTransform()), b(&b.getCollisionObject()->getWorldTransform()) {
    is_part_a = &a.getWorldTransform() != this->a;
    is_part_b = &b.getWorldTransform() != this->b;
    if (is_part_a) part_a = this->a->inverseTimes(a.getWorldTransform());
    if (is_part_b) part_b = this->b->inverseTimes(b.getWorldTransform());
  }
  btVector3 on_a(const PatchPoint& point) const { return is_part_a ? part_a(point.on_a) : point.on_a; }
  btVector3 on_b(const PatchPoint& point) const { return is_part_b ? part_b(point.on_b) : point.on_b; }

  const btTransform *a, *b;  // of the bodies
  bool is_part_a, is_part_b;
  btTransform part_a, part_b;
};

btManifoldPoint make_point(const Wrapper& a, const Wrapper& b, const btVector3& normal) {
  const btVector3 none(0, 0, 0);
  btManifoldPoint point(none, none, normal, 0);
  const btCollisionObject *p = a.getCollisionObject(), *q = b.getCollisionObject();
  point.m_combinedFriction = btManifoldResult::calculateCombinedFriction(p, q);
  point.m_combinedRestitution = btManifoldResult::calculateCombinedRestitution(p, q);
  point.m_combinedRollingFriction = btManifoldResult::calculateCombinedRollingFriction(p, q);
  point.m_combinedSpinningFriction = btManifoldResult::calculateCombinedSpinningFriction(p, q);
  btPlaneSpace1(normal, point.m_lateralFrictionDir1, point.m_lateralFrictionDir2);
  point.m_index0 = a.m_index;
  point.m_index1 = b.m_index;
  return point;
}

// The points in the order of the patch: each continues the old one that has its feature, or else is where it was within
// the reach on one of the bodies.
void arrange(btPersistentManifold& manifold, const Patch& patch, const Wrapper& a, const Wrapper& b,
             const Frames& frames, const btVector3& normal) {
  btManifoldPoint old[kPatchSize];
  const int count = manifold.getNumContacts();
  int source[kPatchSize] = {-1, -1, -1, -1};
  bool used[kPatchSize] = {};
  for (int i = 0; i < count; ++i) old[i] = manifold.getContactPoint(i);
  for (int k = 0; k < patch.count; ++k) {
    for (int i = 0; i < count && source[k] < 0; ++i) {
      if (used[i] || old[i].m_partId0 != patch.faces || old[i].m_partId1 != patch.points[k].feature) continue;
      source[k] = i;
      used[i] = true;
    }
  }
  const btScalar reach = reach_of(manifold);
  for (int k = 0; k < patch.count; ++k) {
    if (source[k] >= 0) continue;
    const btVector3 on_a = frames.on_a(patch.points[k]), on_b = frames.on_b(patch.points[k]);
    btScalar nearest = reach * reach;
    for (int i = 0; i < count; ++i) {
      if (used[i]) continue;
      const btScalar away = std::min((old[i].m_localPointA - on_a).length2(), (old[i].m_localPointB - on_b).length2());
      if (away < nearest) nearest = away, source[k] = i;
    }
    if (source[k] >= 0) used[source[k]] = true;
  }
  for (int i = 0; i < count; ++i)
    if (!used[i]) manifold.clearUserCache(manifold.getContactPoint(i));
  manifold.setNumContacts(patch.count);
  for (int k = 0; k < patch.count; ++k) {
    btManifoldPoint& point = manifold.getContactPoint(k);
    point = source[k] >= 0 ? old[source[k]] : make_point(a, b, normal);
    point.m_partId0 = patch.faces;
    point.m_partId1 = patch.points[k].feature;
  }
}

// `a` is the manifold's first body.
void update(btPersistentManifold& manifold, const Patch& patch, const Wrapper& a, const Wrapper& b) {
  const Frames frames(a, b);
  const btVector3 normal = a.getWorldTransform().getBasis() * patch.normal;
  if (!has_features(manifold, patch)) arrange(manifold, patch, a, b, frames, normal);
  for (int k = 0; k < patch.count; ++k) {
    btManifoldPoint& point = manifold.getContactPoint(k);
    point.m_localPointA = frames.on_a(patch.points[k]);
    point.m_localPointB = frames.on_b(patch.points[k]);
    point.m_positionWorldOnA = (*frames.a)(point.m_localPointA);
    point.m_positionWorldOnB = (*frames.b)(point.m_localPointB);
    point.m_normalWorldOnB = normal;
    point.m_distance1 = patch.points[k].distance;
    ++point.m_lifeTime;
  }
}

// ---- algorithms ----------------------------------------------------------------------------------------------------

// An algorithm with a manifold of its own while there is a point, for two bodies in the order they are given in.
class ExactAlgorithm : public btCollisionAlgorithm, public ManifoldOwner {
 public:
  ExactAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const btCollisionObject* a,
                 const btCollisionObject* b)
      : btCollisionAlgorithm(info), a_(a), b_(b) {
    const auto threshold = [](const btCollisionObject* body) {
      return body->getCollisionShape()->getContactBreakingThreshold(gContactBreakingThreshold);
    };
    threshold_ = std::min(threshold(a), threshold(b));
    reach_ = std::min(threshold_, gContactBreakingThreshold);
  }
  ~ExactAlgorithm() override { release(); }
  btScalar calculateTimeOfImpact(btCollisionObject*, btCollisionObject*, const btDispatcherInfo&,
                                 btManifoldResult*) override {
    return 1;
  }
  void getAllContactManifolds(btManifoldArray& manifolds) override {
    if (manifold_) manifolds.push_back(manifold_);
  }
  btPersistentManifold& manifold() override {
    if (!manifold_) manifold_ = m_dispatcher->getNewManifold(a_, b_);
    return *manifold_;
  }

 protected:
  void show(bool touch, const Patch& patch, const Wrapper& a, const Wrapper& b, btManifoldResult* result) {
    if (touch)
      update(manifold(), patch, a, b);
    else
      release();
    result->setPersistentManifold(manifold_);
  }

  void release() {
    if (manifold_) m_dispatcher->releaseManifold(manifold_);
    manifold_ = nullptr;
  }

  btScalar threshold_, reach_;  // as its manifold has it, and `reach_of` that
  btPersistentManifold* manifold_ = nullptr;

 private:
  const btCollisionObject *a_, *b_;
};

// Two spheres; Bullet's own see each other only once they overlap.
class SphereAlgorithm : public ExactAlgorithm {
 public:
  SphereAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b)
      : ExactAlgorithm(info, a.getCollisionObject(), b.getCollisionObject()) {}
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo&, btManifoldResult* out) override {
    const auto radius = [](const Wrapper* sphere) {
      return static_cast<const btSphereShape*>(sphere->getCollisionShape())->getRadius();
    };
    const btTransform &at_a = a->getWorldTransform(), &at_b = b->getWorldTransform();
    const btVector3 apart = at_a.getOrigin() - at_b.getOrigin();
    const btScalar distance = apart.length(), gap = distance - (radius(a) + radius(b));
    Patch patch;
    const bool touch = gap <= reach_;
    if (touch) {
      const btVector3 normal = distance > 0 ? apart / distance : btVector3(0, 0, 1);
      patch.normal = normal * at_a.getBasis();
      patch.count = 1;
      patch.points[0] = {-radius(a) * patch.normal, radius(b) * (normal * at_b.getBasis()), gap, 0};
    }
    show(touch, patch, *a, *b, out);
  }
};

class BoxAlgorithm : public ExactAlgorithm {
 public:
  BoxAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b)
      : ExactAlgorithm(info, a.getCollisionObject(), b.getCollisionObject()) {}
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo&, btManifoldResult* out) override {
    const auto half = [](const Wrapper* box) -> const btVector3& {
      return static_cast<const btBoxShape*>(box->getCollisionShape())->getHalfExtentsWithoutMargin();
    };
    Patch patch;
    const bool touch = touch_boxes(half(a), a->getWorldTransform(), half(b), b->getWorldTransform(), reach_,
                                   history_of(manifold_), patch);
    show(touch, patch, *a, *b, out);
  }
};

class PolyhedronAlgorithm : public ExactAlgorithm {
 public:
  PolyhedronAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b)
      : ExactAlgorithm(info, a.getCollisionObject(), b.getCollisionObject()) {}
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo&, btManifoldResult* out) override {
    Patch patch;
    const bool touch = touch_polyhedra(polyhedron_of(*a), a->getWorldTransform(), polyhedron_of(*b),
                                       b->getWorldTransform(), reach_, history_of(manifold_), hint_, patch);
    show(touch, patch, *a, *b, out);
  }

 private:
  int hint_ = -1;
};

// A capsule or a sphere as what is within its radius of a line.
struct Thick {
  explicit Thick(const Wrapper& of) : middle(of.getWorldTransform().getOrigin()), half(0, 0, 0) {
    const btCollisionShape* shape = of.getCollisionShape();
    if (shape->getShapeType() == SPHERE_SHAPE_PROXYTYPE) {
      radius = static_cast<const btSphereShape*>(shape)->getRadius();
      return;
    }
    const auto& capsule = *static_cast<const btCapsuleShape*>(shape);
    radius = capsule.getRadius();
    half = of.getWorldTransform().getBasis().getColumn(capsule.getUpAxis()) * capsule.getHalfHeight();
  }
  btVector3 middle, half;
  btScalar radius;
};

btScalar gap_between(const Thick& p, const Thick& q) {
  const auto within = [](btScalar share) { return std::clamp(share, btScalar(-1), btScalar(1)); };
  const btVector3 apart = p.middle - q.middle;
  const btScalar pp = p.half.length2(), qq = q.half.length2(), pq = p.half.dot(q.half);
  const btScalar along_p = p.half.dot(apart), along_q = q.half.dot(apart), sine = pp * qq - pq * pq;
  btScalar on_p = sine > 0 ? within((pq * along_q - qq * along_p) / sine) : 0;
  const btScalar on_q = qq > 0 ? within((pq * on_p + along_q) / qq) : 0;
  if (pp > 0) on_p = within((pq * on_q - along_p) / pp);
  return (apart + on_p * p.half - on_q * q.half).length() - p.radius - q.radius;
}

// Two capsules, or one and a sphere: Bullet's own algorithm, where they are near. Boxes around parts of rings that are
// not meet dozens of others.
class CapsuleAlgorithm : public ExactAlgorithm {
 public:
  CapsuleAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b,
                   btConvexPenetrationDepthSolver* depths)
      : ExactAlgorithm(info, a.getCollisionObject(), b.getCollisionObject()), depths_(depths) {}
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo& info,
                        btManifoldResult* out) override {
    // Bullet finds points up to its threshold, and keeps those that have moved by no more than that along the normal
    // and across it.
    constexpr btScalar kFinds = btScalar(1.1), kKeeps = btScalar(1.6);
    if (gap_between(Thick(*a), Thick(*b)) > (manifold_ ? kKeeps : kFinds) * threshold_) {
      release();
    } else {
      btCollisionAlgorithmConstructionInfo own;
      own.m_dispatcher1 = m_dispatcher;
      btConvexConvexAlgorithm(&manifold(), own, a, b, depths_, 0, 3).processCollision(a, b, info, out);
      if (manifold_->getNumContacts() == 0) release();
    }
    out->setPersistentManifold(manifold_);
  }

 private:
  btConvexPenetrationDepthSolver* depths_;
};

// A direction closer to the plane's normal than to the plane is steep. Of two corners that a steep edge joins, only the
// lower one touches: of a shape thinner than the reach, the upper face would do as well, and its corners be farther
// away.
bool is_steep(btScalar along_normal) { return btFabs(along_normal) > SIMDSQRT12; }

// Leaves out corners of a hull from which an edge leads steeply down.
void drop_upper(const Polyhedron& hull, const btVector3& normal, std::vector<Candidate>& corners) {
  static thread_local std::vector<char> is_upper;
  is_upper.assign(hull.corners.size(), 0);
  for (const Polyhedron::Edge& edge : hull.edges) {
    const btScalar up = normal.dot(edge.along);
    if (is_steep(up)) is_upper[up > 0 ? edge.to : edge.from] = 1;
  }
  std::erase_if(corners, [](const Candidate& corner) { return is_upper[corner.feature] != 0; });
}

// Lowest points of a convex shape over a plane, in the shape's frame: the plane is normal . x + offset = 0.
void find_lowest(const btCollisionShape& shape, const btVector3& normal, btScalar offset, btScalar reach,
                 std::vector<Candidate>& into) {
  into.clear();
  const auto add = [&](const btVector3& at, int feature) {
    const btScalar distance = normal.dot(at) + offset;
    if (distance <= reach) into.push_back({at, distance, feature});
  };
  switch (shape.getShapeType()) {
    case BOX_SHAPE_PROXYTYPE: {
      const btVector3& half = static_cast<const btBoxShape&>(shape).getHalfExtentsWithoutMargin();
      int upper = 0, lower = 0;  // bits that corners may not have, and must have
      for (int k = 0; k < 3; ++k)
        if (is_steep(normal[k])) (normal[k] > 0 ? upper : lower) = 1 << k;
      for (int i = 0; i < 8; ++i) {
        if ((i & upper) != 0 || (i & lower) != lower) continue;
        add(btVector3(i & 1 ? half.x() : -half.x(), i & 2 ? half.y() : -half.y(), i & 4 ? half.z() : -half.z()), i);
      }
      break;
    }
    case CONVEX_HULL_SHAPE_PROXYTYPE: {
      const auto& hull = *static_cast<const Polyhedron*>(shape.getUserPointer());
      for (int i = 0; i < static_cast<int>(hull.corners.size()); ++i) add(hull.corners[i], i);
      if (static_cast<int>(into.size()) > kPatchSize) drop_upper(hull, normal, into);
      break;
    }
    case CYLINDER_SHAPE_PROXYTYPE: {
      const btVector3 half = static_cast<const btCylinderShape&>(shape).getHalfExtentsWithMargin();
      // The rim of the lower end: the lowest point, and others a quarter further each; the lowest of the upper end.
      btVector3 down(-normal.x(), -normal.y(), 0);
      down = down.length2() > btScalar(1e-6) ? down.normalized() * half.x() : btVector3(half.x(), 0, 0);
      const btVector3 end(0, 0, normal.z() > 0 ? -half.z() : half.z()), aside(-down.y(), down.x(), 0);
      add(end + down, 0);
      add(end + aside, 1);
      add(end - down, 2);
      add(end - aside, 3);
      if (!is_steep(normal.z())) add(down - end, 4);
      break;
    }
    case CONE_SHAPE_PROXYTYPE: {
      const auto& cone = static_cast<const ConeShape&>(shape);
      // The rim as a cylinder's, and the tip.
      btVector3 down(-normal.x(), -normal.y(), 0);
      down = down.length2() > btScalar(1e-6) ? down.normalized() * cone.radius() : btVector3(cone.radius(), 0, 0);
      const btVector3 base(0, 0, cone.base()), aside(-down.y(), down.x(), 0);
      add(base + down, 0);
      add(base + aside, 1);
      add(base - down, 2);
      add(base - aside, 3);
      if (!is_steep(normal.z()) || normal.z() < 0) add(btVector3(0, 0, cone.tip()), 4);
      break;
    }
    case CAPSULE_SHAPE_PROXYTYPE: {
      const auto& capsule = static_cast<const btCapsuleShape&>(shape);
      const btVector3 end(0, 0, capsule.getHalfHeight()), down = normal * -capsule.getRadius();
      add(end + down, 0);
      add(down - end, 1);
      break;
    }
    case kEllipsoidType:
      add(static_cast<const EllipsoidShape&>(shape).outermost(-normal), 0);
      break;
    default:
      add(static_cast<const btConvexShape&>(shape).localGetSupportingVertex(-normal), 0);
  }
}

// A convex shape over a plane; the shape is the manifold's first body.
class PlaneAlgorithm : public ExactAlgorithm {
 public:
  PlaneAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b, bool swapped)
      : ExactAlgorithm(info, (swapped ? b : a).getCollisionObject(), (swapped ? a : b).getCollisionObject()),
        swapped_(swapped) {}
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo&, btManifoldResult* out) override {
    if (swapped_) std::swap(a, b);
    const auto& plane = *static_cast<const btStaticPlaneShape*>(b->getCollisionShape());
    const btTransform &at = a->getWorldTransform(), &plane_at = b->getWorldTransform();
    const btVector3 up = plane_at.getBasis() * plane.getPlaneNormal();
    const btScalar height = up.dot(at.getOrigin() - plane_at.getOrigin()) - plane.getPlaneConstant();
    const btVector3 normal = up * at.getBasis();
    static thread_local std::vector<Candidate> lowest;
    find_lowest(*a->getCollisionShape(), normal, height, reach_, lowest);
    Patch patch;
    int chosen[kPatchSize];
    patch.normal = normal;
    patch.count = choose_points(lowest.data(), static_cast<int>(lowest.size()), normal, kSlack * reach_,
                                history_of(manifold_), patch.faces, chosen);
    const btTransform to_plane = plane_at.inverseTimes(at);
    for (int k = 0; k < patch.count; ++k) {
      const Candidate& point = lowest[chosen[k]];
      patch.points[k] = {point.at, to_plane(point.at) - plane.getPlaneNormal() * point.distance, point.distance,
                         point.feature};
    }
    show(patch.count > 0, patch, *a, *b, out);
  }

 private:
  bool swapped_;
};

// A box or hull and one triangle of a mesh, into the manifold that all triangles of the mesh share.
class TriangleAlgorithm : public btCollisionAlgorithm {
 public:
  using btCollisionAlgorithm::btCollisionAlgorithm;
  btScalar calculateTimeOfImpact(btCollisionObject*, btCollisionObject*, const btDispatcherInfo&,
                                 btManifoldResult*) override {
    return 1;
  }
  void getAllContactManifolds(btManifoldArray&) override {}
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo&, btManifoldResult* out) override {
    static thread_local Polyhedron triangle;
    Polyhedron::make_triangle(static_cast<const btTriangleShape*>(b->getCollisionShape())->m_vertices1, triangle);
    Patch patch;
    int hint = -1;
    const btTransform& at = a->getWorldTransform();
    const btScalar reach = reach_of(*out->getPersistentManifold());
    if (!touch_polyhedra(polyhedron_of(*a), at, triangle, b->getWorldTransform(), reach, PatchHistory(), hint, patch,
                         reach))
      return;
    const btVector3 normal = at.getBasis() * patch.normal;
    for (int k = 0; k < patch.count; ++k)
      out->addContactPoint(normal, b->getWorldTransform()(patch.points[k].on_b), patch.points[k].distance);
  }
};

const HeightFieldShape* field_of(const Wrapper& triangle) {
  const btCollisionShape* shape = triangle.getCollisionObject()->getCollisionShape();
  return shape->getShapeType() == TERRAIN_SHAPE_PROXYTYPE ? static_cast<const HeightFieldShape*>(shape) : nullptr;
}

// Passes on the contacts that a surface has, and not only one of its triangles: those with the triangle's normal, or on
// a height field, which knows what is around it, those that push out of it.
struct OfSurface : btManifoldResult {
  OfSurface(btManifoldResult& all, const Wrapper& triangle, const btVector3& up)
      : btManifoldResult(all.getBody0Wrap(), all.getBody1Wrap()),
        result(all),
        normal(up),
        field(field_of(triangle)),
        place(triangle.getWorldTransform()) {}
  void addContactPoint(const btVector3& found, const btVector3& at, btScalar distance) override {
    if (field ? field->pushes_out(place.invXform(at), found * place.getBasis()) : found.dot(normal) > btScalar(0.99))
      result.addContactPoint(found, at, distance);
  }
  btManifoldResult& result;
  btVector3 normal;
  const HeightFieldShape* field;
  const btTransform& place;
};

// Where a mesh's triangle is, and its normal; false if it has no area.
bool find_corners(const Wrapper& of, btVector3 (&corner)[3], btVector3& normal) {
  auto& triangle = *static_cast<btTriangleShape*>(const_cast<btCollisionShape*>(of.getCollisionShape()));
  triangle.setMargin(0);  // a mesh's is how far it looks for triangles
  for (int k = 0; k < 3; ++k) corner[k] = of.getWorldTransform()(triangle.m_vertices1[k]);
  normal = (corner[1] - corner[0]).cross(corner[2] - corner[0]);
  if (normal.fuzzyZero()) return false;
  normal.normalize();
  return true;
}

// A cylinder, cone or capsule and one triangle of a mesh. Its lowest points over the triangle, as over a plane; closest
// points where there are none, or where it is so deep inside that it is another side that it touches.
class RoundTriangleAlgorithm : public btConvexConvexAlgorithm {
 public:
  using btConvexConvexAlgorithm::btConvexConvexAlgorithm;
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo& info,
                        btManifoldResult* out) override {
    const btTransform& at = a->getWorldTransform();
    btVector3 corner[3], normal;
    if (!find_corners(*b, corner, normal)) return;
    const btScalar turn = normal.dot(at.getOrigin() - corner[0]) < 0 ? btScalar(-1) : btScalar(1);
    const btVector3 up = normal * turn;
    const btScalar reach = reach_of(*out->getPersistentManifold());
    static thread_local std::vector<Candidate> lowest;
    find_lowest(*a->getCollisionShape(), up * at.getBasis(), up.dot(at.getOrigin() - corner[0]), reach, lowest);
    if (lowest.empty()) return;
    for (const Candidate& point : lowest)
      if (point.distance < -reach) return btConvexConvexAlgorithm::processCollision(a, b, info, out);
    bool found = false;
    for (const Candidate& point : lowest) {
      const btVector3 on = at(point.at) - up * point.distance;
      bool inside = true;
      for (int k = 0; k < 3; ++k) {
        const btVector3 edge = corner[(k + 1) % 3] - corner[k];
        inside &= edge.cross(normal).dot(on - corner[k]) <= kWiden * reach * edge.length();
      }
      if (inside) out->addContactPoint(up, on, point.distance);
      found |= inside;
    }
    if (found) return;
    OfSurface of_surface(*out, *b, up);
    btConvexConvexAlgorithm::processCollision(a, b, info, &of_surface);
  }
};

// An ellipsoid, or a sphere on a height field, and one triangle: its lowest point over the triangle, or else the
// closest one of its sides.
class SmoothTriangleAlgorithm : public btConvexConvexAlgorithm {
 public:
  using btConvexConvexAlgorithm::btConvexConvexAlgorithm;
  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo& info,
                        btManifoldResult* out) override {
    const btTransform& at = a->getWorldTransform();
    btVector3 corner[3], normal;
    if (!find_corners(*b, corner, normal)) return;
    const btScalar height = normal.dot(at.getOrigin() - corner[0]);
    const btVector3 up = height < 0 ? -normal : normal;
    const auto& shape = *static_cast<const btConvexShape*>(a->getCollisionShape());
    const btVector3 lowest = at(shape.localGetSupportingVertex(-up * at.getBasis()));
    const btScalar distance = up.dot(lowest - corner[0]);
    if (distance > reach_of(*out->getPersistentManifold())) return;
    const btVector3 on = lowest - up * distance;
    bool inside = true;
    for (int k = 0; k < 3; ++k) inside &= (corner[(k + 1) % 3] - corner[k]).cross(normal).dot(on - corner[k]) <= 0;
    if (inside) return out->addContactPoint(up, on, distance);
    if (!field_of(*b)) return btConvexConvexAlgorithm::processCollision(a, b, info, out);
    OfSurface of_surface(*out, *b, up);
    btConvexConvexAlgorithm::processCollision(a, b, info, &of_surface);
  }
};

// Keeps the deepest of all points.
struct Deepest : btManifoldResult {
  explicit Deepest(const btManifoldResult& like) : btManifoldResult(like.getBody0Wrap(), like.getBody1Wrap()) {}
  void addContactPoint(const btVector3& found, const btVector3& at, btScalar depth) override {
    if (depth >= distance) return;
    normal = found;
    on_b = at;
    distance = depth;
  }
  btVector3 normal, on_b;
  btScalar distance = BT_LARGE_FLOAT;
};

// An ellipsoid and another convex shape touch in one point, the closest. Bullet would keep those of before, which are
// not, as long as they are within its threshold.
class SmoothAlgorithm : public btConvexConvexAlgorithm {
 public:
  SmoothAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b,
                  btConvexPenetrationDepthSolver* depths)
      : SmoothAlgorithm(info, a, b, depths,
                        info.m_dispatcher1->getNewManifold(a.getCollisionObject(), b.getCollisionObject())) {}
  ~SmoothAlgorithm() override { m_dispatcher->releaseManifold(manifold_); }
  void getAllContactManifolds(btManifoldArray& manifolds) override { manifolds.push_back(manifold_); }

  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo& info,
                        btManifoldResult* out) override {
    Deepest found(*out);
    btConvexConvexAlgorithm::processCollision(a, b, info, &found);
    out->setPersistentManifold(manifold_);
    if (found.distance > reach_of(*manifold_)) return manifold_->clearManifold();
    Patch patch;
    const btTransform &at_a = a->getWorldTransform(), &at_b = b->getWorldTransform();
    patch.normal = found.normal * at_a.getBasis();
    patch.count = 1;
    patch.points[0] = {at_a.invXform(found.on_b + found.normal * found.distance), at_b.invXform(found.on_b),
                       found.distance, 0};
    update(*manifold_, patch, *a, *b);
  }

 private:
  SmoothAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b,
                  btConvexPenetrationDepthSolver* depths, btPersistentManifold* manifold)
      : btConvexConvexAlgorithm(manifold, info, &a, &b, depths, 0, 3), manifold_(manifold) {}

  btPersistentManifold* manifold_;
};

// How far a cylinder, cone or capsule with its middle at height zero reaches down, if its axis has this cosine with the
// normal.
btScalar reach_down(const btCollisionShape& shape, btScalar cosine) {
  if (shape.getShapeType() == CAPSULE_SHAPE_PROXYTYPE) {
    const auto& capsule = static_cast<const btCapsuleShape&>(shape);
    return capsule.getHalfHeight() * btFabs(cosine) + capsule.getRadius();
  }
  const btScalar sine = btSqrt(std::max(1 - cosine * cosine, btScalar(0)));
  if (shape.getShapeType() == CONE_SHAPE_PROXYTYPE) {
    const auto& cone = static_cast<const ConeShape&>(shape);
    return std::max(-cone.tip() * cosine, cone.radius() * sine - cone.base() * cosine);
  }
  const btVector3 half = static_cast<const btCylinderShape&>(shape).getHalfExtentsWithMargin();
  return half.z() * btFabs(cosine) + half.x() * sine;
}

// The rim on which a cylinder or a cone stands on a face, if its axis has this cosine with the face's normal: its
// radius, and how far from the middle it is along the axis. A cone does not stand on its tip, nor a capsule at all.
struct Rim {
  btScalar radius = 0, along = 0;
  explicit operator bool() const { return radius > 0; }
};

Rim rim_of(const btCollisionShape& shape, btScalar cosine) {
  if (shape.getShapeType() == CONE_SHAPE_PROXYTYPE) {
    const auto& cone = static_cast<const ConeShape&>(shape);
    return cosine > 0 ? Rim{cone.radius(), cone.base()} : Rim{};
  }
  if (shape.getShapeType() != CYLINDER_SHAPE_PROXYTYPE) return {};
  const btVector3 half = static_cast<const btCylinderShape&>(shape).getHalfExtentsWithMargin();
  return {half.x(), cosine > 0 ? -half.z() : half.z()};
}

// A cylinder, cone or capsule on a face of a box or hull, or on an end of a cylinder or cone: its lowest points over
// the face, all at once, and where the end that it stands on goes beyond the face, the face's corners and where its
// sides cross the rim. Else Bullet's closest points, one more in every step. The round shape is the manifold's first
// body.
class RoundAlgorithm : public btConvexConvexAlgorithm {
 public:
  RoundAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b, bool swapped,
                 btConvexPenetrationDepthSolver* depths)
      : RoundAlgorithm(info, a, b, swapped, depths,
                       info.m_dispatcher1->getNewManifold((swapped ? b : a).getCollisionObject(),
                                                          (swapped ? a : b).getCollisionObject())) {}
  ~RoundAlgorithm() override { m_dispatcher->releaseManifold(manifold_); }
  void getAllContactManifolds(btManifoldArray& manifolds) override { manifolds.push_back(manifold_); }

  void processCollision(const Wrapper* a, const Wrapper* b, const btDispatcherInfo& info,
                        btManifoldResult* out) override {
    out->setPersistentManifold(manifold_);
    Patch patch;
    const Wrapper &first = *(swapped_ ? b : a), &second = *(swapped_ ? a : b);
    Found found = stand(first, second, false, patch);
    if (found == Found::kUnknown && has_rim(first) && has_rim(second)) found = stand(second, first, true, patch);
    if (found == Found::kPatch) return update(*manifold_, patch, first, second);
    if (found == Found::kNothing) return manifold_->clearManifold();
    // In the order of the manifold's bodies: Bullet does not turn a normal round that it finds from the other side.
    btManifoldResult ordered(&first, &second);
    ordered.setPersistentManifold(manifold_);
    ordered.setShapeIdentifiersA(-1, first.m_index);
    ordered.setShapeIdentifiersB(-1, second.m_index);
    btManifoldResult* into = swapped_ ? &ordered : out;
    btConvexConvexAlgorithm::processCollision(&first, &second, info, into);
    into->refreshContactPoints();
  }

 private:
  enum class Found { kPatch, kNothing, kUnknown };

  RoundAlgorithm(const btCollisionAlgorithmConstructionInfo& info, const Wrapper& a, const Wrapper& b, bool swapped,
                 btConvexPenetrationDepthSolver* depths, btPersistentManifold* manifold)
      : btConvexConvexAlgorithm(manifold, info, &a, &b, depths, 0, 3), manifold_(manifold), swapped_(swapped) {}

  static bool has_rim(const Wrapper& wrapper) {
    const int type = wrapper.getCollisionShape()->getShapeType();
    return type == CYLINDER_SHAPE_PROXYTYPE || type == CONE_SHAPE_PROXYTYPE;
  }

  // Flipped: the other is the manifold's first body.
  Found stand(const Wrapper& round, const Wrapper& other, bool flipped, Patch& patch) const {
    const btCollisionShape& shape = *round.getCollisionShape();
    const Polyhedron& polyhedron = polyhedron_of(other);
    const btTransform place = other.getWorldTransform().inverseTimes(round.getWorldTransform());
    const btVector3 axis = place.getBasis().getColumn(2);
    const btScalar reach = reach_of(*manifold_);
    int best = 0;
    btScalar separation = -BT_LARGE_FLOAT;
    for (int f = 0; f < static_cast<int>(polyhedron.faces.size()); ++f) {
      const Polyhedron::Face& face = polyhedron.faces[f];
      const btScalar s = face.normal.dot(place.getOrigin()) - face.offset - reach_down(shape, face.normal.dot(axis));
      if (s > separation) separation = s, best = f;
    }
    if (separation > reach) return Found::kNothing;
    if (separation < -reach) return Found::kUnknown;

    const Polyhedron::Face& face = polyhedron.faces[best];
    const btVector3& normal = face.normal;
    const auto is_over = [&](const btVector3& at) {
      for (int k = face.first; k < face.first + face.count; ++k)
        if (polyhedron.sides[k].dot(at - polyhedron.corners[polyhedron.loops[k]]) > kWiden * reach) return false;
      return true;
    };
    static thread_local std::vector<Candidate> lowest;
    find_lowest(shape, normal * place.getBasis(), normal.dot(place.getOrigin()) - face.offset, reach, lowest);
    const Rim rim = rim_of(shape, normal.dot(axis));
    const bool stands = rim && lowest.size() >= 4;
    bool is_deepest_over = false, are_all_over = true;
    std::erase_if(lowest, [&](const Candidate& point) {
      const bool over = is_over(place(point.at));
      is_deepest_over |= over && point.distance <= separation + kWiden * reach;
      are_all_over &= over;
      return !over;
    });
    if (stands && !are_all_over) add_sides(polyhedron, face, place, axis, rim, reach, lowest);
    if (lowest.empty() || !(stands || is_deepest_over)) return Found::kUnknown;

    int chosen[kPatchSize];
    const btVector3 up = normal * place.getBasis();
    patch.normal = flipped ? -normal : up;
    patch.faces = name_faces(!flipped, best, 0);
    patch.count = choose_points(lowest.data(), static_cast<int>(lowest.size()), up, kSlack * reach,
                                history_of(manifold_), patch.faces, chosen);
    for (int k = 0; k < patch.count; ++k) {
      const Candidate& point = lowest[chosen[k]];
      const btVector3 on_face = place(point.at) - normal * point.distance;
      patch.points[k] = {flipped ? on_face : point.at, flipped ? point.at : on_face, point.distance, point.feature};
    }
    return Found::kPatch;
  }

  // Corners of the face under the end that stands on it, and where sides of the face cross its rim.
  static void add_sides(const Polyhedron& polyhedron, const Polyhedron::Face& face, const btTransform& place,
                        const btVector3& axis, const Rim& rim, btScalar reach, std::vector<Candidate>& into) {
    const btScalar cosine = face.normal.dot(axis);
    const btVector3 end = place.getOrigin() + axis * rim.along;
    const auto add = [&](const btVector3& at, int feature) {
      const btScalar distance = (end - at).dot(axis) / cosine;  // up to the plane of the end
      if (distance <= reach) into.push_back({place.invXform(at + face.normal * distance), distance, feature});
    };
    const btVector3 middle = end - face.normal * (face.normal.dot(end) - face.offset);
    for (int k = 0; k < face.count; ++k) {
      const btVector3& from = polyhedron.corners[polyhedron.loops[face.first + k]];
      const btVector3 side = polyhedron.corners[polyhedron.loops[face.first + (k + 1) % face.count]] - from;
      const btVector3 away = from - middle;
      const btScalar a = side.length2(), b = away.dot(side), c = away.length2() - rim.radius * rim.radius;
      const btScalar square = b * b - a * c;
      if (c <= 0) add(from, 8 + 3 * k);
      if (square <= 0 || a <= 0) continue;
      const btScalar root = btSqrt(square), enter = (-b - root) / a, leave = (-b + root) / a;
      if (enter > 0 && enter < 1) add(from + side * enter, 9 + 3 * k);
      if (leave > 0 && leave < 1) add(from + side * leave, 10 + 3 * k);
    }
  }

  btPersistentManifold* manifold_;
  bool swapped_;
};

// ---- their choice --------------------------------------------------------------------------------------------------

// Makes algorithms by a function of where they are to be, what Bullet says of them, and the two shapes.
template <typename Make>
struct Creator : btCollisionAlgorithmCreateFunc {
  Creator(Make how, std::size_t room) : make(how), size(room) {}
  btCollisionAlgorithm* CreateCollisionAlgorithm(btCollisionAlgorithmConstructionInfo& info, const Wrapper* a,
                                                 const Wrapper* b) override {
    return make(info.m_dispatcher1->allocateCollisionAlgorithm(static_cast<int>(size)), info, *a, *b);
  }
  Make make;
  std::size_t size;
};

// A sphere and one triangle: Bullet's own algorithm, but on height fields.
struct SphereTriangleCreator : btCollisionAlgorithmCreateFunc {
  SphereTriangleCreator(btCollisionAlgorithmCreateFunc& meshes, btConvexPenetrationDepthSolver* solver)
      : on_mesh(meshes), depths(solver) {}
  btCollisionAlgorithm* CreateCollisionAlgorithm(btCollisionAlgorithmConstructionInfo& info, const Wrapper* a,
                                                 const Wrapper* b) override {
    if (!field_of(*b)) return on_mesh.CreateCollisionAlgorithm(info, a, b);
    void* room = info.m_dispatcher1->allocateCollisionAlgorithm(static_cast<int>(sizeof(SmoothTriangleAlgorithm)));
    return new (room) SmoothTriangleAlgorithm(info.m_manifold, info, a, b, depths, 0, 3);
  }
  btCollisionAlgorithmCreateFunc& on_mesh;
  btConvexPenetrationDepthSolver* depths;
};

template <typename Algorithm, typename Make>
std::unique_ptr<btCollisionAlgorithmCreateFunc> creator(Make make) {
  return std::make_unique<Creator<Make>>(make, sizeof(Algorithm));
}

}  // namespace

// Bullet's own pools are as large as if there were thousands of contacts, and are touched at once: 4.5 MB for each
// world. Pieces of memory come from where all others do (bullet/memory.h).
static btDefaultCollisionConstructionInfo without_pools() {
  btDefaultCollisionConstructionInfo info;
  info.m_defaultMaxPersistentManifoldPoolSize = info.m_defaultMaxCollisionAlgorithmPoolSize = 1;
  info.m_customCollisionAlgorithmMaxElementSize = sizeof(RoundAlgorithm);  // the largest
  return info;
}

WorldConfiguration::WorldConfiguration(bool exact) : btDefaultCollisionConfiguration(without_pools()) {
  if (!exact) return;
  using Info = btCollisionAlgorithmConstructionInfo;
  spheres_ = creator<SphereAlgorithm>([](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) SphereAlgorithm(info, a, b);
  });
  boxes_ = creator<BoxAlgorithm>([](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) BoxAlgorithm(info, a, b);
  });
  polyhedra_ = creator<PolyhedronAlgorithm>([](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) PolyhedronAlgorithm(info, a, b);
  });
  plane_ = creator<PlaneAlgorithm>([](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) PlaneAlgorithm(info, a, b, false);
  });
  swapped_plane_ = creator<PlaneAlgorithm>([](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) PlaneAlgorithm(info, a, b, true);
  });
  capsules_ = creator<CapsuleAlgorithm>([this](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) CapsuleAlgorithm(info, a, b, m_pdSolver);
  });
  triangle_ = creator<TriangleAlgorithm>(
      [](void* room, const Info& info, const Wrapper&, const Wrapper&) { return new (room) TriangleAlgorithm(info); });
  round_ = creator<RoundAlgorithm>([this](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) RoundAlgorithm(info, a, b, false, m_pdSolver);
  });
  swapped_round_ = creator<RoundAlgorithm>([this](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) RoundAlgorithm(info, a, b, true, m_pdSolver);
  });
  round_triangle_ =
      creator<RoundTriangleAlgorithm>([this](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
        return new (room) RoundTriangleAlgorithm(info.m_manifold, info, &a, &b, m_pdSolver, 0, 3);
      });
  smooth_ = creator<SmoothAlgorithm>([this](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
    return new (room) SmoothAlgorithm(info, a, b, m_pdSolver);
  });
  smooth_triangle_ =
      creator<SmoothTriangleAlgorithm>([this](void* room, const Info& info, const Wrapper& a, const Wrapper& b) {
        return new (room) SmoothTriangleAlgorithm(info.m_manifold, info, &a, &b, m_pdSolver, 0, 3);
      });
  sphere_triangle_ =
      std::make_unique<SphereTriangleCreator>(*btDefaultCollisionConfiguration::getCollisionAlgorithmCreateFunc(
                                                  SPHERE_SHAPE_PROXYTYPE, TRIANGLE_SHAPE_PROXYTYPE),
                                              m_pdSolver);
}

WorldConfiguration::~WorldConfiguration() = default;

btCollisionAlgorithmCreateFunc* WorldConfiguration::getCollisionAlgorithmCreateFunc(int type0, int type1) {
  const auto is_polyhedron = [](int type) {
    return type == BOX_SHAPE_PROXYTYPE || type == CONVEX_HULL_SHAPE_PROXYTYPE;
  };
  const auto has_rim = [](int type) { return type == CYLINDER_SHAPE_PROXYTYPE || type == CONE_SHAPE_PROXYTYPE; };
  const auto is_round = [&](int type) { return type == CAPSULE_SHAPE_PROXYTYPE || has_rim(type); };
  if (boxes_) {
    if (type0 == SPHERE_SHAPE_PROXYTYPE && type1 == SPHERE_SHAPE_PROXYTYPE) return spheres_.get();
    const auto is_thick = [](int type) { return type == SPHERE_SHAPE_PROXYTYPE || type == CAPSULE_SHAPE_PROXYTYPE; };
    if (is_thick(type0) && is_thick(type1)) return capsules_.get();
    if (type0 == BOX_SHAPE_PROXYTYPE && type1 == BOX_SHAPE_PROXYTYPE) return boxes_.get();
    if (is_polyhedron(type0) && is_polyhedron(type1)) return polyhedra_.get();
    if (btBroadphaseProxy::isConvex(type0) && type1 == STATIC_PLANE_PROXYTYPE) return plane_.get();
    if (type0 == STATIC_PLANE_PROXYTYPE && btBroadphaseProxy::isConvex(type1)) return swapped_plane_.get();
    if (is_polyhedron(type0) && type1 == TRIANGLE_SHAPE_PROXYTYPE) return triangle_.get();
    if (type0 == kEllipsoidType && type1 == TRIANGLE_SHAPE_PROXYTYPE) return smooth_triangle_.get();
    if (type0 == SPHERE_SHAPE_PROXYTYPE && type1 == TRIANGLE_SHAPE_PROXYTYPE) return sphere_triangle_.get();
    if ((type0 == kEllipsoidType && btBroadphaseProxy::isConvex(type1)) ||
        (btBroadphaseProxy::isConvex(type0) && type1 == kEllipsoidType))
      return smooth_.get();
    const auto has_faces = [&](int type) { return is_polyhedron(type) || has_rim(type); };
    if (is_round(type0) && has_faces(type1)) return round_.get();
    if (has_faces(type0) && is_round(type1)) return swapped_round_.get();
    if (is_round(type0) && type1 == TRIANGLE_SHAPE_PROXYTYPE) return round_triangle_.get();
  }
  return btDefaultCollisionConfiguration::getCollisionAlgorithmCreateFunc(type0, type1);
}

}  // namespace lapjoint
