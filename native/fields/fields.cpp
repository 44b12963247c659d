#include "fields/fields.h"

#include <algorithm>
#include <cmath>

namespace lapjoint {

namespace {

constexpr int kRegionSize = 7;
constexpr double kPi = 3.14159265358979323846;

double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void cross(const double* a, const double* b, double* out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

bool is_inside(const double* region, const double* place) {
  const double* at = region + 1;
  if (region[0] == 1) {
    for (int k = 0; k < 3; ++k)
      if (!(place[k] >= at[k] && place[k] <= at[3 + k])) return false;
    return true;
  }
  if (region[0] == 2) {
    const double away[3] = {place[0] - at[0], place[1] - at[1], place[2] - at[2]};
    return dot(away, away) <= at[3] * at[3];
  }
  return true;
}

// A sum over tetrahedra with a tip in the plane.
struct Below {
  double tip[3], volume = 0, moment[3] = {0, 0, 0};

  void add(const double* p, const double* q, const double* r) {
    double a[3], b[3], c[3], side[3];
    for (int k = 0; k < 3; ++k) {
      a[k] = p[k] - tip[k];
      b[k] = q[k] - tip[k];
      c[k] = r[k] - tip[k];
    }
    cross(b, c, side);
    const double own = dot(a, side) / 6;
    volume += own;
    for (int k = 0; k < 3; ++k) moment[k] += own * (a[k] + b[k] + c[k]) / 4;
  }
};

void add_triangle(const double (*corner)[3], const double* height, Below& below) {
  const bool is_below[3] = {height[0] < 0, height[1] < 0, height[2] < 0};
  const int count = int(is_below[0]) + int(is_below[1]) + int(is_below[2]);
  if (count == 0) return;
  if (count == 3) return below.add(corner[0], corner[1], corner[2]);
  int odd = 0;  // the corner that is alone on its side
  while (is_below[odd] != (count == 1)) ++odd;
  const int second = (odd + 1) % 3, third = (odd + 2) % 3;
  const double *a = corner[odd], *b = corner[second], *c = corner[third];
  double at_b[3], at_c[3];
  for (int k = 0; k < 3; ++k) {
    at_b[k] = a[k] + height[odd] / (height[odd] - height[second]) * (b[k] - a[k]);
    at_c[k] = a[k] + height[odd] / (height[odd] - height[third]) * (c[k] - a[k]);
  }
  if (count == 1) return below.add(a, at_b, at_c);
  below.add(at_b, b, c);
  below.add(at_b, c, at_c);
}

}  // namespace

double submerged_volume(const FieldBody& body, const double* normal, double level, double* middle) {
  const FieldShape& shape = *body.shape;
  const double height = dot(body.position, normal) - level, radius = shape.radius;
  std::copy(body.position, body.position + 3, middle);
  if (height <= -radius) return shape.volume;
  if (height >= radius) return 0;
  if (shape.is_sphere) {
    const double depth = radius - height, rest = 2 * radius - depth;
    const double down = 0.75 * rest * rest / (3 * radius - depth);
    for (int k = 0; k < 3; ++k) middle[k] -= down * normal[k];
    return kPi * depth * depth * (3 * radius - depth) / 3;
  }
  Below below;
  for (int k = 0; k < 3; ++k) below.tip[k] = body.position[k] - height * normal[k];
  for (std::size_t t = 0; t < shape.triangles.size(); t += 9) {
    double corner[3][3], heights[3];
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 3; ++k)
        corner[i][k] = body.position[k] + dot(body.rotation + 3 * k, &shape.triangles[t + 3 * i]);
      heights[i] = dot(corner[i], normal) - level;
    }
    add_triangle(corner, heights, below);
  }
  const bool some = below.volume > 0;
  for (int k = 0; k < 3; ++k) middle[k] = below.tip[k] + (some ? below.moment[k] / below.volume : 0);
  return some ? below.volume : 0;
}

void Fields::define(std::vector<FieldDefinition> fields) {
  fields_.clear();
  for (FieldDefinition& definition : fields) {
    Entry& entry = fields_.emplace_back();
    for (const int body : definition.bodies) {
      if (body >= static_cast<int>(entry.has.size())) entry.has.resize(body + 1, 0);
      entry.has[body] = 1;
    }
    entry.definition = std::move(definition);
  }
}

void Fields::add(int body, const FieldBody& state, double timestep, double* force, double* torque) const {
  double own[3] = {0, 0, 0}, flow[3] = {0, 0, 0}, drag = 0, angular = 0;
  for (const Entry& entry : fields_) {
    const FieldDefinition& field = entry.definition;
    if (!field.acts_on_all && (body >= static_cast<int>(entry.has.size()) || !entry.has[body])) continue;
    if (!is_inside(field.values.data(), state.position)) continue;
    const double* v = field.values.data() + kRegionSize;
    switch (field.kind) {
      case FieldDefinition::kGravity:
        for (int k = 0; k < 3; ++k) own[k] += state.mass * v[k];
        break;
      case FieldDefinition::kAttractor: {
        const double way[3] = {v[0] - state.position[0], v[1] - state.position[1], v[2] - state.position[2]};
        const double far = std::max(std::sqrt(dot(way, way)), v[5]);
        const double scale = far > 0 ? v[3] * std::pow(far, -(v[4] + 1)) : 0;
        for (int k = 0; k < 3; ++k) own[k] += state.mass * scale * way[k];
        break;
      }
      case FieldDefinition::kDrag: {
        const double by[3] = {state.linear[0] - v[0], state.linear[1] - v[1], state.linear[2] - v[2]};
        const double grip = v[3] + (v[4] > 0 ? v[4] * std::sqrt(dot(by, by)) : 0);
        drag += grip;
        for (int k = 0; k < 3; ++k) flow[k] += grip * v[k];
        angular += v[5];
        break;
      }
      default: {
        double middle[3], arm[3], lift[3], turn[3];
        const double volume = submerged_volume(state, v, v[3], middle);
        if (volume == 0) break;
        const double share = volume / state.shape->volume;
        for (int k = 0; k < 3; ++k) {
          lift[k] = volume * v[4 + k];
          arm[k] = middle[k] - state.position[k];
          own[k] += lift[k];
          flow[k] += v[10] * share * v[7 + k];
        }
        cross(arm, lift, turn);
        for (int k = 0; k < 3; ++k) torque[k] += turn[k];
        drag += v[10] * share;
        angular += v[12] * share;
      }
    }
  }
  if (drag > 0) {
    const double rate = drag / state.mass, lost = -std::expm1(-rate * timestep);
    for (int k = 0; k < 3; ++k) {
      const double acceleration = (state.others[k] + own[k]) / state.mass;
      const double end = flow[k] / drag + acceleration / rate;  // the velocity that it comes to
      own[k] += state.mass * ((end - state.linear[k]) * lost / timestep - acceleration);
    }
  }
  if (angular > 0) {
    for (int axis = 0; axis < 3; ++axis) {
      const double along[3] = {state.axes[axis], state.axes[3 + axis], state.axes[6 + axis]};
      const double moment = state.inertia[axis];
      const double change = moment * dot(along, state.angular) * std::expm1(-angular * timestep / moment) / timestep;
      for (int k = 0; k < 3; ++k) torque[k] += change * along[k];
    }
  }
  for (int k = 0; k < 3; ++k) force[k] += own[k];
}

}  // namespace lapjoint
