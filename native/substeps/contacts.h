// Contacts in substeps: normal rows that are springs while they overlap, friction and twist for each manifold as a
// whole, rolling friction, restitution. See docs/solvers.md for the method.
#pragma once

#include <array>
#include <vector>

#include "substeps/bodies.h"
#include "substeps/colours.h"

namespace lapjoint {

// A spring that a substep of length h takes in one go: how much of a row's error it takes back as velocity a second,
// and what is left of a hard row's impulse.
struct Softness {
  Real rate = 0, mass_scale = 1, impulse_scale = 0;
  // `share`: the frequency, as a share of 1 / h.
  static Softness of(Real share, Real damping_ratio, Real h);
};

// What cannot be moved, but moves: a kinematic body within a step. What touches it sees the velocity of its points, and
// along its surface that of the surface besides, as on a belt.
struct Surface {
  Real position[3], linear[3], angular[3];
  Real surface_linear[3], surface_angular[3];  // relative to the body; across normals only
};

// Of a contact that bodies come to within the step: how far off its first body is from where its points take it to be.
struct Shift {
  Real by[3];
};

// Points of two bodies that touch, or nearly, with one normal.
struct Contact {
  static constexpr int kPoints = 4;
  static constexpr int kStill = -1, kHere = -1;

  int a, b;     // places of bodies
  int surface;  // of the one that cannot be moved, its number among ContactSettings::surfaces, or kStill
  int shift;    // its number among ContactSettings::shifts, or kHere
  int point_count;
  bool is_new;                          // was not there in the last step
  Real friction, restitution, rolling;  // the last: an arm
  Real normal[3];                       // from b to a
  Real place[kPoints][3], distance[kPoints];
  // Of the last step, and then of this one; sums over its substeps.
  Real impulse[kPoints];
  Real tangential[3], angular[3];  // of friction at the middle; of twist and rolling friction
};

// What the normal rows of a contact have done, by point.
using PointImpulses = std::array<Real, Contact::kPoints>;

// What friction of a contact has done: at the middle of its points, and about it (twist and rolling friction).
struct FrictionImpulses {
  Real tangential[3] = {0, 0, 0}, angular[3] = {0, 0, 0};
};

struct ContactSettings {
  Softness soft, soft_fixed;        // between bodies; with one that cannot move
  Softness soft_backed;             // with one that has others behind it
  const char* is_backed = nullptr;  // by place, which these are; or none is
  Real push_speed = 0;              // most that an overlap is taken back by [length/s]
  Real bounce_speed = 0;            // from which there is restitution
  Real h = 0;
  int substeps = 1;
  const Surface* surfaces = nullptr;
  const Shift* shifts = nullptr;
};

class ContactSweeps {
 public:
  // `order` are numbers of contacts; it decides their colours. `colour` comes first.
  void colour(const std::vector<Contact>& contacts, const std::vector<int>& order, int fixed);
  void prepare(const std::vector<Contact>& contacts, const Bodies& bodies, const ContactSettings& settings);
  // Adds last step's impulses to `moved` and `turned`.
  void warm_start(Bodies& bodies) const;
  void solve(Bodies& bodies);
  // Surfaces that cannot be moved move on by a substep: gaps to them change by themselves.
  void move_surfaces();
  // The largest change of a row's velocity.
  Real relax(Bodies& bodies);
  // Restitution, before a substep's forces: of contacts with points that come fast and whose gaps close within it, one
  // after the other. Whether there was any. Impulses are no part of what the next substep begins with.
  bool bounces() const { return !bounces_.empty(); }
  // In a pass only contacts are looked at that come fast or whose bodies others have hit since: so it begins with
  // `find_fast`, whether any does, or, where more than these impacts change velocities, with `look_at_all`.
  bool find_fast(const Bodies& bodies);
  void look_at_all();
  bool impact(Bodies& bodies);
  // The deepest overlap, for how far bodies have moved.
  Real largest_overlap(const Bodies& bodies) const;
  void store(std::vector<Contact>& contacts) const;
  // Of this substep, to those of each contact.
  void add_impulses(std::vector<PointImpulses>& sums) const;
  void add_impulses(std::vector<FrictionImpulses>& sums) const;
  // The same of what moving surfaces do for the bodies on them.
  void add_surface_work(std::vector<Real>& sums) const;
  void add_surface_work_of_impacts(std::vector<Real>& sums) const;
  // Those of impacts, of the whole step.
  void add_impacts(std::vector<PointImpulses>& sums) const;
  void add_impacts(std::vector<FrictionImpulses>& sums) const;
  long row_count() const { return row_count_; }

