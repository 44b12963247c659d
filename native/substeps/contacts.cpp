#include "substeps/contacts.h"

#include "assertions.h"

namespace lapjoint {

namespace {

constexpr int kHitPasses = 8, kBouncePasses = 16;
constexpr int kNever = -1;
// A gap that has just closed is zero but for rounding: it counts as closed, or rounding would decide which rule it has.
constexpr Real kTouching = Real(1e-12);

Lanes inverse_or_zero(Lanes value) { return where_positive(value, all(1) / greater(value, all(Real(1e-30))), all(0)); }

// Inverse of a symmetric matrix of two rows: xx, xy, yy.
void invert(Lanes xx, Lanes xy, Lanes yy, Lanes* out) {
  const Lanes inverse = inverse_or_zero(xx * yy - xy * xy);
  out[0] = yy * inverse;
  out[1] = -xy * inverse;
  out[2] = xx * inverse;
}

// A direction across a normal; which one does not matter, if it is the same for the same normal.
void put_tangent(const Real* n, Lanes3& tangent, int lane) {
  Real t[3];
  if (std::abs(n[0]) < Real(0.6)) {
    t[0] = 0, t[1] = n[2], t[2] = -n[1];
  } else {
    t[0] = -n[2], t[1] = 0, t[2] = n[0];
  }
  const Real length = std::sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
  tangent.x[lane] = t[0] / length;
  tangent.y[lane] = t[1] / length;
  tangent.z[lane] = t[2] / length;
}

void put(const Real* from, Lanes3& into, int lane) {
  into.x[lane] = from[0];
  into.y[lane] = from[1];
  into.z[lane] = from[2];
}

}  // namespace

Softness Softness::of(Real share, Real damping_ratio, Real h) {
  const Real omega_h = Real(2 * 3.14159265358979323846) * share;  // the frequency times the substep
  const Real a1 = 2 * damping_ratio + omega_h, a2 = omega_h * a1, scale = 1 / (1 + a2);
  return {omega_h / (h * a1), a2 * scale, scale};
}

// ---- rows ----------------------------------------------------------------------------------------------------------

void ContactSweeps::colour(const std::vector<Contact>& contacts, const std::vector<int>& order, int fixed) {
  ends_.clear();
  kinds_.clear();
  for (const int number : order) {
    const Contact& contact = contacts[number];
    ends_.push_back({contact.a, contact.b});
    LAPJOINT_ASSERT(contact.point_count >= 1 && contact.point_count <= Contact::kPoints);
    LAPJOINT_ASSERT(contact.a < fixed || contact.b < fixed);                // something of it can move
    const int points = contact.point_count == 3 ? 4 : contact.point_count;  // few have three: with those of four
    const bool special = contact.rolling > 0 || contact.restitution > 0;
    kinds_.push_back(static_cast<std::uint8_t>((points == 4 ? 2 : points - 1) + (special ? 4 : 0)));
  }
  colours_.group(ends_, kinds_, fixed);
  lanes_ = colours_.members();
  for (int& lane : lanes_)
    if (lane != Colours::kEmpty) lane = order[lane];
}

void ContactSweeps::prepare(const std::vector<Contact>& contacts, const Bodies& bodies,
                            const ContactSettings& settings) {
  settings_ = settings;
  groups_.resize(colours_.group_count());
  points_.clear();
  rolling_.clear();
  bounces_.clear();
  drifts_.clear();
  row_count_ = 0;
  hit_count_ = 0;
  last_hit_.assign(bodies.motion.size(), 0);
  const int* members = lanes_.data();
  for (Group& group : groups_) {
    prepare_group(group, contacts, members, bodies);
    members += kLanes;
  }
}

void ContactSweeps::prepare_group(Group& group, const std::vector<Contact>& contacts, const int* members,
                                  const Bodies& bodies) {
  const int fixed = bodies.fixed();
  const Real per_substep = 1 / Real(settings_.substeps);
  Lanes3 place[Contact::kPoints], middle{all(0), all(0), all(0)}, tangential = middle, angular = middle;
  Lanes distance[Contact::kPoints], impulse[Contact::kPoints], has[Contact::kPoints];
  Lanes restitution = all(0), arm = all(0), count = all(0);
  group.normal = group.tangent = middle;
  group.friction = group.rate = group.mass_scale = group.impulse_scale = all(0);
  for (int p = 0; p < Contact::kPoints; ++p) {
    place[p] = middle;
    distance[p] = impulse[p] = has[p] = all(0);
  }
  group.point_count = 0;
  bool rolls = false, bounces = false, drifts = false, shifts = false;
  Lanes3 shift = middle;
  for (int lane = 0; lane < kLanes; ++lane) {
    group.a[lane] = group.b[lane] = fixed;
    if (members[lane] == Colours::kEmpty) continue;
    const Contact& contact = contacts[members[lane]];
    group.a[lane] = contact.a;
    group.b[lane] = contact.b;
    LAPJOINT_ASSERT(!(std::abs(contact.normal[0] * contact.normal[0] + contact.normal[1] * contact.normal[1] +
                               contact.normal[2] * contact.normal[2] - 1) > Real(1e-2)));
    LAPJOINT_ASSERT(contact.surface == Contact::kStill || contact.a == fixed || contact.b == fixed);
    put(contact.normal, group.normal, lane);
    put_tangent(contact.normal, group.tangent, lane);
    group.friction[lane] = contact.friction;
    restitution[lane] = contact.restitution;
    arm[lane] = contact.rolling;
    rolls |= contact.rolling > 0;
    bounces |= contact.restitution > 0;
    drifts |= contact.surface != Contact::kStill;
    if (contact.shift != Contact::kHere) {
      LAPJOINT_ASSERT(contact.shift >= 0 && settings_.shifts);
      put(settings_.shifts[contact.shift].by, shift, lane);
      shifts = true;
    }
    const bool is_backed = settings_.is_backed && (settings_.is_backed[contact.a] || settings_.is_backed[contact.b]);
    const Softness& soft = is_backed                                  ? settings_.soft_backed
                           : contact.a == fixed || contact.b == fixed ? settings_.soft_fixed
                                                                      : settings_.soft;
    group.rate[lane] = soft.rate;
    group.mass_scale[lane] = soft.mass_scale;
    group.impulse_scale[lane] = soft.impulse_scale;
    group.point_count = std::max(group.point_count, contact.point_count);
    count[lane] = Real(contact.point_count);
    for (int p = 0; p < contact.point_count; ++p) {
      put(contact.place[p], place[p], lane);
      distance[p][lane] = contact.distance[p];
      impulse[p][lane] = contact.impulse[p] * per_substep;
      has[p][lane] = 1;
    }
    put(contact.tangential, tangential, lane);
    put(contact.angular, angular, lane);
    row_count_ += contact.point_count;
  }

  Frames frame_a = gather_frames(bodies.frame.data(), group.a);
  if (shifts) frame_a.position = frame_a.position + shift;
  const Frames frame_b = gather_frames(bodies.frame.data(), group.b);
  group.root_a = frame_a.root;
  group.root_b = frame_b.root;
  group.squares = frame_a.root * frame_a.root + frame_b.root * frame_b.root;
  for (int p = 0; p < group.point_count; ++p) middle = middle + place[p];
  middle = inverse_or_zero(count) * middle;

  group.first_point = static_cast<int>(points_.size());
  group.lever = all(0);
  for (int p = 0; p < group.point_count; ++p) {
    Point& point = points_.emplace_back();
    point.own_a = has[p] * frame_a.own(cross(place[p] - frame_a.position, group.normal));
    point.own_b = has[p] * frame_b.own(cross(place[p] - frame_b.position, group.normal));
    point.gap = distance[p];
    point.inertia = has[p] * (group.squares + dot(point.own_a, point.own_a) + dot(point.own_b, point.own_b));
    point.response = inverse_or_zero(point.inertia);
    point.impulse = impulse[p];
    const Lanes3 away = place[p] - middle;
    group.lever += has[p] * root(dot(away, away));
  }
  group.lever = group.lever * inverse_or_zero(count);

  const Lanes3 across[2] = {group.tangent, cross(group.normal, group.tangent)};
  const Lanes3 arm_a = middle - frame_a.position, arm_b = middle - frame_b.position;
  Across& slide = group.slide;
  slide.first_a = frame_a.own(cross(arm_a, across[0]));
  slide.first_b = frame_b.own(cross(arm_b, across[0]));
  slide.second_a = frame_a.own(cross(arm_a, across[1]));
  slide.second_b = frame_b.own(cross(arm_b, across[1]));
  const auto weigh = [](const Across& rows, Lanes straight, Lanes* inverse) {
    invert(straight + dot(rows.first_a, rows.first_a) + dot(rows.first_b, rows.first_b),
           dot(rows.first_a, rows.second_a) + dot(rows.first_b, rows.second_b),
           straight + dot(rows.second_a, rows.second_a) + dot(rows.second_b, rows.second_b), inverse);
  };
  weigh(slide, group.squares, slide.inverse);
  for (int k = 0; k < 2; ++k) slide.impulse[k] = all(per_substep) * dot(across[k], tangential);

  group.twist_a = frame_a.own(group.normal);
  group.twist_b = frame_b.own(group.normal);
  group.twist_response = inverse_or_zero(dot(group.twist_a, group.twist_a) + dot(group.twist_b, group.twist_b));
  group.twist = where_positive(group.lever, all(per_substep) * dot(group.normal, angular), all(0));

  group.rolling = group.bounce = group.drift = -1;
  if (drifts) prepare_drift(group, contacts, members, place, middle, fixed);
  if (rolls) {
    group.rolling = static_cast<int>(rolling_.size());
    Rolling& roll = rolling_.emplace_back();
    roll.arm = arm;
    roll.across.first_a = frame_a.own(across[0]);
    roll.across.first_b = frame_b.own(across[0]);
    roll.across.second_a = frame_a.own(across[1]);
    roll.across.second_b = frame_b.own(across[1]);
    weigh(roll.across, all(0), roll.across.inverse);
    for (int k = 0; k < 2; ++k)
      roll.across.impulse[k] = where_positive(arm, all(per_substep) * dot(across[k], angular), all(0));
  }
  if (bounces) {
    group.bounce = static_cast<int>(bounces_.size());
    Bounce& bounce = bounces_.emplace_back();
    bounce.restitution = restitution;
    bounce.group = static_cast<int>(&group - groups_.data());
    bounce.twist = all(0);
    for (Lanes& impulse : bounce.impulse) impulse = all(0);
    for (int k = 0; k < 2; ++k) bounce.slide[k] = bounce.roll[k] = all(0);
  }
}

void ContactSweeps::prepare_drift(Group& group, const std::vector<Contact>& contacts, const int* members,
                                  const Lanes3* place, const Lanes3& middle, int fixed) {
  Lanes3 position{all(0), all(0), all(0)};
  Lanes3 linear = position, angular = position, surface_linear = position, surface_angular = position;
  Lanes sign = all(0);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (members[lane] == Colours::kEmpty) continue;
    const Contact& contact = contacts[members[lane]];
    if (contact.surface == Contact::kStill) continue;
    const Surface& surface = settings_.surfaces[contact.surface];
    sign[lane] = contact.b == fixed ? Real(-1) : Real(1);
    put(surface.position, position, lane);
    put(surface.linear, linear, lane);
    put(surface.angular, angular, lane);
    put(surface.surface_linear, surface_linear, lane);
    put(surface.surface_angular, surface_angular, lane);
  }
  group.drift = static_cast<int>(drifts_.size());
  Drift& drift = drifts_.emplace_back();
  for (int p = 0; p < group.point_count; ++p)
    drift.normal[p] = sign * dot(group.normal, linear + cross(angular, place[p] - position));
  const Lanes3 spin = angular + surface_angular;
  const Lanes3 along = linear + surface_linear + cross(spin, middle - position);
  const Lanes3 across[2] = {group.tangent, cross(group.normal, group.tangent)};
  drift.twist = sign * dot(group.normal, spin);
  for (int k = 0; k < 2; ++k) {
    drift.slide[k] = sign * dot(across[k], along);
    drift.roll[k] = sign * dot(across[k], angular);
  }
}

