// Registers BulletWorld with Python. Arrays in, arrays out; shapes and types are checked by the Python front.
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
#include <memory>
#include <optional>

#include "bullet/errors.h"
#include "bullet/memory.h"
#include "bullet/world.h"
#include "exchange/machine_links.h"

namespace nb = nanobind;
using namespace nb::literals;
using lapjoint::BodyColumns;
using lapjoint::BulletWorld;
using lapjoint::GivenMotion;
using lapjoint::JointColumns;
using lapjoint::Place;
using lapjoint::ShapeDefinition;
using lapjoint::StaticBody;
using lapjoint::WorldSettings;

template <typename T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

namespace {

int rows(const Input<int>& ids) { return static_cast<int>(ids.shape(0)); }

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

// Things that are made of doubles alone, as rows of these.
template <typename T>
nb::ndarray<nb::numpy, double, nb::ndim<2>> table_of(const std::vector<T>& from) {
  constexpr std::size_t columns = sizeof(T) / sizeof(double);
  auto* rows = new double[columns * from.size()];
  nb::capsule owner(rows, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  if (!from.empty()) std::memcpy(rows, from.data(), sizeof(T) * from.size());
  return nb::ndarray<nb::numpy, double, nb::ndim<2>>(rows, {from.size(), columns}, owner);
}

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

nb::ndarray<nb::numpy, int, nb::ndim<1>> array_of(const std::vector<int>& from) {
  auto* numbers = new int[from.size()];
  nb::capsule owner(numbers, [](void* p) noexcept { delete[] static_cast<int*>(p); });
  std::copy(from.begin(), from.end(), numbers);
  return nb::ndarray<nb::numpy, int, nb::ndim<1>>(numbers, {from.size()}, owner);
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

// A Python exception class of the module, and its instances with the body's number.
nb::object add_error_class(nb::module_& m, const char* name, nb::handle base) {
  const std::string path = nb::cast<std::string>(m.attr("__name__")) + "." + name;
  nb::object made = nb::steal(PyErr_NewException(path.c_str(), base.ptr(), nullptr));
  m.attr(name) = made;
  return made;
}

void raise_body_error(const nb::object& error_class, const lapjoint::BodyError& error) {
  nb::object raised = error_class(error.what());
  raised.attr("body_id") = error.body_id();
  PyErr_SetObject(error_class.ptr(), raised.ptr());
}

// BodyError and NotFiniteError, in Python under the same names. Classes live as long as the interpreter.
void register_errors(nb::module_& m) {
  struct Classes {
    nb::object body_error, not_finite_error;
  };
  auto* classes = new Classes;
  classes->body_error = add_error_class(m, "BodyError", PyExc_ValueError);
  classes->not_finite_error = add_error_class(m, "NotFiniteError", classes->body_error);
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* payload) {
        const auto& known = *static_cast<const Classes*>(payload);
        try {
          std::rethrow_exception(thrown);
        } catch (const lapjoint::NotFiniteError& error) {
          raise_body_error(known.not_finite_error, error);
        } catch (const lapjoint::BodyError& error) {
          raise_body_error(known.body_error, error);
        }
      },
      classes);
}

// Wait for other workers, while other threads run Python. False: the step is abandoned.
template <typename Action>
bool unless_abandoned(Action&& action) {
  const nb::gil_scoped_release others;
  try {
    action();
  } catch (const lapjoint::StepAbandoned&) {
    return false;
  }
  return true;
}

}  // namespace

