// Registers what a world is made with: settings and shapes.
#include "bindings/bullet.h"

namespace lapjoint::bindings {

void bind_settings(nb::module_& m) {
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
}

}  // namespace lapjoint::bindings