// ---- sweeps --------------------------------------------------------------------------------------------------------

struct ContactSweeps::Velocities {
  Lanes3 linear_a, angular_a, linear_b, angular_b;

  LAPJOINT_INLINE Velocities(const Motion* motion, const Group& group)
      : linear_a(gather<&Motion::linear>(motion, group.a)),
        angular_a(gather<&Motion::angular>(motion, group.a)),
        linear_b(gather<&Motion::linear>(motion, group.b)),
        angular_b(gather<&Motion::angular>(motion, group.b)) {}
  LAPJOINT_INLINE void write(Motion* motion, const Group& group) const {
    scatter<&Motion::linear>(linear_a, motion, group.a);
    scatter<&Motion::angular>(angular_a, motion, group.a);
    scatter<&Motion::linear>(linear_b, motion, group.b);
    scatter<&Motion::angular>(angular_b, motion, group.b);
  }
};

void ContactSweeps::warm_start(Bodies& bodies) const {
  Motion* motion = bodies.motion.data();
  for (const Group& group : groups_) {
    Lanes sum = all(0);
    Lanes3 turn_a = gather<&Motion::turned>(motion, group.a), turn_b = gather<&Motion::turned>(motion, group.b);
    for (int p = 0; p < group.point_count; ++p) {
      const Point& point = points_[group.first_point + p];
      sum += point.impulse;
      add(point.impulse, point.own_a, turn_a);
      add(-point.impulse, point.own_b, turn_b);
    }
    const auto turn = [&](Lanes impulse, const Lanes3& own_a, const Lanes3& own_b) {
      add(impulse, own_a, turn_a);
      add(-impulse, own_b, turn_b);
    };
    turn(group.slide.impulse[0], group.slide.first_a, group.slide.first_b);
    turn(group.slide.impulse[1], group.slide.second_a, group.slide.second_b);
    turn(group.twist, group.twist_a, group.twist_b);
    if (group.rolling >= 0) {
      const Across& roll = rolling_[group.rolling].across;
      turn(roll.impulse[0], roll.first_a, roll.first_b);
      turn(roll.impulse[1], roll.second_a, roll.second_b);
    }
    Lanes3 along = sum * group.normal;
    add(group.slide.impulse[0], group.tangent, along);
    add(group.slide.impulse[1], cross(group.normal, group.tangent), along);
    Lanes3 linear_a = gather<&Motion::moved>(motion, group.a), linear_b = gather<&Motion::moved>(motion, group.b);
    add(group.root_a, along, linear_a);
    add(-group.root_b, along, linear_b);
    scatter<&Motion::moved>(linear_a, motion, group.a);
    scatter<&Motion::moved>(linear_b, motion, group.b);
    scatter<&Motion::turned>(turn_a, motion, group.a);
    scatter<&Motion::turned>(turn_b, motion, group.b);
  }
}

