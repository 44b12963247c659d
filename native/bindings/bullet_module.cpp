// The module of one precision of Bullet. Arrays in, arrays out; shapes and types are checked by the Python front.
#include "bindings/bullet.h"
#include "bullet/errors.h"
#include "bullet/memory.h"

namespace lapjoint::bindings {

namespace {

// A Python exception class of the module, and its instances with the body's number.
nb::object add_error_class(nb::module_& m, const char* name, nb::handle base) {
  const std::string path = nb::cast<std::string>(m.attr("__name__")) + "." + name;
  nb::object made = nb::steal(PyErr_NewException(path.c_str(), base.ptr(), nullptr));
  m.attr(name) = made;
  return made;
}

void raise_body_error(const nb::object& error_class, const BodyError& error) {
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
        } catch (const NotFiniteError& error) {
          raise_body_error(known.not_finite_error, error);
        } catch (const BodyError& error) {
          raise_body_error(known.body_error, error);
        }
      },
      classes);
}

}  // namespace

}  // namespace lapjoint::bindings

NB_MODULE(LAPJOINT_MODULE, m) {
  using namespace lapjoint::bindings;
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

  bind_exchange(m);
  bind_settings(m);
  World world(m, "BulletWorld");
  world.def(nb::init<const lapjoint::WorldSettings&>(), "settings"_a);
  bind_bodies(world);
  bind_fields(world);
  bind_steps(world);
  bind_state(world);
  bind_joints(world);
  bind_readings(world);
  bind_sensors(world);
}
