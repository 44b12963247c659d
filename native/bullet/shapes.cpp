#include "bullet/shapes.h"

#include <LinearMath/btConvexHullComputer.h>

#include <algorithm>
#include <stdexcept>

#include "bullet/exact.h"
#include "bullet/height_field.h"
#include "bullet/round_shapes.h"

namespace lapjoint {

int ShapeLibrary::define(ShapeDefinition definition) {
  definitions_.push_back(std::move(definition));
  return static_cast<int>(definitions_.size()) - 1;
}

ShapeLibrary::Key ShapeLibrary::key(int shape_id, const btQuaternion& turn) {
  return {static_cast<double>(shape_id), turn.w(), turn.x(), turn.y(), turn.z()};
}

btCollisionShape* ShapeLibrary::acquire(int shape_id, const btQuaternion& turn) {
  Built& built = built_[key(shape_id, turn)];
  if (built.users++ == 0) {
    const ShapeDefinition& definition = definitions_.at(shape_id);
    if (exact_ && definition.kind == ShapeDefinition::kHull)
      return built.top = build_turned_hull(definition, turn, built);
    const bool turns = turn != btQuaternion::getIdentity();
    btCollisionShape* shape = exact_ ? build_exact(definition, turns, built) : build(definition, built);
    if (turns) {
      // The body's frame is turned to its principal axes, so the shape is turned back.
      auto turned = std::make_unique<btCompoundShape>();
      if (shape->isCompound()) {
        auto* compound = static_cast<btCompoundShape*>(shape);
        for (int i = 0; i < compound->getNumChildShapes(); ++i)
          turned->addChildShape(btTransform(turn.inverse()) * compound->getChildTransform(i),
                                compound->getChildShape(i));
      } else {
        turned->addChildShape(btTransform(turn.inverse()), shape);
      }
      shape = turned.get();
      built.owned.push_back(std::move(turned));
    }
    built.top = shape;
  }
  return built.top;
}

void ShapeLibrary::release(int shape_id, const btQuaternion& turn) {
  const auto found = built_.find(key(shape_id, turn));
  if (--found->second.users > 0) return;
  // A compound goes before its parts.
  std::reverse(found->second.owned.begin(), found->second.owned.end());
  for (auto& shape : found->second.owned) shape.reset();
  built_.erase(found);
}

btVector3 ShapeLibrary::vector(const double* xyz) const {
  return {btScalar(xyz[0] / unit_), btScalar(xyz[1] / unit_), btScalar(xyz[2] / unit_)};
}

btCollisionShape* ShapeLibrary::build_hull(const ShapeDefinition& definition, Built& into) const {
  // Bullet inflates a hull by its margin. Shrinking it first by as much keeps the faces where the scene has them.
  std::vector<btVector3> points(definition.points.size() / 3);
  btVector3 low(BT_LARGE_FLOAT, BT_LARGE_FLOAT, BT_LARGE_FLOAT), high = -low;
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i] = vector(&definition.points[3 * i]);
    low.setMin(points[i]);
    high.setMax(points[i]);
  }
  const btVector3 extent = high - low;
  const btScalar thinnest = extent[extent.minAxis()];
  const btScalar margin = std::min(btScalar(margin_), btScalar(0.1) * thinnest);
  btConvexHullComputer computer;
  const btScalar shrunk = computer.compute(&points[0].m_floats[0], sizeof(btVector3), static_cast<int>(points.size()),
                                           margin, btScalar(0.5));
  auto hull = std::make_unique<btConvexHullShape>();
  for (int i = 0; i < computer.vertices.size(); ++i) hull->addPoint(computer.vertices[i], false);
  hull->setMargin(shrunk > 0 ? shrunk : btScalar(0));
  hull->recalcLocalAabb();
  into.owned.push_back(std::move(hull));
  return into.owned.back().get();
}

btCollisionShape* ShapeLibrary::build_height_field(const ShapeDefinition& definition, Built& into) const {
  std::vector<btScalar> heights;
  heights.reserve(definition.points.size());
  for (const double height : definition.points) heights.push_back(btScalar(height / unit_));
  const btVector3 spacing = vector(definition.size.data());
  into.owned.push_back(std::make_unique<HeightFieldShape>(std::move(heights), static_cast<int>(definition.size[2]),
                                                          spacing.x(), spacing.y()));
  return into.owned.back().get();
}

btCollisionShape* ShapeLibrary::build(const ShapeDefinition& definition, Built& into) const {
  const auto own = [&into](auto shape) {
    into.owned.push_back(std::move(shape));
    return into.owned.back().get();
  };
  const btVector3 size = vector(definition.size.data());
  switch (definition.kind) {
    case ShapeDefinition::kSphere:
      return own(std::make_unique<btSphereShape>(size.x()));
    case ShapeDefinition::kBox:
      return own(std::make_unique<btBoxShape>(size * btScalar(0.5)));
    case ShapeDefinition::kCapsule:
      return own(std::make_unique<btCapsuleShapeZ>(size.x(), size.y()));
    case ShapeDefinition::kCylinder:
      return own(std::make_unique<btCylinderShapeZ>(btVector3(size.x(), size.x(), size.y() * btScalar(0.5))));
    case ShapeDefinition::kHull:
      return build_hull(definition, into);
    case ShapeDefinition::kEllipsoid:
      return own(std::make_unique<EllipsoidShape>(size));
    case ShapeDefinition::kCone:
      return own(std::make_unique<ConeShape>(size.x(), size.y()));
    case ShapeDefinition::kHeightField:
      return build_height_field(definition, into);
    case ShapeDefinition::kPlane:
      return own(std::make_unique<btStaticPlaneShape>(btVector3(0, 0, 1), btScalar(0)));
    case ShapeDefinition::kMesh: {
      into.mesh = std::make_unique<btTriangleMesh>();
      for (std::size_t i = 0; i + 2 < definition.triangles.size(); i += 3) {
        const auto corner = [&](std::size_t k) { return vector(&definition.points[3 * definition.triangles[i + k]]); };
        into.mesh->addTriangle(corner(0), corner(1), corner(2));
      }
      return own(std::make_unique<btBvhTriangleMeshShape>(into.mesh.get(), true));
    }
    case ShapeDefinition::kCompound: {
      auto compound = std::make_unique<btCompoundShape>(true, static_cast<int>(definition.parts.size()));
      for (const ShapeDefinition& part : definition.parts) {
        const auto& p = part.place;
        const btQuaternion turn{btScalar(p[4]), btScalar(p[5]), btScalar(p[6]), btScalar(p[3])};
        compound->addChildShape(btTransform(turn, vector(p.data())), build(part, into));
      }
      return own(std::move(compound));
    }
    default:
      throw std::invalid_argument("unknown shape kind " + std::to_string(definition.kind));
  }
}