// Normal rows; the largest change of a row's velocity, and in `sum` their impulses.
template <bool kBias, bool kDrifts>
LAPJOINT_INLINE Lanes ContactSweeps::sweep_normals(Group& group, Velocities& v, const Bodies& bodies, Lanes& sum) {
  const Motion* motion = bodies.motion.data();
  const Lanes3 moved_a = gather<&Motion::moved>(motion, group.a), moved_b = gather<&Motion::moved>(motion, group.b);
  const Lanes3 turned_a = gather<&Motion::turned>(motion, group.a), turned_b = gather<&Motion::turned>(motion, group.b);
  const Lanes apart = group.root_a * dot(group.normal, moved_a) - group.root_b * dot(group.normal, moved_b);
  Lanes straight = group.root_a * dot(group.normal, v.linear_a) - group.root_b * dot(group.normal, v.linear_b);
  const Lanes per_h = all(1 / settings_.h), push = all(settings_.push_speed), zero = all(0);
  const Lanes yield = group.impulse_scale * inverse_or_zero(group.mass_scale);
  Lanes pushed = zero, largest_change = zero, active = all(1);
  Point* points = &points_[group.first_point];
  [[maybe_unused]] const Bounce* bounce = group.bounce < 0 ? nullptr : &bounces_[group.bounce];
  const auto sweep_point = [&](int p) {
    Point& point = points[p];
    const Lanes gap = point.gap + apart + dot(point.own_a, turned_a) - dot(point.own_b, turned_b);
    Lanes speed = straight + dot(point.own_a, v.angular_a) - dot(point.own_b, v.angular_b);
    if constexpr (kDrifts) speed += drifts_[group.drift].normal[p];
    const Lanes before = point.impulse;
    Lanes after;
    if constexpr (kBias) {
      const Lanes open = gap - all(kTouching);
      // What the load on it has pushed it in by is no overlap to be slow about.
      const Lanes limit = -(push + yield * point.inertia * before);
      const Lanes bias = where_positive(open, gap * per_h, greater(group.rate * gap, limit));
      const Lanes mass_scale = where_positive(open, all(1), group.mass_scale);
      const Lanes impulse_scale = where_positive(open, zero, group.impulse_scale);
      after = greater(before - point.response * mass_scale * (speed + bias) - impulse_scale * before, zero);
    } else {
      after = greater(before - point.response * (speed + greater(gap, zero) * per_h), zero);
      if (bounce) {  // what comes fast is an impact of the next substep, which needs its speed
        const Lanes left = where_positive(before, after, where_positive(bounce->restitution, before, after));
        after = where_positive(-speed - all(settings_.bounce_speed), left, after);
      }
    }
    const Lanes change = where_positive(active, after - before, zero);
    point.impulse = where_positive(active, after, before);
    pushed += change;
    straight += change * group.squares;
    add(change, point.own_a, v.angular_a);
    add(-change, point.own_b, v.angular_b);
    largest_change = greater(largest_change, absolute(change) * point.inertia);
  };
  for (int p = 0; p < group.point_count; ++p) sweep_point(p);
  if (group.point_count > 1) {
    // A hit has nothing to start from, and the first points would take it all: there and back until it is even.
    // Each contact goes on for as long as it needs, whatever the others beside it do.
    const Lanes hit = all(settings_.bounce_speed / 2);
    for (int pass = 0; pass < kHitPasses; ++pass) {
      active = where_positive(active, largest_change - hit, zero);
      if (!(largest(active) > 0)) break;
      largest_change = zero;
      for (int p = group.point_count - 1; p >= 0; --p) sweep_point(p);
      for (int p = 0; p < group.point_count; ++p) sweep_point(p);
    }
  }
  sum = zero;
  for (int p = 0; p < group.point_count; ++p) sum += points[p].impulse;
  add(pushed * group.root_a, group.normal, v.linear_a);
  add(-pushed * group.root_b, group.normal, v.linear_b);
  return largest_change;
}

