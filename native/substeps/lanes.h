// Four numbers side by side, on which a processor computes at once: SSE2 on every x86-64, NEON on every 64-bit ARM.
// GCC and Clang make such instructions of their vector types; elsewhere four plain numbers take their place.
#pragma once

#include <LinearMath/btScalar.h>

#include <algorithm>
#include <cmath>

namespace lapjoint {

using Real = btScalar;
constexpr int kLanes = 4;

#if defined(__GNUC__)
#define LAPJOINT_INLINE inline __attribute__((always_inline))
#define LAPJOINT_APART __attribute__((noinline))
constexpr int kHalf = 16 / sizeof(Real);  // numbers in a register that every processor has: four, or two
using Register = Real __attribute__((vector_size(16)));
#else
#define LAPJOINT_INLINE inline
#define LAPJOINT_APART
constexpr int kHalf = 1;
struct Register {
  Real at;
};
#endif
constexpr int kRegisters = kLanes / kHalf;

struct alignas(kLanes * sizeof(Real)) Lanes {
  Register part[kRegisters];

  Lanes() = default;
  LAPJOINT_INLINE Lanes(Real a, Real b, Real c, Real d);
  // A lane by itself: slow, for where rows are made.
  LAPJOINT_INLINE Real& operator[](int lane) { return reinterpret_cast<Real*>(this)[lane]; }
  LAPJOINT_INLINE Real operator[](int lane) const { return reinterpret_cast<const Real*>(this)[lane]; }
};

LAPJOINT_INLINE Lanes::Lanes(Real a, Real b, Real c, Real d) {
  (*this)[0] = a;
  (*this)[1] = b;
  (*this)[2] = c;
  (*this)[3] = d;
}

#if defined(__GNUC__)

template <typename Each>
LAPJOINT_INLINE Lanes each_part(Each&& each) {
  Lanes out;
  for (int i = 0; i < kRegisters; ++i) out.part[i] = each(i);
  return out;
}
LAPJOINT_INLINE Register filled(Real value) { return value - Register{}; }
LAPJOINT_INLINE Lanes all(Real value) {
  return each_part([&](int) { return filled(value); });
}
#define LAPJOINT_OPERATOR(name)                                         \
  LAPJOINT_INLINE Lanes operator name(const Lanes& a, const Lanes& b) { \
    return each_part([&](int i) { return a.part[i] name b.part[i]; });  \
  }
LAPJOINT_OPERATOR(+)
LAPJOINT_OPERATOR(-)
LAPJOINT_OPERATOR(*)
LAPJOINT_OPERATOR(/)
#undef LAPJOINT_OPERATOR
LAPJOINT_INLINE Lanes operator-(const Lanes& a) {
  return each_part([&](int i) { return -a.part[i]; });
}
LAPJOINT_INLINE Lanes lesser(const Lanes& a, const Lanes& b) {
  return each_part([&](int i) { return a.part[i] < b.part[i] ? a.part[i] : b.part[i]; });
}
LAPJOINT_INLINE Lanes greater(const Lanes& a, const Lanes& b) {
  return each_part([&](int i) { return a.part[i] > b.part[i] ? a.part[i] : b.part[i]; });
}
LAPJOINT_INLINE Lanes where_positive(const Lanes& condition, const Lanes& yes, const Lanes& no) {
  return each_part([&](int i) { return condition.part[i] > filled(0) ? yes.part[i] : no.part[i]; });
}

// Rows become columns.
LAPJOINT_INLINE void transpose(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
#ifndef BT_USE_DOUBLE_PRECISION
  const Register low_ab = __builtin_shufflevector(a.part[0], b.part[0], 0, 4, 1, 5);
  const Register high_ab = __builtin_shufflevector(a.part[0], b.part[0], 2, 6, 3, 7);
  const Register low_cd = __builtin_shufflevector(c.part[0], d.part[0], 0, 4, 1, 5);
  const Register high_cd = __builtin_shufflevector(c.part[0], d.part[0], 2, 6, 3, 7);
  a.part[0] = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
  b.part[0] = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
  c.part[0] = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
  d.part[0] = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
#else
  const Lanes p = a, q = b, r = c, s = d;
  const auto first = [](Register x, Register y) { return Register{x[0], y[0]}; };
  const auto second = [](Register x, Register y) { return Register{x[1], y[1]}; };
  a.part[0] = first(p.part[0], q.part[0]);
  a.part[1] = first(r.part[0], s.part[0]);
  b.part[0] = second(p.part[0], q.part[0]);
  b.part[1] = second(r.part[0], s.part[0]);
  c.part[0] = first(p.part[1], q.part[1]);
  c.part[1] = first(r.part[1], s.part[1]);
  d.part[0] = second(p.part[1], q.part[1]);
  d.part[1] = second(r.part[1], s.part[1]);
#endif
}

#else

template <typename Each>
inline Lanes each_lane(Each&& each) {
  return {each(0), each(1), each(2), each(3)};
}
inline Lanes all(Real value) { return {value, value, value, value}; }
#define LAPJOINT_OPERATOR(name)                                \
  inline Lanes operator name(const Lanes& a, const Lanes& b) { \
    return each_lane([&](int i) { return a[i] name b[i]; });   \
  }
LAPJOINT_OPERATOR(+)
LAPJOINT_OPERATOR(-)
LAPJOINT_OPERATOR(*)
LAPJOINT_OPERATOR(/)
#undef LAPJOINT_OPERATOR
inline Lanes operator-(const Lanes& a) {
  return each_lane([&](int i) { return -a[i]; });
}
inline Lanes lesser(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a[i] < b[i] ? a[i] : b[i]; });
}
inline Lanes greater(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a[i] > b[i] ? a[i] : b[i]; });
}
inline Lanes where_positive(const Lanes& condition, const Lanes& yes, const Lanes& no) {
  return each_lane([&](int i) { return condition[i] > 0 ? yes[i] : no[i]; });
}
inline void transpose(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
  Lanes* rows[kLanes] = {&a, &b, &c, &d};
  for (int i = 0; i < kLanes; ++i)
    for (int k = 0; k < i; ++k) std::swap((*rows[i])[k], (*rows[k])[i]);
}

