// Constraints in groups of four that share no body, so that they can be solved side by side.
//
// Constraints of one colour share no body. They are coloured in the order they are given in, each with the first colour
// that none of its bodies has yet: the order decides the colours, and nothing else does.
#pragma once

#include <cstdint>
#include <vector>

namespace lapjoint {

struct ConstraintEnds {
  int a, b;  // places of bodies; one that cannot move has no colour
};

class Colours {
 public:
  static constexpr int kEmpty = -1;

  // `kind` is a small number; constraints of one colour lie in order of it. Places from `fixed` on cannot move.
  void group(const std::vector<ConstraintEnds>& ends, const std::vector<std::uint8_t>& kind, int fixed);
  // Four constraints a group, some of which are kEmpty.
  const std::vector<int>& members() const { return members_; }
  int group_count() const { return static_cast<int>(members_.size() / 4); }

 private:
  static constexpr int kColours = 64, kKinds = 8;

  std::vector<std::uint64_t> taken_;  // colours of a body's constraints
  std::vector<std::uint16_t> bucket_;
  std::vector<int> members_;
};

// A constraint's place in the order: numbers that belong together come out far apart. A sweep that runs along a
// structure feeds slow waves in it; one in this order does not.
inline std::uint64_t scattered_key(std::uint64_t number) {
  number += 0x9E3779B97F4A7C15u;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9u;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBu;
  return number ^ (number >> 31);
}

}  // namespace lapjoint