// Two rows with one bound: along directions, and about them.
LAPJOINT_INLINE void ContactSweeps::sweep_across(const Lanes3* along, Lanes root_a, Lanes root_b, Lanes limit,
                                                 const Lanes* drift, Across& rows, Velocities& v) {
  const Lanes3 apart = root_a * v.linear_a - root_b * v.linear_b;
  Lanes first = dot(along[0], apart) + dot(rows.first_a, v.angular_a) - dot(rows.first_b, v.angular_b);
  Lanes second = dot(along[1], apart) + dot(rows.second_a, v.angular_a) - dot(rows.second_b, v.angular_b);
  if (drift) {
    first += drift[0];
    second += drift[1];
  }
  Lanes x = rows.impulse[0] - (rows.inverse[0] * first + rows.inverse[1] * second);
  Lanes y = rows.impulse[1] - (rows.inverse[1] * first + rows.inverse[2] * second);
  const Lanes square = x * x + y * y;
  const Lanes scale = where_positive(square - limit * limit, limit / root(greater(square, all(Real(1e-30)))), all(1));
  x = x * scale;
  y = y * scale;
  const Lanes change_x = x - rows.impulse[0], change_y = y - rows.impulse[1];
  rows.impulse[0] = x;
  rows.impulse[1] = y;
  Lanes3 change = change_x * along[0];
  add(change_y, along[1], change);
  add(root_a, change, v.linear_a);
  add(-root_b, change, v.linear_b);
  add(change_x, rows.first_a, v.angular_a);
  add(change_y, rows.second_a, v.angular_a);
  add(-change_x, rows.first_b, v.angular_b);
  add(-change_y, rows.second_b, v.angular_b);
}