NB_MODULE(LAPJOINT_MODULE, m) {
  nb::set_leak_warnings(false);  // what an interpreter keeps until its end is no leak
  lapjoint::give_memory_to_bullet();
  m.attr("bullet_version") = btGetVersion();
  m.attr("state_columns") = nb::make_tuple(lapjoint::kBodyValues, lapjoint::kPointNumbers, lapjoint::kPointValues);
  register_errors(m);
  m.attr("precision") = sizeof(btScalar) == 8 ? "float64" : "float32";

  m.def(
      "backing_factor",
      [](const nb::ndarray<const double, nb::shape<6, 6>, nb::c_contig, nb::device::cpu>& whole,
         const nb::ndarray<const double, nb::shape<6, 6>, nb::c_contig, nb::device::cpu>& touched) {
        lapjoint::Backing::Inertia inertias[2];
        std::copy_n(whole.data(), 36, inertias[0].begin());
        std::copy_n(touched.data(), 36, inertias[1].begin());
        return lapjoint::Backing::factor(inertias[0], inertias[1]);
      },
      "whole"_a, "touched"_a);

  using lapjoint::MachineLinks, lapjoint::Mailboxes;
  static const auto check_fit = [](const Output<std::uint8_t>& memory, int worker_count, std::size_t room) {
    if (memory.size() < Mailboxes::byte_count(worker_count, room))
      throw std::invalid_argument("mailboxes of " + std::to_string(worker_count) +
                                  " workers do not fit into their memory");
  };
  nb::class_<MachineLinks>(m, "MachineLinks")
      .def(nb::init<int, int>(), "machine"_a, "spin_us"_a)
      .def_prop_ro("bell", &MachineLinks::bell)
      .def(
          "set_workers",
          [](MachineLinks& links, Output<std::uint8_t> memory, std::size_t room, const std::vector<int>& machine_of) {
            check_fit(memory, static_cast<int>(machine_of.size()), room);
            links.set_workers(memory.data(), room, machine_of);
          },
          "memory"_a.noconvert(), "room"_a, "machine_of"_a, nb::keep_alive<1, 2>())
      .def("connect", &MachineLinks::connect, "machine"_a, "socket"_a)
      .def("disconnect", &MachineLinks::disconnect, "machine"_a)
      .def("abandon", &MachineLinks::abandon, "attempt"_a)
      .def_prop_ro("message_count", &MachineLinks::message_count)
      .def_prop_ro("send_count", &MachineLinks::send_count);
  nb::class_<Mailboxes>(m, "Mailboxes")
      // The memory is shared with other workers, and read and written in place.
      .def(
          "__init__",
          [](Mailboxes* self, Output<std::uint8_t> memory, int worker_count, std::size_t room, int worker, int spins,
             int bell) {
            check_fit(memory, worker_count, room);
            new (self) Mailboxes(memory.data(), worker_count, room, worker, spins, bell);
          },
          "memory"_a.noconvert(), "worker_count"_a, "room"_a, "worker"_a, "spins"_a, "bell"_a = -1,
          nb::keep_alive<1, 2>())
      // What engines do by themselves; false: the step is abandoned.
      .def("begin_step", &Mailboxes::begin_step, "attempt"_a, "first"_a = true)
      .def(
          "send",
          [](Mailboxes& mail, int worker, nb::bytes message) {
            if (message.size() > mail.room()) throw std::invalid_argument("the message is too long");
            std::memcpy(mail.outgoing(worker), message.c_str(), message.size());
            return unless_abandoned([&] { mail.send(worker, message.size()); });
          },
          "worker"_a, "message"_a)
      .def(
          "receive",
          [](Mailboxes& mail, int worker, std::size_t size) -> std::optional<nb::bytes> {
            const void* message = nullptr;
            if (!unless_abandoned([&] { message = mail.receive(worker, size); })) return std::nullopt;
            return nb::bytes(message, size);
          },
          "worker"_a, "size"_a)
      .def(
          "finish_step",
          [](Mailboxes& mail, unsigned says) -> std::optional<unsigned> {
            unsigned all = 0;
            if (!unless_abandoned([&] { all = mail.finish_step(says); })) return std::nullopt;
            return all;
          },
          "says"_a = 0)
      .def_static("byte_count", &Mailboxes::byte_count, "worker_count"_a, "room"_a)
      .def_static(
          "abandon",
          [](Output<std::uint8_t> memory, std::uint64_t attempt) { Mailboxes::abandon(memory.data(), attempt); },
          "memory"_a.noconvert(), "attempt"_a)
      .def_static(
          "is_waiting",
          [](Input<std::uint8_t> memory, int worker) { return Mailboxes::is_waiting(memory.data(), worker); },
          "memory"_a, "worker"_a)
      .def_static(
          "is_elsewhere",
          [](Input<std::uint8_t> memory, int worker) { return Mailboxes::is_elsewhere(memory.data(), worker); },
          "memory"_a, "worker"_a)
      .def_prop_ro("waited_s", [](const Mailboxes& mail) { return mail.counts().wait_wall; })
      .def_prop_ro("waited_cpu_s", [](const Mailboxes& mail) { return mail.counts().wait_cpu; })
      .def_prop_ro("between_meetings_s", &Mailboxes::between_meetings)
      .def_prop_ro("exchanges", [](const Mailboxes& mail) { return mail.counts().exchanges; })
      .def_prop_ro("sent_bytes", [](const Mailboxes& mail) { return mail.counts().bytes; });
  m.attr("message_bytes") =
      std::max({lapjoint::Between::most_bytes(), sizeof(lapjoint::BodyState), lapjoint::ghost_message_bytes()});

  nb::class_<WorldSettings>(m, "WorldSettings")
      .def(nb::init<>())
      .def_rw("length_unit", &WorldSettings::length_unit)
      .def_rw("mass_unit", &WorldSettings::mass_unit)
      .def_prop_rw(
          "gravity", [](const WorldSettings& s) { return std::array{s.gravity[0], s.gravity[1], s.gravity[2]}; },
          [](WorldSettings& s, const std::array<double, 3>& g) { std::copy(g.begin(), g.end(), s.gravity); })
      .def_rw("solver", &WorldSettings::solver)
      .def_rw("solver_rows", &WorldSettings::solver_rows)
      .def_rw("substeps", &WorldSettings::substeps)
      .def_rw("tolerance", &WorldSettings::tolerance)
      .def_rw("max_substeps", &WorldSettings::max_substeps)
      .def_rw("joints", &WorldSettings::joints)
      .def_rw("iterations", &WorldSettings::iterations)
      .def_rw("joint_erp", &WorldSettings::joint_erp)
      .def_rw("contact_erp", &WorldSettings::contact_erp)
      .def_rw("split_impulse", &WorldSettings::split_impulse)
      .def_rw("sleep", &WorldSettings::sleep)
      .def_rw("sleep_speed", &WorldSettings::sleep_speed)
      .def_rw("sleep_spin", &WorldSettings::sleep_spin)
      .def_rw("sleep_steps", &WorldSettings::sleep_steps)
      .def_rw("margin", &WorldSettings::margin)
      .def_rw("exact_shapes", &WorldSettings::exact_shapes)
      .def_rw("has_neighbours", &WorldSettings::has_neighbours)
      .def_rw("timestep", &WorldSettings::timestep)
      .def_rw("keep_forces", &WorldSettings::keep_forces)
      .def_rw("finds_surges", &WorldSettings::finds_surges)
      .def_rw("slide_speed", &WorldSettings::slide_speed);

  nb::class_<ShapeDefinition>(m, "ShapeDefinition")
      .def(nb::init<>())
      .def_rw("kind", &ShapeDefinition::kind)
      .def_rw("size", &ShapeDefinition::size)
      .def_rw("points", &ShapeDefinition::points)
      .def_rw("triangles", &ShapeDefinition::triangles)
      .def_rw("parts", &ShapeDefinition::parts)
      .def_rw("place", &ShapeDefinition::place)
      .def_rw("surface", &ShapeDefinition::surface)
      .def_rw("group", &ShapeDefinition::group)
      .def_rw("mask", &ShapeDefinition::mask)
      .def_rw("thickness", &ShapeDefinition::thickness);

  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<BulletWorld>(m, "BulletWorld")
      .def(nb::init<const WorldSettings&>(), "settings"_a)
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
          "ids"_a, "forces"_a, "torques"_a, Unlocked())
      // Rows as scene/fields.py packs them.
      .def(
          "set_fields",
          [](BulletWorld& w, Input<int> kinds, Input<int> value_counts, Input<double> values, Input<int> body_counts,
             Input<int> bodies) {
            std::vector<lapjoint::FieldDefinition> fields(kinds.shape(0));
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
          "ids"_a, "timestep"_a, "out"_a.noconvert())
      .def("clear_contacts", &BulletWorld::clear_contacts, Unlocked())
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
          "bodies"_a.noconvert(), "point_counts"_a.noconvert(), "depths"_a.noconvert(), Unlocked())
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
          "joint_ids"_a, "impulses"_a, Unlocked())
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
          "joint_ids"_a)
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
          "joint_ids"_a, "forces"_a.noconvert(), Unlocked())
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
            std::vector<lapjoint::queries::Sensors::Pair> pairs(inside.size() / 2);
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
