// Registers the paper's algorithms, and those of tight coupling, with Python. Arrays in, arrays out; the Python front
// checks and allocates.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "algorithms/balance.h"
#include "algorithms/blend.h"
#include "algorithms/command_lists.h"
#include "algorithms/detect.h"
#include "algorithms/graph.h"
#include "algorithms/membership.h"
#include "algorithms/overlap.h"
#include "algorithms/weights.h"
#include "solver/block_cholesky.h"

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

namespace {

using lapjoint::Graph;
using lapjoint::Membership;

// What comes from Python may come from a file: it is checked here, once, and relied on behind.
void expect(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

void expect_ids(const Input<int>& ids, int low, int high, const char* otherwise) {
  const int* begin = ids.data();
  expect(std::all_of(begin, begin + ids.size(), [=](int id) { return low <= id && id < high; }), otherwise);
}

Graph graph_view(const Input<int>& start, const Input<int>& neighbor) {
  expect(start.size() > 0, "a graph without a first row");
  return {static_cast<int>(start.shape(0)) - 1, start.data(), neighbor.data()};
}

using Bits = Output<std::uint64_t>;

// To read only.
Membership membership_view(const Bits& bits) {
  expect(bits.ndim() == 2 && bits.shape(1) <= lapjoint::kMaxWords, "membership bits of a wrong shape");
  return {static_cast<int>(bits.shape(0)), static_cast<int>(bits.shape(1)), bits.data()};
}

// No bit stands for a worker that is not there.
template <typename Array>
void expect_workers(const Array& bits, int worker_count) {
  const std::size_t words = bits.shape(1), last = static_cast<std::size_t>(worker_count) / 64;
  expect(worker_count >= 0 && static_cast<std::size_t>(worker_count) <= 64 * words, "too few bits for all workers");
  std::uint64_t beyond = 0;
  for (std::size_t word = last; word < words; ++word) {
    const std::uint64_t mask = word == last ? ~std::uint64_t{0} << (worker_count % 64) : ~std::uint64_t{0};
    for (std::size_t body = 0; body < bits.shape(0); ++body) beyond |= bits.data()[body * words + word] & mask;
  }
  expect(beyond == 0, "membership bits of workers that do not exist");
}

Membership membership_view(const Bits& bits, const Output<std::int64_t>& load, const Input<std::int64_t>& rate,
                           const Input<std::int64_t>& cost) {
  Membership membership = membership_view(bits);
  expect(rate.size() == load.size(), "loads and rates of different numbers of workers");
  expect(cost.size() == bits.shape(0), "costs of a different number of bodies");
  expect_workers(bits, static_cast<int>(load.size()));
  membership.load = load.data();
  membership.rate = rate.data();
  membership.cost = cost.data();
  return membership;
}

// The rows of overlap bodies, in each of their workers.
void expect_rows(const Membership& membership, const Input<int>& overlap, const Input<int>& offset, std::size_t rows) {
  expect(offset.size() == overlap.size() + 1, "offsets of a different number of bodies");
  expect_ids(overlap, 0, membership.body_count, "overlap bodies that do not exist");
  for (std::size_t i = 0; i < overlap.size(); ++i) {
    const lapjoint::Workers workers(membership.row(overlap.data()[i]), membership.words);
    expect(offset.data()[i + 1] - offset.data()[i] == workers.count(), "offsets of other workers");
  }
  expect(offset.data()[0] == 0 && static_cast<std::size_t>(offset.data()[overlap.size()]) == rows,
         "offsets that do not end with the rows");
}

template <typename T>
nb::capsule owner_of(std::vector<T>* kept) {
  return {kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); }};
}

nb::ndarray<nb::numpy, int> to_array(std::vector<int>&& values) {
  auto* kept = new std::vector<int>(std::move(values));
  return {kept->data(), {kept->size()}, owner_of(kept)};
}

nb::ndarray<nb::numpy, int> to_pairs(std::vector<int>&& values) {
  auto* kept = new std::vector<int>(std::move(values));
  return {kept->data(), {kept->size() / 2, 2}, owner_of(kept)};
}