template <bool kBias, bool kDrifts>
LAPJOINT_INLINE Lanes ContactSweeps::sweep_group(Group& group, Bodies& bodies, Motion* motion) {
  Velocities v(motion, group);
  Lanes sum;
  const Lanes change = sweep_normals<kBias, kDrifts>(group, v, bodies, sum);
  if constexpr (!kBias) {
    const Drift* drift = kDrifts ? &drifts_[group.drift] : nullptr;
    const Lanes limit = group.friction * sum;
    const Lanes3 across[2] = {group.tangent, cross(group.normal, group.tangent)};
    if (group.point_count > 1) {
      Lanes speed = dot(group.twist_a, v.angular_a) - dot(group.twist_b, v.angular_b);
      if constexpr (kDrifts) speed += drift->twist;
      const Lanes most = limit * group.lever;
      const Lanes after = lesser(greater(group.twist - group.twist_response * speed, -most), most);
      const Lanes twisted = after - group.twist;
      group.twist = after;
      add(twisted, group.twist_a, v.angular_a);
      add(-twisted, group.twist_b, v.angular_b);
    }
    if (group.rolling >= 0) {
      Rolling& roll = rolling_[group.rolling];
      sweep_across(across, all(0), all(0), roll.arm * sum, kDrifts ? drift->roll : nullptr, roll.across, v);
    }
    sweep_across(across, group.root_a, group.root_b, limit, kDrifts ? drift->slide : nullptr, group.slide, v);
  }
  v.write(motion, group);
  return change;
}

// Apart, so that the loop over all others stays as small as it is.
template <bool kBias>
LAPJOINT_APART Lanes ContactSweeps::sweep_drifting(Group& group, Bodies& bodies, Motion* motion) {
  return sweep_group<kBias, true>(group, bodies, motion);
}

template <bool kBias>
Real ContactSweeps::sweep(Bodies& bodies) {
  Motion* motion = bodies.motion.data();
  Lanes worst = all(0);
  for (Group& group : groups_) {
    const Lanes change = group.drift < 0 ? sweep_group<kBias, false>(group, bodies, motion)
                                         : sweep_drifting<kBias>(group, bodies, motion);
    worst = greater(worst, change);
  }
  return largest(worst);
}

void ContactSweeps::solve(Bodies& bodies) { sweep<true>(bodies); }
Real ContactSweeps::relax(Bodies& bodies) { return sweep<false>(bodies); }

void ContactSweeps::move_surfaces() {
  if (drifts_.empty()) return;
  const Lanes h = all(settings_.h);
  for (const Group& group : groups_)
    for (int p = 0; group.drift >= 0 && p < group.point_count; ++p)
      points_[group.first_point + p].gap += h * drifts_[group.drift].normal[p];
}

// ---- impacts -------------------------------------------------------------------------------------------------------

// Of points of four contacts: speeds before, and those to have after it. `closes`: one for those that take part.
struct ContactSweeps::Hit {
  Lanes speed[Contact::kPoints], wanted[Contact::kPoints], closes[Contact::kPoints];
};

// Speeds of a group's points along their normals, and whether any bounces and comes faster than the threshold.
LAPJOINT_INLINE bool ContactSweeps::comes_fast(const Group& group, const Velocities& v, Lanes* speed) const {
  const Lanes straight = group.root_a * dot(group.normal, v.linear_a) - group.root_b * dot(group.normal, v.linear_b);
  const Point* points = &points_[group.first_point];
  const Lanes zero = all(0), threshold = all(settings_.bounce_speed);
  Lanes fastest = zero;
  for (int p = 0; p < group.point_count; ++p) {
    speed[p] = straight + dot(points[p].own_a, v.angular_a) - dot(points[p].own_b, v.angular_b);
    if (group.drift >= 0) speed[p] += drifts_[group.drift].normal[p];
    fastest = greater(fastest, where_positive(points[p].inertia, -speed[p] - threshold, zero));
  }
  return largest(where_positive(bounces_[group.bounce].restitution, fastest, zero)) > 0;
}

bool ContactSweeps::find_fast(const Bodies& bodies) {
  bool any = false;
  Lanes speed[Contact::kPoints];
  for (Bounce& bounce : bounces_) {
    const Group& group = groups_[bounce.group];
    const bool is_fast = comes_fast(group, Velocities(bodies.motion.data(), group), speed);
    bounce.looked_at = is_fast ? kNever : hit_count_;
    any |= is_fast;
  }
  return any;
}

void ContactSweeps::look_at_all() {
  for (Bounce& bounce : bounces_) bounce.looked_at = kNever;
}

