// Registers the measures with Python. Arrays in, arrays out; the Python front checks and allocates.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "measures/measures.h"
#include "measures/state_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

NB_MODULE(_measures, m) {
  nb::set_leak_warnings(false);  // what an interpreter keeps until its end is no leak
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def(
      "joint_gaps",
      [](Input<double> states, Input<int> joint_ids, Input<int> body_a, Input<int> body_b, Input<double> frame_a,
         Input<double> frame_b, Input<double> lower, Input<double> upper, Input<double> spring_stiffness,
         Output<double> gaps) {
        const lapjoint::JointTable joints{body_a.data(), body_b.data(), frame_a.data(),         frame_b.data(),
                                          lower.data(),  upper.data(),  spring_stiffness.data()};
        lapjoint::joint_gaps(states.data(), joints, static_cast<int>(joint_ids.shape(0)), joint_ids.data(),
                             gaps.data());
      },
      "states"_a, "joint_ids"_a, "body_a"_a, "body_b"_a, "frame_a"_a, "frame_b"_a, "lower"_a, "upper"_a,
      "spring_stiffness"_a, "gaps"_a.noconvert(), Unlocked());
  m.def(
      "motion",
      [](Input<double> states, Input<double> mass, Input<double> inertia, Output<double> sums) {
        lapjoint::motion(static_cast<int>(mass.shape(0)), states.data(), mass.data(), inertia.data(), sums.data());
      },
      "states"_a, "mass"_a, "inertia"_a, "sums"_a.noconvert(), Unlocked());
  m.def(
      "copy_rows",
      [](Input<double> source, Output<double> target, Input<int> rows) {
        lapjoint::copy_rows(source.data(), target.data(), static_cast<int>(source.shape(1)), rows.data(), rows.size());
      },
      "source"_a.noconvert(), "target"_a.noconvert(), "rows"_a, Unlocked());
  m.def(
      "find_not_finite",
      [](Input<double> table, Input<int> rows) {
        nb::gil_scoped_release unlocked;
        return lapjoint::find_not_finite(table.data(), static_cast<int>(table.shape(1)), rows.data(), rows.size());
      },
      "table"_a.noconvert(), "rows"_a);
}
