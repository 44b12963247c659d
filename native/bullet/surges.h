// Surges: steps in which the energy of an island rises beyond what anything has done for it.
//
// An island is bodies that contacts and joints connect. Constraints alone take kinetic energy from it or pass it on
// within it; whatever its bodies have gained more than forces, motors, springs and moving surfaces have given them came
// from nowhere, and where a solver does that it does so again in the next step, with more. See docs/failures.md.
#pragma once

#include <vector>

namespace lapjoint {

constexpr double kSurgeShare = 0.1;   // of gravity times mass times size, over all of an island's bodies
constexpr double kMovingShare = 0.1;  // and of their kinetic energy: chains that land at 6 m/s gain 6% in a step
constexpr double kMostClosed = 0.04;  // rad that joints turn bodies back by in a step
constexpr double kStandardGravity = 9.80665;  // m/s^2, where a scene has none

// A body of an island that has surged, and gained more than its part in a step.
struct Surge {
  double step;           // of those taken at once
  double body, island;   // the island: its lowest body
  double energy, limit;  // J: of the island, what nothing explains, and the most that is none
};

// Of an island, what one worker has.
struct IslandPart {
  int label;                        // its lowest own body
  double gain = 0, limit = 0;       // in the world's units
  std::vector<int> bodies;          // own ones that have gained more than their part, ascending
  std::vector<int> border, ghosts;  // what other workers have of it too; ascending
  bool rises() const { return gain > limit; }
  bool crosses() const { return !border.empty() || !ghosts.empty(); }
};

}  // namespace lapjoint