bool ContactSweeps::was_hit_since(const Group& group, int hits) const {
  LAPJOINT_ASSERT(last_hit_.back() == 0);  // what cannot move is not hit
  int last = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    last = std::max(last, std::max(last_hit_[group.a[lane]], last_hit_[group.b[lane]]));
  return last > hits;
}

void ContactSweeps::note_hit(const Group& group) {
  ++hit_count_;
  for (int lane = 0; lane < kLanes; ++lane) last_hit_[group.a[lane]] = last_hit_[group.b[lane]] = hit_count_;
  last_hit_.back() = 0;  // what cannot move
}

bool ContactSweeps::impact(Bodies& bodies) {
  bool any = false;
  for (Bounce& bounce : bounces_) {
    Group& group = groups_[bounce.group];
    if (bounce.looked_at != kNever && !was_hit_since(group, bounce.looked_at)) continue;
    bounce.looked_at = hit_count_;
    if (!impact_group(group, bodies)) continue;
    note_hit(group);
    any = true;
  }
  return any;
}

bool ContactSweeps::impact_group(Group& group, Bodies& bodies) {
  Motion* motion = bodies.motion.data();
  Velocities v(motion, group);
  Bounce& bounce = bounces_[group.bounce];
  const Point* points = &points_[group.first_point];
  const Lanes zero = all(0), threshold = all(settings_.bounce_speed), h = all(settings_.h);
  const auto straight = [&](const Lanes3& a, const Lanes3& b) {
    return group.root_a * dot(group.normal, a) - group.root_b * dot(group.normal, b);
  };
  Hit hit;
  if (!comes_fast(group, v, hit.speed)) return false;

  for (int lane = 0; lane < kLanes; ++lane) {
    bodies.find_coming(group.a[lane]);
    bodies.find_coming(group.b[lane]);
  }
  const Lanes3 moved_a = gather<&Motion::moved>(motion, group.a), moved_b = gather<&Motion::moved>(motion, group.b);
  const Lanes3 turned_a = gather<&Motion::turned>(motion, group.a), turned_b = gather<&Motion::turned>(motion, group.b);
  const Bodies::Coming* coming = bodies.coming.data();
  using Coming = Bodies::Coming;
  const Lanes3 turn_a = gather<&Coming::angular>(coming, group.a), turn_b = gather<&Coming::angular>(coming, group.b);
  const Lanes3 all_turn_a = gather<&Coming::all_angular>(coming, group.a),
               all_turn_b = gather<&Coming::all_angular>(coming, group.b);
  const Lanes apart = straight(moved_a, moved_b);
  const Lanes at_once = straight(gather<&Coming::linear>(coming, group.a), gather<&Coming::linear>(coming, group.b));
  const Lanes whole =
      straight(gather<&Coming::all_linear>(coming, group.a), gather<&Coming::all_linear>(coming, group.b));
  const Lanes square = bounce.restitution * bounce.restitution, twice_per_h = all(2 / settings_.h);
  Lanes active = zero;
  for (int p = 0; p < group.point_count; ++p) {
    const Point& point = points[p];
    const Lanes speed = hit.speed[p];
    const Lanes gap = point.gap + apart + dot(point.own_a, turned_a) - dot(point.own_b, turned_b);
    const Lanes next = speed + at_once + dot(point.own_a, turn_a) - dot(point.own_b, turn_b);
    const Lanes change = whole + dot(point.own_a, all_turn_a) - dot(point.own_b, all_turn_b);
    hit.closes[p] = where_positive(-(gap + h * next), where_positive(point.inertia, all(1), zero), zero);
    const Lanes fast = -speed - threshold;
    active = greater(active, where_positive(fast, hit.closes[p], zero));
    // As fast as it will be at the surface, a share of that back, and up to where it is now.
    const Lanes fall = twice_per_h * change * greater(gap, zero);
    const Lanes after = root(greater(square * greater(speed * speed - fall, zero) + fall, zero));
    hit.wanted[p] = where_positive(fast, after, -bounce.restitution * speed);
  }
  active = where_positive(bounce.restitution, active, zero);
  if (!(largest(active) > 0)) return false;
  for (int p = 0; p < group.point_count; ++p) hit.closes[p] = where_positive(active, hit.closes[p], zero);
  Lanes pressure;
  part(group, hit, v, bounce, pressure);
  rub(group, pressure, v, bounce);
  v.write(motion, group);
  return true;
}

