// Forces of fields on bodies, in SI units. It knows no engine.
// Twin: src/lapjoint/algorithms/field_forces.py, where the formulas are explained.
#pragma once

#include <vector>

namespace lapjoint {

// Kinds and values as src/lapjoint/scene/fields.py has them.
struct FieldDefinition {
  enum Kind { kGravity = 1, kDrag = 2, kBuoyancy = 3, kAttractor = 4 };
  int kind = kGravity;
  std::vector<double> values;
  bool acts_on_all = true;
  std::vector<int> bodies;
};

// What buoyancy needs of a shape; triangles in its frame, nine numbers each, none for a sphere.
struct FieldShape {
  bool is_sphere = false;
  double volume = 0, radius = 0;
  std::vector<double> triangles;
};

struct FieldBody {
  double mass, inertia[3];
  double position[3], linear[3], angular[3];
  double axes[9];      // row-major: columns are the principal axes in the world
  double rotation[9];  // of the shape's frame, row-major
  double others[3];    // all other forces
  const FieldShape* shape = nullptr;
};

class Fields {
 public:
  // Replaces all fields.
  void define(std::vector<FieldDefinition> fields);
  bool empty() const { return fields_.empty(); }
  // What all fields do to a body of this number in a step: added to force and torque.
  void add(int body, const FieldBody& state, double timestep, double* force, double* torque) const;

 private:
  struct Entry {
    FieldDefinition definition;
    std::vector<char> has;  // by body number; may be too short
  };
  std::vector<Entry> fields_;
};

// Volume of a body below the plane normal . x = level, and the middle of that part.
double submerged_volume(const FieldBody& body, const double* normal, double level, double* middle);

}  // namespace lapjoint
