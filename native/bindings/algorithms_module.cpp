// Registers the paper's algorithms with Python. Arrays in, arrays out; the Python front checks and allocates.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "balance.h"
#include "blend.h"
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
         Output<std::int64_t> load, int mode) {
        Membership membership = membership_view(bits, load);
        lapjoint::balance(contacts.data(), static_cast<int>(contacts.shape(0)), growth_depth,
                          graph_view(start, neighbor), membership, static_cast<lapjoint::Balance>(mode));
      },
      "contacts"_a, "growth_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), "mode"_a,
      Unlocked());
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
      "blend",
      [](Input<int> offset, Input<double> weight, Input<double> worker_states, Input<int> body,
         Output<double> states) {
        lapjoint::blend(static_cast<int>(body.shape(0)), offset.data(), weight.data(), worker_states.data(),
                        body.data(), states.data());
      },
      "offset"_a, "weight"_a, "worker_states"_a, "body"_a, "states"_a.noconvert(), Unlocked());
}
