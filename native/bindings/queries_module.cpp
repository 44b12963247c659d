// Registers what is asked about a scene with Python. Arrays in, arrays out; the Python front checks and allocates.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "queries/body_tree.h"
#include "queries/sensors.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lapjoint::queries;

template <typename T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

namespace {

void expect(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

template <typename T>
nb::ndarray<nb::numpy, T> to_array(std::vector<T>&& values, std::size_t columns) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (columns == 1) return {kept->data(), {kept->size()}, owner};
  return {kept->data(), {kept->size() / columns, columns}, owner};
}

std::shared_ptr<const Shape> make_shape(int kind, Input<double> size, Input<double> points, Input<int> triangles,
                                        const std::vector<std::shared_ptr<const Shape>>& parts, Input<double> places) {
  const auto share = [](Shape&& shape) { return std::make_shared<const Shape>(std::move(shape)); };
  expect(size.size() == 3, "sizes of a shape that are not three");
  const double* s = size.data();
  const int count = static_cast<int>(points.size() / 3);
  switch (kind) {
    case Shape::kSphere:
      return share(Shape::sphere(s[0]));
    case Shape::kBox:
      return share(Shape::cuboid(vector(s)));
    case Shape::kCapsule:
      return share(Shape::capsule(s[0], s[1]));
    case Shape::kCylinder:
      return share(Shape::cylinder(s[0], s[1]));
    case Shape::kEllipsoid:
      return share(Shape::ellipsoid(vector(s)));
    case Shape::kCone:
      return share(Shape::cone(s[0], s[1]));
    case Shape::kHull:
      expect(count >= 4, "a hull of fewer than four points");
      return share(Shape::hull(points.data(), count));
    case Shape::kPlane:
      return share(Shape::plane());
    case Shape::kMesh:
      for (std::size_t i = 0; i < triangles.size(); ++i)
        expect(triangles.data()[i] >= 0 && triangles.data()[i] < count, "a triangle of vertices that do not exist");
      return share(Shape::mesh(points.data(), triangles.data(), static_cast<int>(triangles.size() / 3)));
    case Shape::kCompound: {
      expect(!parts.empty() && places.size() == 7 * parts.size(), "parts without places");
      std::vector<Shape::Part> placed;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        expect(parts[i] && parts[i]->is_convex(), "a part that is not convex");
        placed.push_back({parts[i], Place::of(places.data() + 7 * i)});
      }
      return share(Shape::compound(std::move(placed)));
    }
    default:
      throw std::invalid_argument("a shape of an unknown kind");
  }
}

}  // namespace