nb::ndarray<nb::numpy, int> to_pairs(std::vector<lapjoint::PairFinder::Pair>&& pairs) {
  auto* kept = new std::vector<lapjoint::PairFinder::Pair>(std::move(pairs));
  return {kept->empty() ? nullptr : kept->front().data(), {kept->size(), 2}, owner_of(kept)};
}

}  // namespace

NB_MODULE(_algorithms, m) {
  nb::set_leak_warnings(false);  // what an interpreter keeps until its end is no leak
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.attr("max_workers") = 64 * lapjoint::kMaxWords;

  m.def(
      "build_graph",
      [](int body_count, Input<int> joints, const std::vector<Input<int>>& contacts) {
        lapjoint::GraphArrays arrays;
        std::vector<std::span<const int>> lists;
        for (const auto& list : contacts) {
          expect(list.size() % 2 == 0, "contacts that are no pairs");
          lists.emplace_back(list.data(), list.size());
        }
        {
          nb::gil_scoped_release unlocked;
          arrays = lapjoint::build_graph(body_count, {joints.data(), joints.size()}, lists);
        }
        return nb::make_tuple(to_array(std::move(arrays.start)), to_array(std::move(arrays.neighbor)),
                              to_pairs(std::move(arrays.edges)), to_pairs(std::move(arrays.contacts)));
      },
      "body_count"_a, "joints"_a, "contacts"_a);
  m.def(
      "assign_overlap",
      [](int growth_depth, Input<int> start, Input<int> neighbor, Bits bits, Output<std::int64_t> load,
         Input<std::int64_t> rate, Input<std::int64_t> cost) {
        Membership membership = membership_view(bits, load, rate, cost);
        expect(start.size() == bits.shape(0) + 1, "a graph of a different number of bodies");
        lapjoint::assign_overlap(growth_depth, graph_view(start, neighbor), membership);
      },
      "growth_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), "rate"_a, "cost"_a,
      Unlocked());
  m.def(
      "balance",
      [](Input<int> contacts, int growth_depth, Input<int> start, Input<int> neighbor, Bits bits,
         Output<std::int64_t> load, Input<std::int64_t> rate, Input<std::int64_t> cost, int mode, Input<bool> jointed,
         int linger, Output<int> must_wait, Output<int> since_left) {
        Membership membership = membership_view(bits, load, rate, cost);
        const std::size_t bodies = bits.shape(0);
        expect(start.size() == bodies + 1 && jointed.size() == bodies && must_wait.size() == bodies &&
                   since_left.size() == bodies,
               "a graph, or times, of a different number of bodies");
        expect_ids(contacts, -1 << 30, membership.body_count, "contacts of bodies that do not exist");
        const lapjoint::BalanceRules rules{growth_depth,     static_cast<lapjoint::Balance>(mode),
                                           jointed.data(),   linger,
                                           must_wait.data(), since_left.data()};
        std::vector<int> left;
        {
          nb::gil_scoped_release unlocked;
          left = lapjoint::balance(contacts.data(), static_cast<int>(contacts.shape(0)), graph_view(start, neighbor),
                                   membership, rules);
        }
        return to_array(std::move(left));
      },
      "contacts"_a, "growth_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "load"_a.noconvert(), "rate"_a,
      "cost"_a, "mode"_a, "jointed"_a, "linger"_a, "must_wait"_a.noconvert(), "since_left"_a.noconvert());
  m.def(
      "compute_weights",
      [](int search_depth, Input<int> start, Input<int> neighbor, Bits bits, Input<int> overlap, Input<int> offset,
         Output<int> worker, Output<double> weight) {
        const Membership membership = membership_view(bits);
        expect(start.size() == bits.shape(0) + 1, "a graph of a different number of bodies");
        expect(worker.size() == weight.size(), "workers and weights of different numbers");
        expect_rows(membership, overlap, offset, worker.size());
        lapjoint::compute_weights(search_depth, graph_view(start, neighbor), membership, overlap.data(),
                                  static_cast<int>(overlap.shape(0)), offset.data(), worker.data(), weight.data());
      },
      "search_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "overlap"_a, "offset"_a, "worker"_a.noconvert(),
      "weight"_a.noconvert(), Unlocked());
  m.def(
      "depth_weights",
      [](int search_depth, Input<int> start, Input<int> neighbor, Bits bits, Input<int> overlap, Input<int> offset,
         Output<int> worker, Output<double> weight) {
        const Membership membership = membership_view(bits);
        expect(start.size() == bits.shape(0) + 1, "a graph of a different number of bodies");
        expect(worker.size() == weight.size(), "workers and weights of different numbers");
        expect_rows(membership, overlap, offset, worker.size());
        lapjoint::depth_weights(search_depth, graph_view(start, neighbor), membership, overlap.data(),
                                static_cast<int>(overlap.shape(0)), offset.data(), worker.data(), weight.data());
      },
      "search_depth"_a, "start"_a, "neighbor"_a, "bits"_a.noconvert(), "overlap"_a, "offset"_a, "worker"_a.noconvert(),
      "weight"_a.noconvert(), Unlocked());
  m.def(
      "command_lists",
      [](Bits bits, Input<std::uint64_t> known, int worker_count, Input<int> reset, Input<int> worker) {
        const Membership membership = membership_view(bits);
        expect(known.ndim() == 2 && known.shape(0) == bits.shape(0) && known.shape(1) == bits.shape(1),
               "bits of a different number of bodies or workers");
        expect_workers(bits, worker_count);
        expect_workers(known, worker_count);
        expect_ids(reset, 0, membership.body_count, "bodies to set that do not exist");
        expect_ids(worker, 0, worker_count, "rows of workers that do not exist");
        const auto lists =
            lapjoint::command_lists(membership, known.data(), worker_count, reset.data(),
                                    static_cast<int>(reset.shape(0)), worker.data(), static_cast<int>(worker.shape(0)));
        nb::list out;
        for (const lapjoint::ByWorker* list : {&lists.activate, &lists.deactivate, &lists.reset, &lists.slot})
          out.append(nb::make_tuple(to_array(std::vector(list->start)), to_array(std::vector(list->value))));
        return out;
      },
      "bits"_a.noconvert(), "known"_a.noconvert(), "worker_count"_a, "reset"_a, "worker"_a);
  m.def(
      "blend",
      [](Input<int> offset, Input<double> weight, Input<double> worker_states, Input<int> body, Output<double> states) {
        expect(offset.size() == body.size() + 1, "offsets of a different number of bodies");
        expect_ids(body, 0, static_cast<int>(states.shape(0)), "bodies to blend that do not exist");
        const int rows = static_cast<int>(std::min<std::size_t>(weight.size(), worker_states.shape(0)));
        expect(std::is_sorted(offset.data(), offset.data() + offset.size()) && offset.data()[0] >= 0 &&
                   offset.data()[body.size()] <= rows,
               "offsets beyond the rows");
        lapjoint::blend(static_cast<int>(body.shape(0)), offset.data(), weight.data(), worker_states.data(),
                        body.data(), states.data());
      },
      "offset"_a, "weight"_a, "worker_states"_a, "body"_a, "states"_a.noconvert(), Unlocked());

  nb::class_<lapjoint::PairFinder>(m, "PairFinder")
      // The arrays are read in place: they live as long as the finder, and the caller leaves them unchanged.
      .def(
          "__init__",
          [](lapjoint::PairFinder* self, Input<double> center, Input<double> half, Input<double> radius,
             Input<double> thickness, Input<std::uint32_t> group, Input<std::uint32_t> mask,
             Input<std::int64_t> ignored, double margin, double timestep, double fall) {
            lapjoint::BodyBounds bodies;
            bodies.body_count = static_cast<int>(half.shape(0));
            bodies.center = center.data();
            bodies.half = half.data();
            bodies.radius = radius.data();
            bodies.thickness = thickness.data();
            bodies.group = group.data();
            bodies.mask = mask.data();
            bodies.ignored = ignored.data();
            bodies.ignored_count = static_cast<int>(ignored.shape(0));
            new (self) lapjoint::PairFinder(bodies, margin, timestep, fall);
          },
          "center"_a, "half"_a, "radius"_a, "thickness"_a, "group"_a, "mask"_a, "ignored"_a, "margin"_a, "timestep"_a,
          "fall"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
          nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>())
      .def(
          "find",
          [](lapjoint::PairFinder& finder, Input<double> states, Bits bits) {
            std::vector<lapjoint::PairFinder::Pair> found;
            expect(states.shape(0) == bits.shape(0), "states of a different number of bodies");
            {
              nb::gil_scoped_release unlocked;
              found = finder.find(states.data(), membership_view(bits));
            }
            return to_pairs(std::move(found));
          },
          "states"_a, "bits"_a.noconvert())
      .def(
          "find_again",
          [](lapjoint::PairFinder& finder, Input<int> changed, Bits bits) {
            return to_pairs(
                finder.find_again(changed.data(), static_cast<int>(changed.shape(0)), membership_view(bits)));
          },
          "changed"_a, "bits"_a.noconvert())
      .def(
          "prepare", [](lapjoint::PairFinder& finder, Bits bits) { finder.prepare(membership_view(bits)); },
          "bits"_a.noconvert(), Unlocked())
      .def(
          "keep_apart",
          [](lapjoint::PairFinder& finder, Input<double> gaps) {
            finder.keep_apart(gaps.data(), static_cast<int>(gaps.shape(0)));
          },
          "gaps"_a);

  // ---- structures of joints ----

  // Whether it is little work to solve a structure at once: so many bodies, pairs of them with joints, rows of joints.
  m.def(
      "structure_fits",
      [](int body_count, const std::vector<std::pair<int, int>>& pairs, long row_count) {
        using Blocks = lapjoint::BlockCholesky;
        return Blocks().analyse(std::vector<char>(body_count, 0), pairs, Blocks::little_work(row_count));
      },
      "body_count"_a, "pairs"_a, "row_count"_a);

  // Factors a matrix of blocks, solves in place, and writes what is left for the kept rows; false if it is not positive
  // definite, or takes more products of blocks than the limit. `matrix` and `left` are dense, `left` of the kept rows
  // in ascending order.
  m.def(
      "solve_blocks",
      [](const std::vector<int>& kept, const std::vector<std::pair<int, int>>& pairs, Input<double> matrix,
         Output<double> values, Output<double> left, long limit) {
        constexpr int side = lapjoint::BlockCholesky::kSide;
        const int count = static_cast<int>(kept.size()), width = side * count;
        lapjoint::BlockCholesky blocks;
        if (!blocks.analyse(std::vector<char>(kept.begin(), kept.end()), pairs, limit)) return false;
        blocks.clear();
        const auto fill = [&](int row, int column) {
          double* out = blocks.block(row, column);
          for (int i = 0; i < side; ++i)
            for (int k = 0; k < side; ++k)
              out[side * i + k] = matrix.data()[(side * row + i) * width + side * column + k];
        };
        for (int row = 0; row < count; ++row) fill(row, row);
        for (const auto& [a, b] : pairs) blocks.stored(a, b) ? fill(a, b) : fill(b, a);
        if (!blocks.factor()) return false;
        blocks.solve_one(values.data());
        std::vector<int> place(count, 0);
        int last = 0;
        for (int row = 0; row < count; ++row)
          if (kept[row]) place[row] = last++;
        const int left_width = side * last;
        blocks.each_kept([&](int a, int b, const double* block) {
          for (int i = 0; i < side; ++i)
            for (int k = 0; k < side; ++k) {
              left.data()[(side * place[a] + i) * left_width + side * place[b] + k] = block[side * i + k];
              left.data()[(side * place[b] + k) * left_width + side * place[a] + i] = block[side * i + k];
            }
        });
        return true;
      },
      "kept"_a, "pairs"_a, "matrix"_a, "values"_a.noconvert(), "left"_a.noconvert(), "limit"_a = 1L << 40);
}