#endif

LAPJOINT_INLINE Lanes operator*(const Lanes& a, Real b) { return a * all(b); }
LAPJOINT_INLINE Lanes& operator+=(Lanes& a, const Lanes& b) { return a = a + b; }
LAPJOINT_INLINE Lanes& operator-=(Lanes& a, const Lanes& b) { return a = a - b; }
LAPJOINT_INLINE Lanes absolute(const Lanes& a) { return greater(a, -a); }
LAPJOINT_INLINE Lanes root(const Lanes& a) {
  return Lanes{std::sqrt(a[0]), std::sqrt(a[1]), std::sqrt(a[2]), std::sqrt(a[3])};
}
LAPJOINT_INLINE Real largest(const Lanes& a) { return std::max(std::max(a[0], a[1]), std::max(a[2], a[3])); }

// A vector in each lane.
struct Lanes3 {
  Lanes x, y, z;
};

LAPJOINT_INLINE Lanes3 operator+(const Lanes3& a, const Lanes3& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
LAPJOINT_INLINE Lanes3 operator-(const Lanes3& a, const Lanes3& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
LAPJOINT_INLINE Lanes3 operator*(const Lanes& a, const Lanes3& b) { return {a * b.x, a * b.y, a * b.z}; }
LAPJOINT_INLINE Lanes dot(const Lanes3& a, const Lanes3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
LAPJOINT_INLINE Lanes3 cross(const Lanes3& a, const Lanes3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
LAPJOINT_INLINE void add(const Lanes& factor, const Lanes3& a, Lanes3& out) {
  out.x += factor * a.x;
  out.y += factor * a.y;
  out.z += factor * a.z;
}

}  // namespace lapjoint
