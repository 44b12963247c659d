#include "substeps/bodies.h"

#include "assertions.h"

namespace lapjoint {

namespace {

constexpr double kTurnAtOnce = 0.1;  // rad by which gyroscopic motion is taken at once
constexpr int kMostTurns = 64;
constexpr Real kFastSpin = Real(1e-3);  // rad in a substep: slower ones lose less than a thousandth of it in a second
constexpr Real kLate = Real(0.5);       // share of what forces do in free flight that comes after a body has moved

// Of what forces do: less is rounding, or soon nothing.
constexpr Real kCarriesSquare = Real(1) / (64 * 64);

LAPJOINT_INLINE Real square_of(const Bodies::Twist& twist) {
  const Lanes squares = twist.linear * twist.linear + twist.angular * twist.angular;
  return squares[0] + squares[1] + squares[2];
}

LAPJOINT_INLINE Lanes first_three(Real value) { return {value, value, value, 0}; }

// Euler's equations along principal axes; what angular velocities change by in a second.
void euler(const double* inertia, const double* w, double* out) {
  out[0] = (inertia[1] - inertia[2]) / inertia[0] * w[1] * w[2];
  out[1] = (inertia[2] - inertia[0]) / inertia[1] * w[2] * w[0];
  out[2] = (inertia[0] - inertia[1]) / inertia[2] * w[0] * w[1];
}

// A free body's own turning, by Runge and Kutta's method of fourth order, and scaled to keep its energy.
void turn_freely(const Real* inverse_inertia, double duration, double* w) {
  double inertia[3];
  for (int k = 0; k < 3; ++k) inertia[k] = 1 / double(inverse_inertia[k]);
  const auto energy = [&] { return inertia[0] * w[0] * w[0] + inertia[1] * w[1] * w[1] + inertia[2] * w[2] * w[2]; };
  const double before = energy();
  if (!(before > 0)) return;
  const double speed = std::sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  const int count = static_cast<int>(std::min<double>(kMostTurns - 1, speed * duration / kTurnAtOnce)) + 1;
  const double h = duration / count;
  for (int turn = 0; turn < count; ++turn) {
    double k1[3], k2[3], k3[3], k4[3], at[3];
    euler(inertia, w, k1);
    for (int k = 0; k < 3; ++k) at[k] = w[k] + h / 2 * k1[k];
    euler(inertia, at, k2);
    for (int k = 0; k < 3; ++k) at[k] = w[k] + h / 2 * k2[k];
    euler(inertia, at, k3);
    for (int k = 0; k < 3; ++k) at[k] = w[k] + h * k3[k];
    euler(inertia, at, k4);
    for (int k = 0; k < 3; ++k) w[k] += h / 6 * (k1[k] + 2 * k2[k] + 2 * k3[k] + k4[k]);
  }
  const double after = energy();
  if (!(after > 0)) return;
  const double scale = std::sqrt(before / after);
  for (int k = 0; k < 3; ++k) w[k] *= scale;
}

// A vector turned by a rotation vector, or back.
void turn_vector(const double* by, double sign, double* v) {
  const double square = by[0] * by[0] + by[1] * by[1] + by[2] * by[2];
  if (!(square > 0)) return;
  const double angle = std::sqrt(square), first = sign * std::sin(angle) / angle,
               second = (1 - std::cos(angle)) / square;
  const auto across = [by](const double* of, double* out) {
    out[0] = by[1] * of[2] - by[2] * of[1];
    out[1] = by[2] * of[0] - by[0] * of[2];
    out[2] = by[0] * of[1] - by[1] * of[0];
  };
  double once[3], twice[3];
  across(v, once);
  across(once, twice);
  for (int k = 0; k < 3; ++k) v[k] += first * once[k] + second * twice[k];
}

void into_axes(const Real* axes, const Real* world, double* own) {
  for (int k = 0; k < 3; ++k)
    own[k] = double(axes[k]) * world[0] + double(axes[3 + k]) * world[1] + double(axes[6 + k]) * world[2];
}

template <typename Out>
void out_of_axes(const Real* axes, const double* own, Out* world) {
  for (int k = 0; k < 3; ++k)
    world[k] = Out(double(axes[3 * k]) * own[0] + double(axes[3 * k + 1]) * own[1] + double(axes[3 * k + 2]) * own[2]);
}

// Share of a velocity that damping leaves after a substep. Many bodies have the same.
class Kept {
 public:
  explicit Kept(Real h) : h_(h) {}
  Real of(Real damping) {
    if (damping != damping_) {
      damping_ = damping;
      kept_ = std::pow(1 - damping, h_);
    }
    return kept_;
  }

