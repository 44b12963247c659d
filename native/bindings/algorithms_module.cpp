// Registers the paper's algorithms with Python. Arrays in, arrays out; the Python front checks and allocates.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "balance.h"
#include "blend.h"
#include "detect.h"
#include "graph.h"
#include "membership.h"
#include "overlap.h"
#include "weights.h"

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

namespace {

using lapjoint::Graph;
using lapjoint::Membership;

Graph graph_view(const Input<int>& start, const Input<int>& neighbor) {
  return {static_cast<int>(start.shape(0)) - 1, start.data(), neighbor.data()};
}

Membership membership_view(const Output<std::uint64_t>& bits, const Output<std::int64_t>& load) {
  return {static_cast<int>(bits.shape(0)), static_cast<int>(bits.shape(1)), bits.data(), load.data()};
}

nb::ndarray<nb::numpy, int> to_array(std::vector<int>&& values) {
  auto* kept = new std::vector<int>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<int>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

}  // namespace

namespace {

nb::ndarray<nb::numpy, int> to_pairs(const std::vector<lapjoint::PairFinder::Pair>& pairs) {
  auto* kept = new std::vector<lapjoint::PairFinder::Pair>(pairs);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<lapjoint::PairFinder::Pair>*>(p); });
  return {kept->empty() ? nullptr : kept->front().data(), {kept->size(), 2}, owner};
}

}  // namespace

NB_MODULE(_algorithms, m) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.attr("max_workers") = 64 * lapjoint::kMaxWords;

  m.def(
      "build_graph",
      [](int body_count, Input<int> pairs) {
        lapjoint::GraphArrays arrays;
        {
          nb::gil_scoped_release unlocked;
          arrays = lapjoint::build_graph(body_count, pairs.data(), static_cast<int>(pairs.shape(0)));
        }
        return nb::make_tuple(to_array(std::move(arrays.start)), to_array(std::move(arrays.neighbor)),
                              to_array(std::move(arrays.edges)));
      },
      "body_count"_a, "pairs"_a);
  m.def(
      "assign_overlap",
      [](int growth_depth, Input<int> start, Input<int> neighbor, Output<std::uint64_t> bits,
         Output<std::int64_t> load) {
        Membership membership = membership_view(bits, load);
        lapjoint::assign_overlap(growth_depth, graph_view(start, neighbor), membership);
      },
      "growth_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), Unlocked());
  m.def(
      "balance",
      [](Input<int> contacts, int growth_depth, Input<int> start, Input<int> neighbor, Output<std::uint64_t> bits,
         Output<std::int64_t> load, int mode, Input<bool> jointed) {
        Membership membership = membership_view(bits, load);
        lapjoint::balance(contacts.data(), static_cast<int>(contacts.shape(0)), growth_depth,
                          graph_view(start, neighbor), membership, static_cast<lapjoint::Balance>(mode),
                          jointed.data());
      },
      "contacts"_a, "growth_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), "mode"_a,
      "jointed"_a, Unlocked());
  m.def(
      "compute_weights",
      [](int search_depth, Input<int> start, Input<int> neighbor, Output<std::uint64_t> bits, Output<std::int64_t> load,
         Input<int> overlap, Input<int> offset, Output<int> worker, Output<double> weight) {
        lapjoint::compute_weights(search_depth, graph_view(start, neighbor), membership_view(bits, load),
                                  overlap.data(), static_cast<int>(overlap.shape(0)), offset.data(), worker.data(),
                                  weight.data());
      },
      "search_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), "overlap"_a, "offset"_a,
      "worker"_a.noconvert(), "weight"_a.noconvert(), Unlocked());
  m.def(
      "depth_weights",
      [](int search_depth, Input<int> start, Input<int> neighbor, Output<std::uint64_t> bits, Output<std::int64_t> load,
         Input<int> overlap, Input<int> offset, Output<int> worker, Output<double> weight) {
        lapjoint::depth_weights(search_depth, graph_view(start, neighbor), membership_view(bits, load), overlap.data(),
                                static_cast<int>(overlap.shape(0)), offset.data(), worker.data(), weight.data());
      },
      "search_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), "overlap"_a, "offset"_a,
      "worker"_a.noconvert(), "weight"_a.noconvert(), Unlocked());
  m.def(
      "blend",
      [](Input<int> offset, Input<double> weight, Input<double> worker_states, Input<int> body, Output<double> states) {
        lapjoint::blend(static_cast<int>(body.shape(0)), offset.data(), weight.data(), worker_states.data(),
                        body.data(), states.data());
      },
      "offset"_a, "weight"_a, "worker_states"_a, "body"_a, "states"_a.noconvert(), Unlocked());

  nb::class_<lapjoint::PairFinder>(m, "PairFinder")
      // The arrays are read in place: they live as long as the finder, and the caller leaves them unchanged.
      .def(
          "__init__",
          [](lapjoint::PairFinder* self, Input<double> center, Input<double> half, Input<double> radius,
             Input<std::uint32_t> group, Input<std::uint32_t> mask, Input<std::int64_t> ignored, double margin) {
            lapjoint::BodyBounds bodies;
            bodies.body_count = static_cast<int>(half.shape(0));
            bodies.center = center.data();
            bodies.half = half.data();
            bodies.radius = radius.data();
            bodies.group = group.data();
            bodies.mask = mask.data();
            bodies.ignored = ignored.data();
            bodies.ignored_count = static_cast<int>(ignored.shape(0));
            new (self) lapjoint::PairFinder(bodies, margin);
          },
          "center"_a, "half"_a, "radius"_a, "group"_a, "mask"_a, "ignored"_a, "margin"_a, nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
          nb::keep_alive<1, 7>())
      .def(
          "find",
          [](lapjoint::PairFinder& finder, Input<double> states, Output<std::uint64_t> bits,
             Output<std::int64_t> load) {
            std::vector<lapjoint::PairFinder::Pair> found;
            {
              nb::gil_scoped_release unlocked;
              found = finder.find(states.data(), membership_view(bits, load));
            }
            return to_pairs(found);
          },
          "states"_a, "bits"_a.noconvert(), "load"_a.noconvert())
      .def(
          "find_again",
          [](const lapjoint::PairFinder& finder, Input<int> changed, Output<std::uint64_t> bits,
             Output<std::int64_t> load) {
            return to_pairs(
                finder.find_again(changed.data(), static_cast<int>(changed.shape(0)), membership_view(bits, load)));
          },
          "changed"_a, "bits"_a.noconvert(), "load"_a.noconvert());
}