// Impulses after which points have the velocities that they are to have, or larger ones; in `pressure`, their sums.
void ContactSweeps::part(const Group& group, const Hit& hit, Velocities& v, Bounce& bounce, Lanes& pressure) {
  const Point* points = &points_[group.first_point];
  const Drift* drift = group.drift < 0 ? nullptr : &drifts_[group.drift];
  const int count = group.point_count;
  Lanes straight = group.root_a * dot(group.normal, v.linear_a) - group.root_b * dot(group.normal, v.linear_b);
  Lanes impulse[Contact::kPoints] = {all(0), all(0), all(0), all(0)};
  const auto speed_of = [&](int p) {
    const Lanes speed = straight + dot(points[p].own_a, v.angular_a) - dot(points[p].own_b, v.angular_b);
    return drift ? speed + drift->normal[p] : speed;
  };
  const auto apply = [&](int p, Lanes change) {
    impulse[p] += change;
    straight += change * group.squares;
    add(change, points[p].own_a, v.angular_a);
    add(-change, points[p].own_b, v.angular_b);
  };
  const int passes = count > 1 ? kBouncePasses : 1;
  for (int pass = 0; pass < passes; ++pass)
    for (int k = 0; k < count; ++k) {
      const int p = pass % 2 ? count - 1 - k : k;
      const Lanes wanted = impulse[p] + points[p].response * (hit.wanted[p] - speed_of(p));
      apply(p, where_positive(hit.closes[p], greater(wanted, all(0)) - impulse[p], all(0)));
    }
  if (count > 1) {
    // Passes leave something undone. As a whole the impact has the restitution that it should, and never makes energy.
    Lanes change = all(0), wanted = all(0), before = all(0);
    for (int p = 0; p < count; ++p) {
      change += impulse[p] * (speed_of(p) - hit.speed[p]);
      wanted += impulse[p] * (hit.wanted[p] - hit.speed[p]);
      before += impulse[p] * hit.speed[p];
    }
    const Lanes scale = where_positive(change, lesser(wanted, before * Real(-2)) * inverse_or_zero(change), all(1));
    for (int p = 0; p < count; ++p) apply(p, (scale - all(1)) * impulse[p]);
  }
  pressure = all(0);
  for (int p = 0; p < count; ++p) {
    pressure += impulse[p];
    bounce.impulse[p] += impulse[p];
  }
  add(pressure * group.root_a, group.normal, v.linear_a);
  add(-pressure * group.root_b, group.normal, v.linear_b);
}

// Friction of an impact: what its impulses allow.
void ContactSweeps::rub(const Group& group, Lanes pressure, Velocities& v, Bounce& bounce) {
  const Drift* drift = group.drift < 0 ? nullptr : &drifts_[group.drift];
  const Lanes3 across[2] = {group.tangent, cross(group.normal, group.tangent)};
  const Lanes limit = group.friction * pressure;
  if (group.point_count > 1) {
    Lanes speed = dot(group.twist_a, v.angular_a) - dot(group.twist_b, v.angular_b);
    if (drift) speed += drift->twist;
    const Lanes most = limit * group.lever;
    const Lanes twist = lesser(greater(-group.twist_response * speed, -most), most);
    bounce.twist += twist;
    add(twist, group.twist_a, v.angular_a);
    add(-twist, group.twist_b, v.angular_b);
  }
  const auto sweep = [&](Across rows, Lanes root_a, Lanes root_b, Lanes most, const Lanes* drifts, Lanes* into) {
    rows.impulse[0] = rows.impulse[1] = all(0);
    sweep_across(across, root_a, root_b, most, drifts, rows, v);
    for (int k = 0; k < 2; ++k) into[k] += rows.impulse[k];
  };
  if (group.rolling >= 0) {
    const Rolling& roll = rolling_[group.rolling];
    sweep(roll.across, all(0), all(0), roll.arm * pressure, drift ? drift->roll : nullptr, bounce.roll);
  }
  sweep(group.slide, group.root_a, group.root_b, limit, drift ? drift->slide : nullptr, bounce.slide);
}

// ---- what became of them -------------------------------------------------------------------------------------------

Real ContactSweeps::largest_overlap(const Bodies& bodies) const {
  const Motion* motion = bodies.motion.data();
  Lanes deepest = all(0);
  for (const Group& group : groups_) {
    const Lanes3 moved_a = gather<&Motion::moved>(motion, group.a), moved_b = gather<&Motion::moved>(motion, group.b);
    const Lanes3 turned_a = gather<&Motion::turned>(motion, group.a),
                 turned_b = gather<&Motion::turned>(motion, group.b);
    const Lanes apart = group.root_a * dot(group.normal, moved_a) - group.root_b * dot(group.normal, moved_b);
    for (int p = 0; p < group.point_count; ++p) {
      const Point& point = points_[group.first_point + p];
      const Lanes gap = point.gap + apart + dot(point.own_a, turned_a) - dot(point.own_b, turned_b);
      deepest = greater(deepest, where_positive(point.inertia, -gap, all(0)));
    }
  }
  return largest(deepest);
}

template <typename Visit>
void ContactSweeps::each_group(Visit&& visit) const {
  const int* members = lanes_.data();
  for (const Group& group : groups_) {
    visit(group, members);
    members += kLanes;
  }
}

template <typename Of>
static void add_points(const Of& impulse, int count, const int* members, std::vector<PointImpulses>& sums) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (members[lane] == Colours::kEmpty) continue;
    for (int p = 0; p < count; ++p) sums[members[lane]][p] += impulse(p)[lane];
  }
}

void ContactSweeps::add_impulses(std::vector<PointImpulses>& sums) const {
  each_group([&](const Group& group, const int* members) {
    const auto impulse = [&](int p) { return points_[group.first_point + p].impulse; };
    add_points(impulse, group.point_count, members, sums);
  });
}