NB_MODULE(_queries, m) {
  nb::set_leak_warnings(false);
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.attr("none") = kNone;

  nb::class_<Shape>(m, "Shape");
  m.def("make_shape", &make_shape, "kind"_a, "size"_a, "points"_a, "triangles"_a, "parts"_a, "places"_a);

  nb::class_<BodyTree>(m, "BodyTree")
      .def(nb::init<>())
      .def(
          "add_shape",
          [](BodyTree& tree, std::shared_ptr<const Shape> shape) {
            expect(shape != nullptr, "no shape");
            return tree.add_shape(std::move(shape));
          },
          "shape"_a)
      .def(
          "set_bodies",
          [](BodyTree& tree, Input<int> numbers, Input<int> rows, Input<double> places, Input<int> shape_id,
             Input<std::uint32_t> group) {
            expect(places.ndim() == 2 && places.shape(1) >= 7, "places of a wrong shape");
            const auto table = static_cast<int>(std::min({places.shape(0), shape_id.shape(0), group.shape(0)}));
            expect(numbers.size() == rows.size(), "numbers and rows of different bodies");
            for (std::size_t i = 0; i < rows.size(); ++i) {
              const int row = rows.data()[i];
              expect(row >= 0 && row < table, "rows that no table has");
              expect(shape_id.data()[row] >= 0 && shape_id.data()[row] < tree.shape_count(), "an unknown shape");
            }
            tree.set_bodies(static_cast<int>(rows.size()), numbers.data(), rows.data(), places.data(),
                            static_cast<int>(places.shape(1)), shape_id.data(), group.data());
          },
          "numbers"_a, "rows"_a, "places"_a, "shape_id"_a, "group"_a, Unlocked())
      .def_prop_ro("body_count", &BodyTree::body_count)
      .def(
          "bounds",
          [](const BodyTree& tree, Output<double> out) {
            expect(out.size() == 6, "bounds of a wrong shape");
            const Box box = tree.bounds();
            for (int k = 0; k < 3; ++k) {
              out.data()[k] = tree.is_bounded() ? box.low[k] : -kInfinity;
              out.data()[3 + k] = tree.is_bounded() ? box.high[k] : kInfinity;
            }
          },
          "out"_a.noconvert())
      .def(
          "cast_closest",
          [](const BodyTree& tree, Input<double> origins, Input<double> directions, Input<double> reach,
             std::uint32_t mask, Output<int> body, Output<double> distance, Output<double> normal) {
            const std::size_t n = reach.size();
            expect(origins.size() == 3 * n && directions.size() == 3 * n && body.size() == n && distance.size() == n &&
                       normal.size() == 3 * n,
                   "arrays of different numbers of rays");
            tree.cast_closest(static_cast<int>(n), origins.data(), directions.data(), reach.data(), mask, body.data(),
                              distance.data(), normal.data());
          },
          "origins"_a, "directions"_a, "reach"_a, "mask"_a, "body"_a.noconvert(), "distance"_a.noconvert(),
          "normal"_a.noconvert(), Unlocked())
      .def(
          "cast_all",
          [](const BodyTree& tree, Input<double> origins, Input<double> directions, Input<double> reach,
             std::uint32_t mask) {
            const std::size_t n = reach.size();
            expect(origins.size() == 3 * n && directions.size() == 3 * n, "arrays of different numbers of rays");
            RayHits hits;
            {
              nb::gil_scoped_release unlocked;
              hits = tree.cast_all(static_cast<int>(n), origins.data(), directions.data(), reach.data(), mask);
            }
            return std::make_tuple(to_array(std::move(hits.ray), 1), to_array(std::move(hits.body), 1),
                                   to_array(std::move(hits.distance), 1), to_array(std::move(hits.normal), 3));
          },
          "origins"_a, "directions"_a, "reach"_a, "mask"_a)
      .def(
          "overlapping",
          [](const BodyTree& tree, std::shared_ptr<const Shape> shape, Input<double> places, std::uint32_t mask) {
            expect(shape && (shape->is_convex() || shape->kind == Shape::kCompound),
                   "a shape that cannot be asked with");
            expect(places.size() % 7 == 0, "places of a wrong shape");
            std::vector<int> pairs;
            {
              nb::gil_scoped_release unlocked;
              pairs = tree.overlapping(*shape, static_cast<int>(places.size() / 7), places.data(), mask);
            }
            return to_array(std::move(pairs), 2);
          },
          "shape"_a, "places"_a, "mask"_a)
      .def(
          "nearest_bodies",
          [](const BodyTree& tree, Input<double> points, Input<double> reach, std::uint32_t mask, Output<int> body,
             Output<double> distance, Output<double> point, Output<double> normal) {
            const std::size_t n = reach.size();
            expect(points.size() == 3 * n && body.size() == n && distance.size() == n && point.size() == 3 * n &&
                       normal.size() == 3 * n,
                   "arrays of different numbers of points");
            tree.nearest_bodies(static_cast<int>(n), points.data(), reach.data(), mask, body.data(), distance.data(),
                                point.data(), normal.data());
          },
          "points"_a, "reach"_a, "mask"_a, "body"_a.noconvert(), "distance"_a.noconvert(), "point"_a.noconvert(),
          "normal"_a.noconvert(), Unlocked());

  nb::class_<Sensors>(m, "Sensors")
      .def(nb::init<>())
      .def(
          "add",
          [](Sensors& sensors, std::shared_ptr<const Shape> shape, Input<double> place, std::uint32_t mask, int on) {
            expect(shape && shape->kind != Shape::kMesh && place.size() == 7, "a sensor of a wrong shape");
            return sensors.add(std::move(shape), place.data(), mask, on);
          },
          "shape"_a, "place"_a, "mask"_a, "on"_a)
      // What these sensors are on is here, or gone.
      .def(
          "move",
          [](Sensors& sensors, Input<int> ids, Input<double> bases, Input<bool> is_there) {
            expect(bases.size() == 7 * ids.size() && is_there.size() == ids.size(), "arrays of different sensors");
            for (std::size_t i = 0; i < ids.size(); ++i) {
              expect(ids.data()[i] >= 0 && ids.data()[i] < sensors.count(), "a sensor that does not exist");
              sensors.move(ids.data()[i], is_there.data()[i] ? bases.data() + 7 * i : nullptr);
            }
          },
          "ids"_a, "bases"_a, "is_there"_a)
      // Pairs of a sensor and a body that is inside, ascending. The tree has the shapes.
      .def(
          "inside",
          [](Sensors& sensors, const BodyTree& tree, Input<int> bodies, Input<double> states, Input<int> shape_id,
             Input<std::uint32_t> group) {
            expect(states.ndim() == 2 && states.shape(1) >= 7, "states of a wrong shape");
            const auto table = static_cast<int>(std::min({states.shape(0), shape_id.shape(0), group.shape(0)}));
            std::vector<Sensors::Pair> found;
            {
              nb::gil_scoped_release unlocked;
              for (std::size_t i = 0; i < bodies.size(); ++i) {
                const int body = bodies.data()[i];
                expect(body >= 0 && body < table, "bodies that no table has");
                const int shape = shape_id.data()[body];
                expect(shape >= 0 && shape < tree.shape_count(), "an unknown shape");
                sensors.look(body, group.data()[body], *tree.shape(shape),
                             states.data() + static_cast<std::size_t>(body) * states.shape(1), found);
              }
              std::sort(found.begin(), found.end());
            }
            std::vector<int> pairs;
            for (const auto& pair : found) pairs.insert(pairs.end(), pair.begin(), pair.end());
            return to_array(std::move(pairs), 2);
          },
          "tree"_a, "bodies"_a, "states"_a, "shape_id"_a, "group"_a);

  // Which of all rays come near a box of each worker: the front sends a worker no others.
  m.def(
      "rays_meet",
      [](Input<double> origins, Input<double> directions, Input<double> reach, Input<double> box, Output<bool> meets) {
        const std::size_t n = reach.size();
        expect(origins.size() == 3 * n && directions.size() == 3 * n && meets.size() == n && box.size() == 6,
               "arrays of different numbers of rays");
        const Box around{vector(box.data()), vector(box.data() + 3)};
        double enter;
        for (std::size_t i = 0; i < n; ++i)
          meets.data()[i] =
              around.low.x <= around.high.x && Ray(vector(origins.data() + 3 * i), vector(directions.data() + 3 * i))
                                                   .meets(around, reach.data()[i], enter);
      },
      "origins"_a, "directions"_a, "reach"_a, "box"_a, "meets"_a.noconvert(), Unlocked());
}