// The points of a hull can be turned themselves: a compound of one part takes three times as long to look at.
btCollisionShape* ShapeLibrary::build_turned_hull(const ShapeDefinition& definition, const btQuaternion& turn,
                                                  Built& into) const {
  ShapeDefinition turned = definition;
  const double w = turn.w(), v[3] = {-turn.x(), -turn.y(), -turn.z()};
  const double square = w * w + v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
  for (std::size_t i = 0; i + 2 < turned.points.size(); i += 3) {
    double* p = &turned.points[i];
    const double c[3] = {v[1] * p[2] - v[2] * p[1], v[2] * p[0] - v[0] * p[2], v[0] * p[1] - v[1] * p[0]};
    const double d[3] = {v[1] * c[2] - v[2] * c[1], v[2] * c[0] - v[0] * c[2], v[0] * c[1] - v[1] * c[0]};
    for (int k = 0; k < 3; ++k) p[k] += 2 * (w * c[k] + d[k]) / square;
  }
  return build_exact(turned, false, into);
}

btCollisionShape* ShapeLibrary::build_exact(const ShapeDefinition& definition, bool is_part, Built& into) const {
  const auto own = [&](auto shape, btScalar margin) {
    shape->setMargin(margin);
    into.owned.push_back(std::move(shape));
    return into.owned.back().get();
  };
  const auto make = [&]<typename Shape>(btScalar margin, auto&&... arguments) -> btCollisionShape* {
    if (is_part) return own(std::make_unique<Part<Shape>>(arguments...), margin);
    return own(std::make_unique<Shape>(arguments...), margin);
  };
  const auto make_round = [&]<typename Shape>(auto&&... arguments) -> btCollisionShape* {
    const Shape made(arguments...);
    return make.operator()<Shape>(made.getMargin(), arguments...);
  };
  const auto with = [&](btCollisionShape* shape, Polyhedron polyhedron) {
    into.polyhedra.push_back(std::make_unique<Polyhedron>(std::move(polyhedron)));
    shape->setUserPointer(into.polyhedra.back().get());
    return shape;
  };
  const btVector3 size = vector(definition.size.data());
  switch (definition.kind) {
    case ShapeDefinition::kSphere:
      return make.operator()<btSphereShape>(size.x(), size.x());
    case ShapeDefinition::kCapsule:
      return make.operator()<btCapsuleShapeZ>(size.x(), size.x(), size.y());
    case ShapeDefinition::kBox: {
      const btVector3 half = size * btScalar(0.5);
      return with(make.operator()<btBoxShape>(0, half), Polyhedron::box(half));
    }
    case ShapeDefinition::kCylinder: {
      // Closest points need a core that is apart from the other's: a hundredth of the smaller half.
      const btVector3 half(size.x(), size.x(), size.y() * btScalar(0.5));
      return with(make.operator()<btCylinderShapeZ>(btScalar(0.01) * std::min(half.x(), half.z()), half),
                  Polyhedron::ends(half.x(), half.z()));
    }
    case ShapeDefinition::kHull: {
      Polyhedron polyhedron =
          Polyhedron::hull(definition.points.data(), static_cast<int>(definition.points.size() / 3), unit_);
      btCollisionShape* hull = make.operator()<btConvexHullShape>(0, &polyhedron.corners[0].m_floats[0],
                                                                  static_cast<int>(polyhedron.corners.size()));
      return with(hull, std::move(polyhedron));
    }
    case ShapeDefinition::kEllipsoid:
      return make_round.operator()<EllipsoidShape>(size);
    case ShapeDefinition::kCone: {
      btCollisionShape* cone = make_round.operator()<ConeShape>(size.x(), size.y());
      return with(cone, Polyhedron::base(size.x(), -static_cast<ConeShape*>(cone)->base()));
    }
    case ShapeDefinition::kMesh:
    case ShapeDefinition::kHeightField: {
      btCollisionShape* mesh = build(definition, into);
      mesh->setMargin(gContactBreakingThreshold);  // how far it looks for triangles
      return mesh;
    }
    case ShapeDefinition::kCompound: {
      auto compound = std::make_unique<btCompoundShape>(true, static_cast<int>(definition.parts.size()));
      for (const ShapeDefinition& part : definition.parts) {
        const auto& p = part.place;
        const btQuaternion turn{btScalar(p[4]), btScalar(p[5]), btScalar(p[6]), btScalar(p[3])};
        compound->addChildShape(btTransform(turn, vector(p.data())), build_exact(part, true, into));
      }
      into.owned.push_back(std::move(compound));
      return into.owned.back().get();
    }
    default:
      return build(definition, into);
  }
}

}  // namespace lapjoint
