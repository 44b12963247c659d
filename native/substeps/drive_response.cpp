#include "substeps/drive_response.h"

#include <cmath>

namespace lapjoint {

namespace {

constexpr double kFastest = 1;  // of a spring: its frequency times the substep
// The same of a drive, and its decay. Beyond, what it does to a body that others hold too would not be what it should:
// at a quarter, its damping is too little by a fifth then.
constexpr double kFastestDrive = 0.25;
// rad that a drive may turn its bodies by in a substep to get where it should be: beyond, what is held at a distance is
// not where it was thought to be.
constexpr double kMostTurn = 0.1;

// (1 + exp(-2 d) - trace) of the exact motion over a substep, from decay and frequency times the substep.
double way_back(double decay, double omega) {
  const double under = omega * omega - decay * decay;
  const double root = std::sqrt(std::abs(under));
  if (under > 0) {
    const double fall = std::sinh(decay / 2), swing = std::sin(root / 2);
    return 4 * std::exp(-decay) * (fall * fall + swing * swing);
  }
  // decay - root, without the difference
  const double slow = decay + root > 0 ? omega * omega / (decay + root) : 0;
  return 4 * std::exp(-decay) * std::sinh((decay + root) / 2) * std::sinh(slow / 2);
}

}  // namespace

DriveResponse DriveResponse::of_spring(double stiffness, double damping, double inertia, double h) {
  DriveResponse out;
  const double square = stiffness * inertia, decay = 0.5 * damping * inertia;
  const double omega_h = std::sqrt(square) * h;
  const double under = square - decay * decay;
  if (omega_h <= kFastest || under <= 0) {
    const double left = std::exp(-2 * decay * h), root = std::sqrt(std::abs(under)) * h;
    const double trace = 2 * std::exp(-decay * h) * (under > 0 ? std::cos(root) : std::cosh(root));
    out.kept_share = Real(left);
    out.rate = Real((1 + left - trace) / h);
  } else {  // too fast to be seen
    const double scale = 1 / (1 + 2 * decay * h + square * h * h);
    out.kept_share = Real(scale);
    out.rate = Real(square * h * scale);
  }
  return out;
}

DriveResponse DriveResponse::of_drive(double stiffness, double damping, double inertia, double h, bool is_angular) {
  DriveResponse out;
  const double omega_h = std::sqrt(stiffness * inertia) * h, decay_h = 0.5 * damping * inertia * h;
  if (omega_h <= kFastestDrive && decay_h <= kFastestDrive) {
    const double back = way_back(decay_h, omega_h);
    const double share = omega_h > 0 ? back / (omega_h * omega_h) : -std::expm1(-2 * decay_h) / (2 * decay_h);
    out.kept_share = Real(std::exp(-2 * decay_h));
    out.load_share = Real(share);
    out.rate = Real(back / h);
    out.gain = Real(2 * decay_h * share);
    return out;
  }
  // Force at the end of the substep: h (k (p - q - h v) + c (w - v)).
  const double softness = h * (h * stiffness + damping);
  const double scale = 1 / (1 + softness * inertia);
  out.is_implicit = true;
  out.kept_share = Real(softness * inertia * scale);
  out.mass = Real(softness * scale);
  out.rate = Real(h * stiffness * scale);
  out.gain = Real(h * damping * scale);
  out.most = Real(is_angular ? kMostTurn / (h * inertia) : 1e30);
  return out;
}

}  // namespace lapjoint
