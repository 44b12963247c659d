// Registers what a world is made of: tables, static and kinematic bodies, bodies in and out, fields.
#include "bindings/bullet.h"

namespace lapjoint::bindings {

namespace {

// From position and quaternion.
Place place_of(const double* row) {
  Place place;
  std::copy(row, row + 3, place.position);
  std::copy(row + 3, row + 7, place.quaternion);
  return place;
}

template <typename T>
const T* column(const nb::dict& table, const char* name) {
  return nb::cast<Input<T>>(table[name], false).data();
}

BodyColumns body_columns(const nb::dict& table, int count) {
  BodyColumns c;
  c.count = count;
  c.shape_id = column<int>(table, "shape_id");
  c.mass = column<double>(table, "mass");
  c.inertia = column<double>(table, "inertia");
  c.friction = column<double>(table, "friction");
  c.restitution = column<double>(table, "restitution");
  c.rolling_friction = column<double>(table, "rolling_friction");
  c.linear_damping = column<double>(table, "linear_damping");
  c.angular_damping = column<double>(table, "angular_damping");
  c.group = column<std::uint32_t>(table, "group");
  c.mask = column<std::uint32_t>(table, "mask");
  c.hit_impulse = column<double>(table, "hit_impulse");
  c.touches = {column<double>(table, "hit_speed"), column<bool>(table, "touch_events")};
  c.friction_combine = column<std::uint8_t>(table, "friction_combine");
  c.restitution_combine = column<std::uint8_t>(table, "restitution_combine");
  return c;
}

JointColumns joint_columns(const nb::dict& table, int count) {
  JointColumns c;
  c.count = count;
  c.kind = column<int>(table, "kind");
  c.body_a = column<int>(table, "body_a");
  c.body_b = column<int>(table, "body_b");
  c.frame_a = column<double>(table, "frame_a");
  c.frame_b = column<double>(table, "frame_b");
  c.lower = column<double>(table, "lower");
  c.upper = column<double>(table, "upper");
  c.motor_velocity = column<double>(table, "motor_velocity");
  c.motor_max_force = column<double>(table, "motor_max_force");
  c.spring_stiffness = column<double>(table, "spring_stiffness");
  c.spring_damping = column<double>(table, "spring_damping");
  c.spring_rest = column<double>(table, "spring_rest");
  c.drive_position = column<double>(table, "drive_position");
  c.drive_velocity = column<double>(table, "drive_velocity");
  c.drive_stiffness = column<double>(table, "drive_stiffness");
  c.drive_damping = column<double>(table, "drive_damping");
  c.drive_max_force = column<double>(table, "drive_max_force");
  c.friction = column<double>(table, "friction");
  c.gear_ratio = column<double>(table, "gear_ratio");
  c.collide = column<bool>(table, "collide");
  c.break_force = column<double>(table, "break_force");
  c.break_torque = column<double>(table, "break_torque");
  c.bonds = {column<double>(table, "bond_stiffness"),    column<bool>(table, "bond_is_elastic"),
             column<double>(table, "bond_damping_time"), column<double>(table, "bond_section"),
             column<double>(table, "bond_reach"),        column<double>(table, "bond_strength"),
             column<double>(table, "bond_load_time")};
  return c;
}

}  // namespace

void bind_bodies(World& world) {
  world
      // The tables are read in place, and kept until others are set or the world is gone.
      .def(
          "set_tables",
          [](BulletWorld& w, const nb::dict& bodies, int body_count, const nb::dict& joints, int joint_count) {
            auto kept = std::make_shared<std::pair<nb::dict, nb::dict>>(bodies, joints);
            w.set_tables(body_columns(bodies, body_count), joint_columns(joints, joint_count), std::move(kept));
          },
          "bodies"_a, "body_count"_a, "joints"_a, "joint_count"_a)
      .def("define_shape", &BulletWorld::define_shape, "definition"_a)
      .def(
          "ignore_pairs",
          [](BulletWorld& w, Input<int> pairs) {
            for (std::size_t i = 0; i < pairs.shape(0); ++i)
              w.ignore_pair(pairs.data()[2 * i], pairs.data()[2 * i + 1]);
          },
          "pairs"_a)
      .def(
          "add_static",
          [](BulletWorld& w, int shape_id, const std::array<double, 7>& place, double friction, double restitution,
             double rolling_friction, std::uint32_t group, std::uint32_t mask, std::uint8_t friction_combine,
             std::uint8_t restitution_combine) {
            StaticBody item{shape_id, {},   friction,         restitution,        rolling_friction,
                            group,    mask, friction_combine, restitution_combine};
            std::copy(place.begin(), place.end(), item.place);
            w.add_static(item);
          },
          "shape_id"_a, "place"_a, "friction"_a, "restitution"_a, "rolling_friction"_a, "group"_a, "mask"_a,
          "friction_combine"_a, "restitution_combine"_a)
      // Kinematic bodies, by their numbers as static ones. Places are rows of position and quaternion.
      .def(
          "set_motion",
          [](BulletWorld& w, int number, int kind, std::int64_t start, const std::array<double, 7>& base,
             Input<double> values) {
            GivenMotion motion{kind, start, place_of(base.data()), {values.data(), values.data() + values.size()}};
            w.set_motion(number, std::move(motion));
          },
          "number"_a, "kind"_a, "start"_a, "base"_a, "values"_a)
      .def("set_surface_velocity", &BulletWorld::set_surface_velocity, "number"_a, "velocity"_a)
      .def("set_step", &BulletWorld::set_step, "step"_a, "timestep"_a, Unlocked())
      .def("kinematic_count", [](const BulletWorld& w) { return w.kinematic_places().size(); })
      .def(
          "kinematic_places",
          [](const BulletWorld& w, Output<double> places) {
            double* out = places.data();
            for (const Place& place : w.kinematic_places()) {
              out = std::copy(place.position, place.position + 3, out);
              out = std::copy(place.quaternion, place.quaternion + 4, out);
            }
          },
          "places"_a.noconvert())
      .def(
          "set_kinematic_places",
          [](BulletWorld& w, Input<double> rows) {
            std::vector<Place> places;
            for (std::size_t i = 0; i < rows.shape(0); ++i) places.push_back(place_of(rows.data() + 7 * i));
            w.set_kinematic_places(places);
          },
          "places"_a, Unlocked())
      .def(
          "activate",
          [](BulletWorld& w, Input<int> ids, Input<double> states) {
            w.activate(ids.data(), rows(ids), states.data());
          },
          "ids"_a, "states"_a, Unlocked())
      .def(
          "deactivate",
          [](BulletWorld& w, Input<int> ids, bool migrates) { w.deactivate(ids.data(), rows(ids), migrates); }, "ids"_a,
          "migrates"_a = false, Unlocked())
      .def(
          "set_states",
          [](BulletWorld& w, Input<int> ids, Input<double> states) {
            w.set_states(ids.data(), rows(ids), states.data());
          },
          "ids"_a, "states"_a, Unlocked())
      .def(
          "get_states",
          [](const BulletWorld& w, Input<int> ids, Output<double> states) {
            w.get_states(ids.data(), rows(ids), states.data());
          },
          "ids"_a, "states"_a.noconvert(), Unlocked())
      .def(
          "get_states_into",
          [](const BulletWorld& w, Input<int> ids, Output<double> states, Input<int> places) {
            w.get_states(ids.data(), rows(ids), states.data(), places.data());
          },
          "ids"_a, "states"_a.noconvert(), "rows"_a, Unlocked())
      .def(
          "add_forces",
          [](BulletWorld& w, Input<int> ids, Input<double> forces, Input<double> torques) {
            w.add_forces(ids.data(), rows(ids), forces.data(), torques.data());
          },
          "ids"_a, "forces"_a, "torques"_a, Unlocked());
}

void bind_fields(World& world) {
  world
      // Rows as scene/fields.py packs them.
      .def(
          "set_fields",
          [](BulletWorld& w, Input<int> kinds, Input<int> value_counts, Input<double> values, Input<int> body_counts,
             Input<int> bodies) {
            std::vector<FieldDefinition> fields(kinds.shape(0));
            const double* value = values.data();
            const int* body = bodies.data();
            for (std::size_t i = 0; i < fields.size(); ++i) {
              fields[i].kind = kinds.data()[i];
              fields[i].values.assign(value, value + value_counts.data()[i]);
              value += value_counts.data()[i];
              fields[i].acts_on_all = body_counts.data()[i] < 0;
              const int count = std::max(body_counts.data()[i], 0);
              fields[i].bodies.assign(body, body + count);
              body += count;
            }
            w.set_fields(std::move(fields));
          },
          "kinds"_a, "value_counts"_a, "values"_a, "body_counts"_a, "bodies"_a)
      .def(
          "set_field_shape",
          [](BulletWorld& w, int shape_id, bool is_sphere, double volume, double radius, Input<double> triangles) {
            w.set_field_shape(shape_id, {is_sphere, volume, radius,
                                         std::vector<double>(triangles.data(), triangles.data() + triangles.size())});
          },
          "shape_id"_a, "is_sphere"_a, "volume"_a, "radius"_a, "triangles"_a)
      // Called with the number of steps so far, within `step`.
      .def(
          "set_before_step",
          [](BulletWorld& w, nb::object call) {
            if (call.is_none()) return w.set_before_step(nullptr);
            const auto kept = std::make_shared<nb::object>(std::move(call));
            w.set_before_step([kept](std::int64_t step) {
              nb::gil_scoped_acquire locked;
              (*kept)(step);
            });
          },
          "call"_a.none())
      .def(
          "field_forces",
          [](const BulletWorld& w, Input<int> ids, double timestep, Output<double> out) {
            for (int i = 0; i < rows(ids); ++i)
              w.field_force(ids.data()[i], timestep, out.data() + 6 * i, out.data() + 6 * i + 3);
          },
          "ids"_a, "timestep"_a, "out"_a.noconvert());
}

}  // namespace lapjoint::bindings
