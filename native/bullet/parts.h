// Surfaces and filters of bodies and of their parts: where a part has its own, or two surfaces name a rule by which a
// contact combines them. A world in which nobody does asks nothing here.
#pragma once

#include <btBulletCollisionCommon.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace lapjoint {

struct BodyColumns;
struct ShapeDefinition;
struct StaticBody;

// How a contact makes one coefficient of two. Where two surfaces have different rules, the later one holds.
enum CombineRule : std::uint8_t { kGeometric, kAverage, kMinimum, kMultiply, kMaximum };

struct SurfaceValues {
  double friction, restitution, rolling_friction;  // rolling friction in metres
  std::uint8_t friction_combine, restitution_combine;
};

struct FilterBits {
  std::uint32_t group, mask;
};

// Of a contact.
struct CombinedSurface {
  btScalar friction, restitution, rolling;  // rolling in length units
};

// One end of a contact: a body, or a static body, by its number in the broad phase, and the part of its compound.
struct ContactEnd {
  int number, part;
};

class PartTable {
 public:
  explicit PartTable(double length_unit) : unit_(length_unit) {}

  void add_shape(const ShapeDefinition& shape);
  void add_static(const StaticBody& item);
  // The table may have grown; it is read in place.
  void set_bodies(const BodyColumns& bodies);

  // Whether contacts must ask `combine` for their surface, and parts `may_touch` for each other.
  bool has_surfaces() const { return has_surfaces_; }
  bool has_filters() const { return has_filters_; }

  CombinedSurface combine(ContactEnd a, ContactEnd b) const;
  bool may_touch(ContactEnd a, ContactEnd b) const;
  // Of a body as a whole: every bit that one of its parts has.
  FilterBits widest(int shape_id, FilterBits own) const;

 private:
  struct OwnOfPart {
    std::optional<SurfaceValues> surface;
    std::optional<std::uint32_t> group, mask;
  };
  struct OwnOfShape {
    std::vector<OwnOfPart> parts;  // none, where no part has anything of its own
    bool has_filters = false;
  };

  struct StaticEnd {
    int shape_id;
    SurfaceValues surface;
    FilterBits filter;
  };

  int shape_of(int number) const;
  const OwnOfPart* part_of(const ContactEnd& end) const;
  SurfaceValues surface_of(const ContactEnd& end) const;

  double unit_;
  bool has_surfaces_ = false, has_filters_ = false;
  int looked_at_ = 0;  // bodies whose rules are known
  std::vector<OwnOfShape> shapes_;
  std::vector<StaticEnd> statics_;
  const BodyColumns* bodies_ = nullptr;
};

// Bullet's dispatcher, which finds an algorithm for two parts only where they may touch.
class PartDispatcher : public btCollisionDispatcher {
 public:
  PartDispatcher(btCollisionConfiguration* configuration, const PartTable& parts)
      : btCollisionDispatcher(configuration), parts_(parts) {}
  btCollisionAlgorithm* findAlgorithm(const btCollisionObjectWrapper* a, const btCollisionObjectWrapper* b,
                                      btPersistentManifold* shared, ebtDispatcherQueryType type) override;
  // A manifold that is not among the others for a while, and one that is again.
  void set_aside(btPersistentManifold& manifold) {
    const int at = manifold.m_index1a;
    m_manifoldsPtr.swap(at, m_manifoldsPtr.size() - 1);
    m_manifoldsPtr[at]->m_index1a = at;
    m_manifoldsPtr.pop_back();
  }
  void take_back(btPersistentManifold& manifold) {
    manifold.m_index1a = m_manifoldsPtr.size();
    m_manifoldsPtr.push_back(&manifold);
  }

 private:
  const PartTable& parts_;
};

}  // namespace lapjoint
