// Bodies as heavy as contacts take them to be, for as long as these are swept (substeps/backing.h says why).
#pragma once

#include <vector>

#include "substeps/bodies.h"

namespace lapjoint {

// A body, and the root of by how much it is heavier to contacts.
struct Backed {
  int place;
  Real root;
};

// While it lives, bodies are as contacts see them; what these change is put into them as they are when it ends.
class AsBacked {
 public:
  // What of a body contacts are to see so, besides how it moves: its frame, or what is coming in the next substep.
  enum class Also { kNothing, kFrames, kComing };
  AsBacked(const std::vector<Backed>& backed, Bodies& bodies, Also also = Also::kNothing);
  ~AsBacked();
  AsBacked(const AsBacked&) = delete;
  AsBacked& operator=(const AsBacked&) = delete;

 private:
  const std::vector<Backed>& backed_;
  Bodies& bodies_;
  std::vector<Motion> motions_;
  std::vector<Frame> frames_;
  std::vector<Bodies::Coming> coming_;
};

}  // namespace lapjoint