 private:
  struct Point {
    Lanes3 own_a, own_b;
    Lanes gap, response, inertia, impulse;
  };
  // Two rows across, with one bound on both.
  struct Across {
    Lanes3 first_a, first_b, second_a, second_b;
    Lanes inverse[3];
    Lanes impulse[2];
  };
  struct alignas(64) Group {
    int a[kLanes], b[kLanes];
    int first_point, point_count;
    int rolling = -1, bounce = -1, drift = -1;  // places of what few groups have
    Lanes3 normal, tangent;
    Lanes root_a, root_b, squares;
    Lanes rate, mass_scale, impulse_scale;
    Lanes friction, lever;
    Across slide;
    Lanes3 twist_a, twist_b;
    Lanes twist_response, twist;
  };
  struct Rolling {
    Lanes arm;
    Across across;
  };
  struct Bounce {
    Lanes restitution;
    Lanes impulse[Contact::kPoints], slide[2], twist, roll[2];  // of impacts in this step
    int group;
    int looked_at;  // the number of hits when it was last looked at, or kNever
  };
  // What surfaces that cannot be moved add to the velocities of rows.
  struct Drift {
    Lanes normal[Contact::kPoints], slide[2], twist, roll[2];
  };
  void add_work(const Group& group, const Lanes* impulse, const Lanes* slide, const Lanes& twist, const Lanes* roll,
                const int* members, std::vector<Real>& sums) const;
  struct Velocities;
  // Of a group's friction, in the world.
  struct Friction {
    Lanes3 tangential, angular;
  };
  Friction friction_of(const Group& group, const Lanes* slide, Lanes twist, const Lanes* roll) const;
  // `visit` gets each group with its contacts' numbers.
  template <typename Visit>
  void each_group(Visit&& visit) const;
  void add_friction(const Friction& friction, const int* members, std::vector<FrictionImpulses>& sums) const;

  void prepare_group(Group& group, const std::vector<Contact>& contacts, const int* members, const Bodies& bodies);
  void prepare_drift(Group& group, const std::vector<Contact>& contacts, const int* members, const Lanes3* place,
                     const Lanes3& middle, int fixed);
  bool comes_fast(const Group& group, const Velocities& v, Lanes* speed) const;
  bool was_hit_since(const Group& group, int hits) const;
  void note_hit(const Group& group);
  bool impact_group(Group& group, Bodies& bodies);
  struct Hit;
  void part(const Group& group, const Hit& hit, Velocities& v, Bounce& bounce, Lanes& pressure);
  void rub(const Group& group, Lanes pressure, Velocities& v, Bounce& bounce);
  template <bool kBias>
  Real sweep(Bodies& bodies);
  template <bool kBias, bool kDrifts>
  Lanes sweep_group(Group& group, Bodies& bodies, Motion* motion);
  template <bool kBias>
  Lanes sweep_drifting(Group& group, Bodies& bodies, Motion* motion);
  template <bool kBias, bool kDrifts>
  Lanes sweep_normals(Group& group, Velocities& v, const Bodies& bodies, Lanes& sum);
  // `drift`: of both rows, or null.
  void sweep_across(const Lanes3* along, Lanes root_a, Lanes root_b, Lanes limit, const Lanes* drift, Across& rows,
                    Velocities& v);

  ContactSettings settings_;
  Colours colours_;
  std::vector<ConstraintEnds> ends_;
  std::vector<std::uint8_t> kinds_;
  std::vector<int> lanes_;  // the contact of each, or kEmpty
  std::vector<Group> groups_;
  std::vector<Point> points_;
  std::vector<Rolling> rolling_;
  std::vector<Bounce> bounces_;
  std::vector<Drift> drifts_;
  int hit_count_ = 0;
  std::vector<int> last_hit_;  // by place: its number
  long row_count_ = 0;
};

}  // namespace lapjoint
