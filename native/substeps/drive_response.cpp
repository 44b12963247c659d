#include "substeps/drive_response.h"

#include <algorithm>
#include <cmath>

namespace lapjoint {

namespace {

constexpr double kFastest = 1;  // of a spring: its frequency times the substep
// The same of a drive, and its decay. Beyond, what it does to a body that others hold too would not be what it should:
// at a quarter, its damping is too little by a fifth then.
constexpr double kFastestDrive = 0.25;
// Of a swept drive that is faster: by how much of what it is out it comes back in a substep, at most. With all of it,
// an arm of six such drives trembles.
constexpr double kStiffest = 0.5;
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
  out.most = Real(is_angular ? kMostTurn / h : 1e30);
  if (omega_h <= kFastestDrive && decay_h <= kFastestDrive) {
    const double back = way_back(decay_h, omega_h);
    out.is_exact = true;
    const double share = omega_h > 0 ? back / (omega_h * omega_h) : -std::expm1(-2 * decay_h) / (2 * decay_h);
    out.kept_share = Real(std::exp(-2 * decay_h));
    out.load_share = Real(share);
    out.rate = Real(back / h);
    out.gain = Real(2 * decay_h * share);
    return out;
  }
  // Force at the end of the substep, from half of what others change: the whole would be an integral of what is out,
  // which swings up wherever bodies are heavier than they are alone. It gives way to a load as it should, as long as it
  // is not too stiff for that.
  const double kept = 1 / (1 + 2 * decay_h + omega_h * omega_h), share = (1 + kept) / 2;
  out.kept_share = Real(kept);
  out.load_share = Real(share);
  out.rate = Real(std::min(share * omega_h * omega_h, kStiffest) / h);
  out.gain = Real(2 * decay_h * kept);
  return out;
}

}  // namespace lapjoint
