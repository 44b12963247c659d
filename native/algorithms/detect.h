// Pairs of bodies that no worker sees together, found on the server over a uniform grid.
// Twin: src/lapjoint/algorithms/near_pairs.py
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "algorithms/grid.h"
#include "algorithms/membership.h"

namespace lapjoint {

// What never changes about the bodies.
struct BodyBounds {
  int body_count = 0;
  const double* center = nullptr;     // x 3, of each body's box, in its own frame [m]
  const double* half = nullptr;       // x 3, half edges of that box [m]
  const double* radius = nullptr;     // of each body's sphere about its position [m]
  const double* thickness = nullptr;  // half of each body's least extent [m]
  const std::uint32_t* group = nullptr;
  const std::uint32_t* mask = nullptr;
  const std::int64_t* ignored = nullptr;  // a * body_count + b with a < b, ascending
  int ignored_count = 0;
};

// Two bodies are near when their boxes along the world's axes and their spheres, each wider by `margin`, overlap. The
// box of a fast body, which moves farther in a step than half its thickness, is around its way in the next step.
//
// From step to step only what changed is looked at again. The grid holds boxes that are larger than their bodies, and a
// body is looked up anew when it may have left its larger box, or when its workers changed. In between, the pairs of
// larger boxes that share no worker are candidates; of those only the ones that are near now go out.
class PairFinder {
 public:
  using Pair = std::array<int, 2>;

  // `timestep`: of steps that fast bodies are looked ahead by [s]; 0: none are. `fall`: what gravity adds to a way [m].
  PairFinder(const BodyBounds& bodies, double margin, double timestep = 0, double fall = 0);

  // All near pairs a < b that share no worker, or do not have the same workers if one is fast, ascending; without those
  // known to be apart.
  std::vector<Pair> find(const double* states, const Membership& membership);

  // At the states of the last find: those that share no worker now and have one of these bodies, ascending.
  std::vector<Pair> find_again(const int* changed, int count, const Membership& membership);

  // The pairs of the last answer are at least so far from touching [m]: they do not go out again before their bodies
  // can have moved that far.
  void keep_apart(const double* gaps, int count);

  // Does now what the next find would have to do anyway, as far as it can be foreseen.
  void prepare(const Membership& membership);

 private:
  struct Box {
    float low[3], high[3];
    float position[3], radius;
  };
  struct Candidate {
    int a, b;
    // When they were last looked at: where a was, seen from b, and how far the corners of both had turned; and how far
    // they were apart then [m]. Until they have come that much nearer, they are apart still.
    float offset[3];
    float apart = -1;
    double turned;
  };

  Box box_at(const double* state, int body) const;
  const Box& box(int body);
  void look_ahead(int body, const double* state);
  void track(const double* states);  // who moved how far
  bool leaves_box(int body, double way) const;
  void mark(int body);
  void fit(int body);
  void refresh(const Membership& membership);
  // The marked bodies, and those with other workers than before; returns where their candidates begin.
  std::size_t look_up(const Membership& membership);
  void look_up_all(const Membership& membership);
  void recall(std::size_t first);
  bool is_seen(int a, int b, const Membership& membership) const;
  void meet(int a, int b, const Membership& membership);
  bool may_touch(int a, int b) const;
  bool near(Candidate& pair);
  bool still_apart(const Candidate& pair) const;
  void set_apart(Candidate& pair, double distance);
  std::vector<Pair> answer();

  BodyBounds bodies_;
  double margin_, timestep_, fall_, typical_;
  Grid grid_;
  std::vector<double> turn_reach_;            // of the farthest corner: how far a turn can move it
  std::vector<std::array<double, 7>> last_;   // position and quaternion at the last find
  std::vector<char> is_fast_;                 // moves far in the next step
  std::vector<std::array<double, 3>> moves_;  // in the next step, of those that are fast [m]
  std::vector<double> turned_;                // how far turns have moved the farthest corner so far, at most [m]
  std::vector<double> way_;                   // how far it moved in the last step, at most [m]
  struct Fit {                                // the larger box
    double position[3], turned;
    double skin = -1;  // how much larger it is; negative before the first
  };
  std::vector<Fit> fits_;
  std::vector<Box> larger_;
  std::vector<Box> boxes_;  // as they are now, where box_step_ says so
  std::vector<int> box_step_;
  std::vector<Word> known_;  // the membership that the candidates are for
  std::vector<Candidate> candidates_, former_;
  std::vector<int> marked_;  // bodies to look up
  std::vector<char> is_marked_;
  std::vector<int> asked_;  // candidates of the last answer
  int step_ = 0;
  int refit_count_ = 0;  // since all were looked up together
};

}  // namespace lapjoint