 private:
  Real h_, damping_ = 0, kept_ = 1;
};

// out = rotation by the vector `turn` times axes
template <typename In>
void turn_axes(const double* turn, const In* axes, double* out) {
  const double square = turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2];
  // Quaternion of the rotation; of little ones by series that are right to all digits.
  double w = 1 - square / 8 * (1 - square / 48 * (1 - square / 120));
  double share = 0.5 * (1 - square / 24 * (1 - square / 80 * (1 - square / 168)));
  if (square > 0.01) {
    const double angle = std::sqrt(square);
    w = std::cos(angle / 2);
    share = std::sin(angle / 2) / angle;
  }
  const double x = share * turn[0], y = share * turn[1], z = share * turn[2];
  const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                       2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                       2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k)
      out[3 * i + k] = r[3 * i] * axes[k] + r[3 * i + 1] * axes[3 + k] + r[3 * i + 2] * axes[6 + k];
}

// One step towards the nearest rotation: m (3 - m^T m) / 2.
void straighten(const double* m, Real* out) {
  double s[9];
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      const double product = m[i] * m[k] + m[3 + i] * m[3 + k] + m[6 + i] * m[6 + k];
      s[3 * i + k] = (i == k ? 1.5 : 0.0) - 0.5 * product;
    }
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k)
      out[3 * i + k] = Real(m[3 * i] * s[k] + m[3 * i + 1] * s[3 + k] + m[3 * i + 2] * s[6 + k]);
}

// The rotation vector of a body since the step began, in the world.
void world_turn(const Bodies& bodies, int place, double* turn) {
  const Frame& frame = bodies.frame[place];
  const Lanes& turned = bodies.motion[place].turned;
  for (int k = 0; k < 3; ++k)
    turn[k] = double(turned[0]) * frame.rows[0][k] + double(turned[1]) * frame.rows[1][k] +
              double(turned[2]) * frame.rows[2][k];
}

}  // namespace

void Bodies::resize(int count, bool jointed) {
  jointed_ = jointed;
  const int of_joints = jointed ? count + 1 : 0;
  motion.resize(count + 1);
  frame.resize(count + 1);
  start.resize(count + 1);
  traits.resize(count + 1);
  pose.resize(of_joints);
  pushed_.resize(count + 1);
  coming.resize(count + 1);
  gain.assign(count + 1, 0);
  carried_.resize(count + 1);
  flight_limit_.resize(count + 1);
  late_.resize(count + 1);
  spins_.resize(count + 1);
  turned_impulses.assign(of_joints, {all(0), all(0)});
  last.resize(of_joints);
  start[count] = {{0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}, {0, 0, 0}};
  traits[count] = {};
}

