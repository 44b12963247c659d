// Registers steps, detection and what a step reports.
#include "bindings/bullet.h"

namespace lapjoint::bindings {

void bind_steps(World& world) {
  world.def("clear_contacts", &BulletWorld::clear_contacts, Unlocked())
      .def("set_iterations", &BulletWorld::set_iterations, "iterations"_a)
      .def("step", &BulletWorld::step, "timestep"_a, "count"_a, Unlocked())
      .def(
          "set_turns",
          [](BulletWorld& w, int worker, Input<int> turns, Input<int> whole) {
            w.set_turns(worker, std::vector<int>(turns.data(), turns.data() + rows(turns)),
                        std::vector<int>(whole.data(), whole.data() + rows(whole)));
          },
          "worker"_a, "turns"_a, "whole"_a)
      .def("lost_bodies", &BulletWorld::lost_bodies)
      .def("step_with_neighbours", &BulletWorld::step_with_neighbours, "timestep"_a, "mailboxes"_a, "attempt"_a,
           "count"_a, "choose"_a, Unlocked())
      .def("ghost_count", &BulletWorld::ghost_count)
      .def(
          "ghost_ids", [](const BulletWorld& w, Output<int> ids) { w.ghost_ids(ids.data()); }, "ids"_a.noconvert())
      .def("detect", &BulletWorld::detect, Unlocked())
      .def(
          "prepare", [](BulletWorld& w, Input<int> moving) { w.prepare(moving.data(), rows(moving)); }, "moving"_a,
          Unlocked())
      .def(
          "clearances",
          [](BulletWorld& w, Input<int> pairs, Input<double> states, Output<double> clearance) {
            w.clearances(pairs.data(), static_cast<int>(pairs.shape(0)), states.data(), clearance.data());
          },
          "pairs"_a, "states"_a, "clearance"_a.noconvert(), Unlocked())
      .def("active_count", &BulletWorld::active_count)
      .def(
          "active_ids", [](const BulletWorld& w, Output<int> ids) { w.active_ids(ids.data()); }, "ids"_a.noconvert())
      .def("live_joint_count", &BulletWorld::live_joint_count)
      .def(
          "live_joint_ids", [](const BulletWorld& w, Output<int> ids) { w.live_joint_ids(ids.data()); },
          "ids"_a.noconvert())
      // Collects the contacts; read_contacts then copies them out.
      .def(
          "contact_count", [](BulletWorld& w) { return w.contacts().size(); }, Unlocked())
      .def(
          "read_contacts",
          [](const BulletWorld& w, Output<int> bodies, Output<int> point_counts, Output<double> depths) {
            const auto& contacts = w.collected_contacts();
            for (std::size_t i = 0; i < contacts.size(); ++i) {
              bodies.data()[2 * i] = contacts[i].body_a;
              bodies.data()[2 * i + 1] = contacts[i].body_b;
              point_counts.data()[i] = contacts[i].point_count;
              depths.data()[i] = contacts[i].depth;
            }
          },
          "bodies"_a.noconvert(), "point_counts"_a.noconvert(), "depths"_a.noconvert(), Unlocked());
}

namespace {

using Table = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

nb::typed<nb::dict, nb::str, Table> tables_of(BulletWorld& world) {
  nb::typed<nb::dict, nb::str, Table> found;
  const auto add = [&](const char* name, const auto& rows) {
    if (!rows.empty()) found[name] = table_of(rows);
  };
  add("breaks", world.breaks());
  add("hits", world.hits());
  add("touch_reports", world.touches());
  add("slides", world.slides());
  add("surges", world.surges());
  add("half_turns", world.take_turned());
  if (world.sensors() && world.sensors()->watches()) add("sensor_events", world.sensors()->events());
  return found;
}

}  // namespace

void bind_readings(World& world) {
  world
      // Rows of all steps of the last call, as many numbers each as STEP_MEASURES in Python has names.
      .def("step_measures", [](const BulletWorld& w) { return table_of(w.step_measures()); })
      // What is reported of the steps of the last call: by the names of the tables in Python, rows of their columns.
      // Those without rows are left out.
      .def("tables", &tables_of)
      // Of the last step: two bodies, point, normal, depth, impulses along the normal, of friction, and about it.
      .def("contact_points", [](const BulletWorld& w) { return table_of(w.contact_points()); })
      .def(
          "joint_forces",
          [](const BulletWorld& w, Input<int> joint_ids, Output<double> forces) {
            w.joint_forces(joint_ids.data(), rows(joint_ids), forces.data());
          },
          "joint_ids"_a, "forces"_a.noconvert(), Unlocked());
}

void bind_sensors(World& world) {
  world
      .def(
          "add_sensor",
          [](BulletWorld& w, int shape_id, std::array<double, 7> place, std::uint32_t mask, int on) {
            w.add_sensor(shape_id, place.data(), mask, on);
          },
          "shape_id"_a, "place"_a, "mask"_a, "on"_a)
      // Of the steps of the next call, find who enters and leaves; these pairs are inside already. Or do not.
      .def(
          "watch_sensors",
          [](BulletWorld& w, const Input<int>& inside) {
            if (!w.sensors()) return;
            std::vector<queries::Sensors::Pair> pairs(inside.size() / 2);
            if (!pairs.empty()) std::memcpy(pairs.data(), inside.data(), 2 * sizeof(int) * pairs.size());
            w.sensors()->watch(std::move(pairs));
          },
          "inside"_a)
      .def("ignore_sensors",
           [](BulletWorld& w) {
             if (w.sensors()) w.sensors()->rest();
           })
      .def("substep_profile", &BulletWorld::substep_profile)
      .def("residual", &BulletWorld::residual)
      .def("substep_count", &BulletWorld::substep_count)
      .def("substep_overlap", &BulletWorld::substep_overlap)
      .def("fallback_count", &BulletWorld::fallback_count);
}

}  // namespace lapjoint::bindings
