// Force fields on the world's own bodies, in every step.
#include <stdexcept>

#include "bullet/slot.h"
#include "bullet/world.h"

namespace lapjoint {

void BulletWorld::set_fields(std::vector<FieldDefinition> fields) {
  wake_all();
  fields_.define(std::move(fields));
  watch_forces();
}

void BulletWorld::set_field_shape(int shape_id, FieldShape shape) { field_shapes_[shape_id] = std::move(shape); }

void BulletWorld::set_before_step(std::function<void(std::int64_t)> call) {
  wake_all();
  before_step_ = std::move(call);
  watch_forces();
}

void BulletWorld::watch_forces() {
  if (fields_.empty() && !before_step_)
    world_->set_more_forces(nullptr);
  else
    world_->set_more_forces([this](btScalar timestep) { add_field_forces(double(timestep)); });
}

void BulletWorld::add_field_forces(double timestep) {
  if (before_step_) before_step_(step_);
  if (fields_.empty()) return;
  const double length_unit = settings_.length_unit, mass_unit = settings_.mass_unit;
  const double force_unit = length_unit * mass_unit, torque_unit = force_unit * length_unit;
  for (const int id : awake()) {
    if (is_ghost_[id]) continue;
    double force[3], torque[3];
    field_force(id, timestep, force, torque);
    btRigidBody& body = slot(id).body;
    const auto scaled = [](const double* from, double unit) {
      return btVector3(btScalar(from[0] / unit), btScalar(from[1] / unit), btScalar(from[2] / unit));
    };
    body.applyCentralForce(scaled(force, force_unit));
    body.applyTorque(scaled(torque, torque_unit));
  }
}

// Of all fields, at the body's present state and with the forces that it has already.
void BulletWorld::field_force(int id, double timestep, double* force, double* torque) const {
  const Slot& from = slot(id);
  const btRigidBody& body = from.body;
  const double length_unit = settings_.length_unit, mass_unit = settings_.mass_unit;
  // Where it is looked at, so that orbits keep their energy: algorithms/field_forces.py, ahead_share.
  const int substeps = substeps_ ? settings_.substeps : 1;
  const double ahead = timestep * (substeps - 1) / (2 * substeps);
  FieldBody state;
  state.mass = body_columns_.mass[id];
  const btMatrix3x3& basis = body.getWorldTransform().getBasis();
  const btMatrix3x3 shape_basis = from.turned() ? basis * btMatrix3x3(from.turn.inverse()) : basis;
  for (int k = 0; k < 3; ++k) {
    const double inverse = body.getInvInertiaDiagLocal()[k];
    state.inertia[k] = mass_unit * length_unit * length_unit / inverse;
    state.linear[k] = body.getLinearVelocity()[k] * length_unit;
    state.position[k] = body.getWorldTransform().getOrigin()[k] * length_unit + ahead * state.linear[k];
    state.angular[k] = body.getAngularVelocity()[k];
    state.others[k] = body.getTotalForce()[k] * (mass_unit * length_unit);
    for (int i = 0; i < 3; ++i) {
      state.axes[3 * k + i] = basis[k][i];
      state.rotation[3 * k + i] = shape_basis[k][i];
    }
    force[k] = torque[k] = 0;
  }
  const auto shape = field_shapes_.find(body_columns_.shape_id[id]);
  state.shape = shape == field_shapes_.end() ? nullptr : &shape->second;
  fields_.add(id, state, timestep, force, torque);
}

}  // namespace lapjoint