void Bodies::begin(Real timestep, int substeps) {
  LAPJOINT_ASSERT(timestep > 0 && substeps >= 1);
  LAPJOINT_ASSERT(traits.back().inverse_mass == 0);  // the last cannot move
  const Real h = timestep / Real(substeps);
  h_ = h;
  timestep_ = timestep;
  Kept linear_kept(h), angular_kept(h);
  for (std::size_t i = 0; i < motion.size(); ++i) {
    const BodyState& state = start[i];
    const BodyTraits& own = traits[i];
    const double root = std::sqrt(double(own.inverse_mass));
    double angular[3], torque[3];
    into_axes(state.axes, state.angular, angular);
    into_axes(state.axes, own.torque, torque);
    Motion& now = motion[i];
    Twist& push = pushed_[i];
    now.linear = now.angular = now.moved = now.turned = push.linear = push.angular = all(0);
    for (int k = 0; k < 3; ++k) {
      const double turn_root = std::sqrt(double(own.inverse_inertia[k]));
      now.linear[k] = root > 0 ? Real(state.linear[k] / root) : 0;
      now.angular[k] = turn_root > 0 ? Real(angular[k] / turn_root) : 0;
      push.linear[k] = Real(h * own.force[k] * root);
      push.angular[k] = Real(h * torque[k] * turn_root);
      Lanes& row = frame[i].rows[k];
      for (int j = 0; j < 3; ++j) row[j] = Real(turn_root * state.axes[3 * j + k]);
      row[3] = state.position[k];
    }
    // Other forces than gravity change with the place, and are as they were when the step began: taken in halves, they
    // would feed an oscillation.
    flight_limit_[i] = own.falls ? kCarriesSquare * square_of(push) : -1;
    push.linear[3] = linear_kept.of(own.linear_damping);
    push.angular[3] = angular_kept.of(own.angular_damping);
    frame[i].root = Lanes{Real(root), 0, 0, 0};
    gain[i] = -kinetic_energy(now);
    carried_[i] = {all(0), all(0)};
    if (jointed_) turned_impulses[i] = {all(0), all(0)};
  }
}

void Bodies::take_carried() {
  // What rows did so far is taken back, and comes again with each substep.
  for (std::size_t i = 0; i < motion.size(); ++i) {
    carried_[i].linear = motion[i].moved;
    carried_[i].angular = motion[i].turned;
    motion[i].moved = motion[i].turned = all(0);
    spins_[i] = 0;
    const BodyTraits& own = traits[i];
    if (!own.gyroscopic) continue;
    double spin[3], root[3], square = 0;
    for (int k = 0; k < 3; ++k) {
      root[k] = std::sqrt(double(own.inverse_inertia[k]));
      spin[k] = motion[i].angular[k] * root[k];
      square += spin[k] * spin[k];
    }
    spins_[i] =
        square * h_ * h_ > kFastSpin * kFastSpin && square_of(carried_[i]) > kCarriesSquare * square_of(pushed_[i]);
    if (spins_[i]) continue;
    turn_freely(own.inverse_inertia, double(timestep_) / 2, spin);
    for (int k = 0; k < 3; ++k) motion[i].angular[k] = root[k] > 0 ? Real(spin[k] / root[k]) : 0;
  }
}

// Its angular momentum stays in the world, for the axes that it has by now. What that changes its velocity by is found
// with the inertia that all impulses of the step are taken with: so an axle takes away just what is across it.
void Bodies::spin(int i) {
  const Real* inverse = traits[i].inverse_inertia;
  double turn[3], momentum[3], by[3], change[3];
  for (int k = 0; k < 3; ++k) {
    const double root = std::sqrt(double(inverse[k]));
    by[k] = motion[i].angular[k] * root;
    turn[k] = motion[i].turned[k] * root;
  }
  turn_vector(turn, -1, by);
  for (int k = 0; k < 3; ++k) {
    change[k] = momentum[k] = by[k] / inverse[k];
    by[k] *= h_ / 2;
  }
  turn_vector(by, -1, change);
  for (int k = 0; k < 3; ++k) change[k] -= momentum[k];
  turn_vector(turn, 1, change);
  for (int k = 0; k < 3; ++k) motion[i].angular[k] += Real(change[k] * std::sqrt(double(inverse[k])));
}

LAPJOINT_INLINE bool Bodies::is_in_flight(int place) const {
  return square_of(carried_[place]) <= flight_limit_[place];
}

void Bodies::begin_substep() {
  const Lanes whole = first_three(1);
  for (std::size_t i = 0; i < motion.size(); ++i) {
    Motion& now = motion[i];
    const Twist& push = pushed_[i];
    if (spins_[i]) spin(static_cast<int>(i));
    const Real late = is_in_flight(static_cast<int>(i)) ? kLate : 0;
    const Lanes share = all(1 - late);
    const Lanes linear = (now.linear + share * push.linear) * push.linear[3] * whole,
                angular = (now.angular + share * push.angular) * push.angular[3] * whole;
    if (jointed_) last[i] = {now.linear, now.angular};
    now.linear = linear + carried_[i].linear;
    now.angular = angular + carried_[i].angular;
    carried_[i] = {linear, angular};
    late_[i] = late;
  }
}

