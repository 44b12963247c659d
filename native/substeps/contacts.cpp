#include "substeps/contacts.h"

namespace lapjoint {

namespace {

constexpr int kHitPasses = 8, kBouncePasses = 8;
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
    put(contact.normal, group.normal, lane);
    put_tangent(contact.normal, group.tangent, lane);
    group.friction[lane] = contact.friction;
    restitution[lane] = contact.restitution;
    arm[lane] = contact.rolling;
    rolls |= contact.rolling > 0;
    bounces |= contact.restitution > 0;
    drifts |= contact.surface != Contact::kStill;
    if (contact.shift != Contact::kHere) {
      put(settings_.shifts[contact.shift].by, shift, lane);
      shifts = true;
    }
    const Softness& soft = contact.a == fixed || contact.b == fixed ? settings_.soft_fixed : settings_.soft;
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
    const Motion* motion = bodies.motion.data();
    const Lanes3 linear_a = gather<&Motion::linear>(motion, group.a),
                 turn_a = gather<&Motion::angular>(motion, group.a);
    const Lanes3 linear_b = gather<&Motion::linear>(motion, group.b),
                 turn_b = gather<&Motion::angular>(motion, group.b);
    const Lanes straight = group.root_a * dot(group.normal, linear_a) - group.root_b * dot(group.normal, linear_b);
    for (int p = 0; p < group.point_count; ++p) {
      const Point& point = points_[group.first_point + p];
      bounce.approach[p] = straight + dot(point.own_a, turn_a) - dot(point.own_b, turn_b);
      if (group.drift >= 0) bounce.approach[p] += drifts_[group.drift].normal[p];
      bounce.most[p] = all(0);
    }
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
  if (group.bounce >= 0) {
    Bounce& bounce = bounces_[group.bounce];
    for (int p = 0; p < group.point_count; ++p)
      bounce.most[p] = greater(bounce.most[p], points_[group.first_point + p].impulse);
  }
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

void ContactSweeps::bounce(Bodies& bodies) {
  if (bounces_.empty()) return;
  Motion* motion = bodies.motion.data();
  const Lanes threshold = all(settings_.bounce_speed), zero = all(0);
  for (Group& group : groups_) {
    if (group.bounce < 0) continue;
    const Bounce& bounce = bounces_[group.bounce];
    Velocities v(motion, group);
    for (int turn = 0; turn < kBouncePasses * group.point_count; ++turn) {
      const int p = turn % group.point_count;
      Point& point = points_[group.first_point + p];
      const Lanes straight =
          group.root_a * dot(group.normal, v.linear_a) - group.root_b * dot(group.normal, v.linear_b);
      Lanes speed = straight + dot(point.own_a, v.angular_a) - dot(point.own_b, v.angular_b);
      if (group.drift >= 0) speed += drifts_[group.drift].normal[p];
      const Lanes wanted = point.impulse - point.response * (speed + bounce.restitution * bounce.approach[p]);
      // Only where it came fast and has touched.
      Lanes after = where_positive(-bounce.approach[p] - threshold, greater(wanted, zero), point.impulse);
      after = where_positive(bounce.most[p], where_positive(bounce.restitution, after, point.impulse), point.impulse);
      const Lanes change = after - point.impulse;
      point.impulse = after;
      add(change * group.root_a, group.normal, v.linear_a);
      add(-change * group.root_b, group.normal, v.linear_b);
      add(change, point.own_a, v.angular_a);
      add(-change, point.own_b, v.angular_b);
    }
    v.write(motion, group);
  }
}

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

void ContactSweeps::add_impulses(std::vector<PointImpulses>& sums) const {
  const int* members = lanes_.data();
  for (const Group& group : groups_) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (members[lane] == Colours::kEmpty) continue;
      PointImpulses& sum = sums[members[lane]];
      for (int p = 0; p < group.point_count; ++p) sum[p] += points_[group.first_point + p].impulse[lane];
    }
    members += kLanes;
  }
}

ContactSweeps::Friction ContactSweeps::friction_of(const Group& group) const {
  const Lanes3 second = cross(group.normal, group.tangent);
  Friction friction{group.slide.impulse[0] * group.tangent, group.twist * group.normal};
  add(group.slide.impulse[1], second, friction.tangential);
  if (group.rolling >= 0) {
    const Across& roll = rolling_[group.rolling].across;
    add(roll.impulse[0], group.tangent, friction.angular);
    add(roll.impulse[1], second, friction.angular);
  }
  return friction;
}

void ContactSweeps::add_impulses(std::vector<FrictionImpulses>& sums) const {
  const int* members = lanes_.data();
  for (const Group& group : groups_) {
    const Friction friction = friction_of(group);
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
    members += kLanes;
  }
}

void ContactSweeps::store(std::vector<Contact>& contacts) const {
  const int* members = lanes_.data();
  const Real in_step = Real(settings_.substeps);
  for (const Group& group : groups_) {
    const Friction friction = friction_of(group);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (members[lane] == Colours::kEmpty) continue;
      Contact& contact = contacts[members[lane]];
      for (int p = 0; p < contact.point_count; ++p)
        contact.impulse[p] = in_step * points_[group.first_point + p].impulse[lane];
      const Lanes3* parts[2] = {&friction.tangential, &friction.angular};
      Real* out[2] = {contact.tangential, contact.angular};
      for (int k = 0; k < 2; ++k) {
        out[k][0] = in_step * parts[k]->x[lane];
        out[k][1] = in_step * parts[k]->y[lane];
        out[k][2] = in_step * parts[k]->z[lane];
      }
    }
    members += kLanes;
  }
}

}  // namespace lapjoint
