// What the files of this module share: arrays in and out, and what each file registers.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bullet/world.h"

namespace lapjoint::bindings {

namespace nb = nanobind;
using namespace nb::literals;

using World = nb::class_<BulletWorld>;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

template <typename T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

inline int rows(const Input<int>& ids) { return static_cast<int>(ids.shape(0)); }

// Things that are made of doubles alone, as rows of these.
template <typename T>
nb::ndarray<nb::numpy, double, nb::ndim<2>> table_of(const std::vector<T>& from) {
  constexpr std::size_t columns = sizeof(T) / sizeof(double);
  auto* rows = new double[columns * from.size()];
  nb::capsule owner(rows, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  if (!from.empty()) std::memcpy(rows, from.data(), sizeof(T) * from.size());
  return nb::ndarray<nb::numpy, double, nb::ndim<2>>(rows, {from.size(), columns}, owner);
}

inline nb::ndarray<nb::numpy, int, nb::ndim<1>> array_of(const std::vector<int>& from) {
  auto* numbers = new int[from.size()];
  nb::capsule owner(numbers, [](void* p) noexcept { delete[] static_cast<int*>(p); });
  std::copy(from.begin(), from.end(), numbers);
  return nb::ndarray<nb::numpy, int, nb::ndim<1>>(numbers, {from.size()}, owner);
}

void bind_exchange(nb::module_& m);
void bind_settings(nb::module_& m);

// The world's methods, in parts; a stub has them in this order.
void bind_bodies(World& world);
void bind_fields(World& world);
void bind_steps(World& world);
void bind_state(World& world);
void bind_joints(World& world);
void bind_readings(World& world);
void bind_sensors(World& world);

}  // namespace lapjoint::bindings