void Bodies::compute_coming(int place) {
  const Twist &push = pushed_[place], &carried = carried_[place];
  const Lanes share = first_three(is_in_flight(place) ? 1 - kLate : 1), whole = first_three(1);
  coming[place] = {share * push.linear + carried.linear, share * push.angular + carried.angular,
                   whole * push.linear + carried.linear, whole * push.angular + carried.angular};
  has_coming_[place] = 1;
}

void Bodies::find_coming() {
  for (int i = 0; i <= fixed(); ++i) find_coming(i);
}

void Bodies::move(Real h) {
  const Lanes duration = all(h);
  for (std::size_t i = 0; i < motion.size(); ++i) {
    Motion& now = motion[i];
    now.moved += duration * now.linear;
    now.turned += duration * now.angular;
    Twist& before = carried_[i];
    if (spins_[i]) {
      const Lanes was = now.angular;
      spin(static_cast<int>(i));
      before.angular += now.angular - was;
    }
    if (!(late_[i] > 0)) continue;
    const Lanes share = first_three(late_[i]);
    const Lanes linear = share * pushed_[i].linear, angular = share * pushed_[i].angular;
    now.linear += linear;
    now.angular += angular;
    before.linear += linear;
    before.angular += angular;
  }
}

void Bodies::find_poses() {
  for (int i = 0; i <= fixed(); ++i) find_pose(i);
}

void Bodies::find_pose(int i) {
  LAPJOINT_ASSERT(i >= 0 && i <= fixed() && i < static_cast<int>(pose.size()));
  double turn[3];
  world_turn(*this, i, turn);
  turn_axes(turn, start[i].axes, pose[i].axes);
  const double root = frame[i].root[0];
  for (int k = 0; k < 3; ++k) pose[i].position[k] = double(start[i].position[k]) + root * motion[i].moved[k];
}

void Bodies::end_substep() {
  LAPJOINT_ASSERT(!(kinetic_energy(motion.back()) > 0));  // what cannot move has not
  for (std::size_t i = 0; i < motion.size(); ++i) {
    carried_[i].linear = motion[i].linear - carried_[i].linear;
    carried_[i].angular = motion[i].angular - carried_[i].angular;
    if (!jointed_) continue;
    carried_[i].linear += turned_impulses[i].linear;
    carried_[i].angular += turned_impulses[i].angular;
    turned_impulses[i] = {all(0), all(0)};
  }
}

void Bodies::finish(Real timestep, int substeps) {
  const Real per_substep = Real(substeps) / timestep;
  for (int i = 0; i < fixed(); ++i) {
    BodyState& state = start[i];
    const BodyTraits& own = traits[i];
    const Motion& now = motion[i];
    const Lanes work = pushed_[i].linear * now.moved + pushed_[i].angular * now.turned;
    gain[i] += kinetic_energy(now) - std::max(Real(0), per_substep * (work[0] + work[1] + work[2]));
    const double root = std::sqrt(double(own.inverse_mass));
    double angular[3], turn[3], axes[9];
    for (int k = 0; k < 3; ++k) {
      state.linear[k] = Real(now.linear[k] * root);
      state.position[k] += Real(now.moved[k] * root);
      angular[k] = now.angular[k] * std::sqrt(double(own.inverse_inertia[k]));
    }
    world_turn(*this, i, turn);
    double world[3];
    out_of_axes(state.axes, angular, world);
    turn_axes(turn, state.axes, axes);
    straighten(axes, state.axes);
    for (int k = 0; k < 3; ++k) state.angular[k] = Real(world[k]);
    if (!own.gyroscopic || spins_[i]) continue;
    for (int k = 0; k < 3; ++k)
      angular[k] = state.axes[k] * world[0] + state.axes[3 + k] * world[1] + state.axes[6 + k] * world[2];
    turn_freely(own.inverse_inertia, double(timestep) / 2, angular);
    out_of_axes(state.axes, angular, state.angular);
  }
}

}  // namespace lapjoint
