// Registers state: what is kept of contacts, sleep and joints from step to step.
#include "bindings/bullet.h"

namespace lapjoint::bindings {

void bind_state(World& world) {
  world
      // Counts the contact points; read_state then copies everything out.
      .def("cached_point_count", &BulletWorld::cached_point_count, Unlocked())
      .def(
          "read_state",
          [](BulletWorld& w, Output<btScalar> bodies, Output<bool> prepared, Output<int> point_bodies,
             Output<int> point_numbers, Output<btScalar> points) {
            w.read_state(bodies.data(), prepared.data(), point_bodies.data(), point_numbers.data(), points.data());
          },
          "bodies"_a.noconvert(), "prepared"_a.noconvert(), "point_bodies"_a.noconvert(), "point_numbers"_a.noconvert(),
          "points"_a.noconvert(), Unlocked())
      .def(
          "restore",
          [](BulletWorld& w, Input<int> ids, Input<btScalar> bodies, Input<bool> prepared, Input<int> point_bodies,
             Input<int> point_numbers, Input<btScalar> points) {
            w.restore(ids.data(), rows(ids), bodies.data(), prepared.data(), rows(point_bodies), point_bodies.data(),
                      point_numbers.data(), points.data());
          },
          "ids"_a, "bodies"_a, "prepared"_a, "point_bodies"_a, "point_numbers"_a, "points"_a, Unlocked())
      .def(
          "read_sleep",
          [](const BulletWorld& w, Output<int> islands, Output<int> still) {
            w.read_sleep(islands.data(), still.data());
          },
          "islands"_a.noconvert(), "still"_a.noconvert(), Unlocked())
      .def(
          "restore_sleep",
          [](BulletWorld& w, Input<int> ids, Input<int> islands, Input<int> still) {
            w.restore_sleep(ids.data(), rows(ids), islands.data(), still.data());
          },
          "ids"_a, "islands"_a, "still"_a, Unlocked())
      .def(
          "merge_sleep",
          [](BulletWorld& w, Input<int> ids, Input<int> islands, Input<int> still) {
            w.merge_sleep(ids.data(), rows(ids), islands.data(), still.data());
          },
          "ids"_a, "islands"_a, "still"_a)
      .def("wake_joint", &BulletWorld::wake_joint, "joint"_a)
      .def("sleeping_count", &BulletWorld::sleeping_count)
      .def("take_moved", [](BulletWorld& w) { return array_of(w.take_moved()); })
      .def(
          "merge_contact_cache",
          [](BulletWorld& w, Input<int> point_bodies, Input<int> point_numbers, Input<btScalar> points) {
            w.merge_contact_cache(rows(point_bodies), point_bodies.data(), point_numbers.data(), points.data());
          },
          "point_bodies"_a, "point_numbers"_a, "points"_a, Unlocked())
      .def("passed_count", &BulletWorld::passed_count)
      .def(
          "read_passed",
          [](const BulletWorld& w, Output<int> numbers, Output<btScalar> values) {
            w.read_passed(numbers.data(), values.data());
          },
          "numbers"_a.noconvert(), "values"_a.noconvert())
      .def(
          "add_passed",
          [](BulletWorld& w, Input<int> numbers, Input<btScalar> values) {
            w.add_passed(numbers.data(), values.data(), rows(numbers));
          },
          "numbers"_a, "values"_a)
      .def("joint_impulse_count", &BulletWorld::joint_impulse_count)
      .def(
          "read_joint_impulses",
          [](const BulletWorld& w, Output<int> joint_ids, Output<btScalar> impulses) {
            w.read_joint_impulses(joint_ids.data(), impulses.data());
          },
          "joint_ids"_a.noconvert(), "impulses"_a.noconvert(), Unlocked())
      .def(
          "merge_joint_cache",
          [](BulletWorld& w, Input<int> joint_ids, Input<btScalar> impulses) {
            w.merge_joint_cache(joint_ids.data(), impulses.data(), rows(joint_ids));
          },
          "joint_ids"_a, "impulses"_a, Unlocked());
}

void bind_joints(World& world) {
  world
      .def(
          "set_drive_targets",
          [](BulletWorld& w, Input<int> joint_ids, Input<int> axes, Input<double> targets) {
            w.set_drive_targets(joint_ids.data(), axes.data(), targets.data(), rows(joint_ids));
          },
          "joint_ids"_a, "axes"_a, "targets"_a, Unlocked())
      .def("drive_target_count", &BulletWorld::drive_target_count)
      .def(
          "read_drive_targets",
          [](const BulletWorld& w, Output<int> axes, Output<double> targets) {
            w.read_drive_targets(axes.data(), targets.data());
          },
          "axes"_a.noconvert(), "targets"_a.noconvert())
      .def("forget_drive_targets", &BulletWorld::forget_drive_targets)
      .def(
          "half_turns",
          [](const BulletWorld& w, Input<int> joint_ids, Output<int> half_turns) {
            w.read_half_turns(joint_ids.data(), rows(joint_ids), half_turns.data());
          },
          "joint_ids"_a, "half_turns"_a.noconvert())
      .def(
          "set_half_turns",
          [](BulletWorld& w, Input<int> joint_ids, Input<int> half_turns) {
            w.set_half_turns(joint_ids.data(), rows(joint_ids), half_turns.data());
          },
          "joint_ids"_a, "half_turns"_a)
      // Whether joints break by themselves, or only are reported; those that are broken, and no others.
      .def("set_breaks", &BulletWorld::set_breaks, "breaks"_a)
      .def(
          "set_broken",
          [](BulletWorld& w, Input<int> joint_ids) {
            w.set_broken(std::vector<int>(joint_ids.data(), joint_ids.data() + rows(joint_ids)));
          },
          "joint_ids"_a)
      .def("broken_joints", [](const BulletWorld& w) { return array_of(w.broken_joints()); })
      .def(
          "add_broken",
          [](BulletWorld& w, Input<int> joint_ids) {
            w.add_broken(std::vector<int>(joint_ids.data(), joint_ids.data() + rows(joint_ids)));
          },
          "joint_ids"_a);
}

}  // namespace lapjoint::bindings