void ContactSweeps::add_impacts(std::vector<PointImpulses>& sums) const {
  each_group([&](const Group& group, const int* members) {
    if (group.bounce < 0) return;
    const auto impulse = [&](int p) { return bounces_[group.bounce].impulse[p]; };
    add_points(impulse, group.point_count, members, sums);
  });
}

// `roll`: or null.
ContactSweeps::Friction ContactSweeps::friction_of(const Group& group, const Lanes* slide, Lanes twist,
                                                   const Lanes* roll) const {
  const Lanes3 second = cross(group.normal, group.tangent);
  Friction friction{slide[0] * group.tangent, twist * group.normal};
  add(slide[1], second, friction.tangential);
  if (roll) {
    add(roll[0], group.tangent, friction.angular);
    add(roll[1], second, friction.angular);
  }
  return friction;
}

void ContactSweeps::add_friction(const Friction& friction, const int* members,
                                 std::vector<FrictionImpulses>& sums) const {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (members[lane] == Colours::kEmpty) continue;
    FrictionImpulses& sum = sums[members[lane]];
    const auto add_to = [lane](const Lanes3& from, Real* into) {
      into[0] += from.x[lane];
      into[1] += from.y[lane];
      into[2] += from.z[lane];
    };
    add_to(friction.tangential, sum.tangential);
    add_to(friction.angular, sum.angular);
  }
}

void ContactSweeps::add_surface_work(std::vector<Real>& sums) const {
  each_group([&](const Group& group, const int* members) {
    if (group.drift < 0) return;
    Lanes impulse[Contact::kPoints];
    for (int p = 0; p < group.point_count; ++p) impulse[p] = points_[group.first_point + p].impulse;
    const Lanes* roll = group.rolling < 0 ? nullptr : rolling_[group.rolling].across.impulse;
    add_work(group, impulse, group.slide.impulse, group.twist, roll, members, sums);
  });
}

void ContactSweeps::add_surface_work_of_impacts(std::vector<Real>& sums) const {
  each_group([&](const Group& group, const int* members) {
    if (group.drift < 0 || group.bounce < 0) return;
    const Bounce& bounce = bounces_[group.bounce];
    add_work(group, bounce.impulse, bounce.slide, bounce.twist, group.rolling < 0 ? nullptr : bounce.roll, members,
             sums);
  });
}

// What a surface that moves does with these impulses.
void ContactSweeps::add_work(const Group& group, const Lanes* impulse, const Lanes* slide, const Lanes& twist,
                             const Lanes* roll, const int* members, std::vector<Real>& sums) const {
  const Drift& drift = drifts_[group.drift];
  Lanes work = -(twist * drift.twist);
  for (int p = 0; p < group.point_count; ++p) work -= impulse[p] * drift.normal[p];
  for (int k = 0; k < 2; ++k) {
    work -= slide[k] * drift.slide[k];
    if (roll) work -= roll[k] * drift.roll[k];
  }
  for (int lane = 0; lane < kLanes; ++lane)
    if (members[lane] != Colours::kEmpty) sums[members[lane]] += work[lane];
}

void ContactSweeps::add_impulses(std::vector<FrictionImpulses>& sums) const {
  each_group([&](const Group& group, const int* members) {
    const Lanes* roll = group.rolling < 0 ? nullptr : rolling_[group.rolling].across.impulse;
    add_friction(friction_of(group, group.slide.impulse, group.twist, roll), members, sums);
  });
}

void ContactSweeps::add_impacts(std::vector<FrictionImpulses>& sums) const {
  each_group([&](const Group& group, const int* members) {
    if (group.bounce < 0) return;
    const Bounce& bounce = bounces_[group.bounce];
    add_friction(friction_of(group, bounce.slide, bounce.twist, bounce.roll), members, sums);
  });
}

void ContactSweeps::store(std::vector<Contact>& contacts) const {
  const Real in_step = Real(settings_.substeps);
  each_group([&](const Group& group, const int* members) {
    const Lanes* roll = group.rolling < 0 ? nullptr : rolling_[group.rolling].across.impulse;
    const Friction friction = friction_of(group, group.slide.impulse, group.twist, roll);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (members[lane] == Colours::kEmpty) continue;
      Contact& contact = contacts[members[lane]];
      for (int p = 0; p < contact.point_count; ++p)
        contact.impulse[p] = in_step * points_[group.first_point + p].impulse[lane];
      for (int p = 0; p < contact.point_count; ++p) LAPJOINT_ASSERT(!(contact.impulse[p] < 0));  // contacts only push
      const Lanes3* parts[2] = {&friction.tangential, &friction.angular};
      Real* out[2] = {contact.tangential, contact.angular};
      for (int k = 0; k < 2; ++k) {
        out[k][0] = in_step * parts[k]->x[lane];
        out[k][1] = in_step * parts[k]->y[lane];
        out[k][2] = in_step * parts[k]->z[lane];
      }
    }
  });
}

}  // namespace lapjoint
