#include "substeps/as_backed.h"

#include "assertions.h"

namespace lapjoint {

AsBacked::AsBacked(const std::vector<Backed>& backed, Bodies& bodies, Also also) : backed_(backed), bodies_(bodies) {
  for (const Backed& one : backed_) {
    LAPJOINT_ASSERT(one.root > 1 && one.place < bodies_.fixed());
    Motion& motion = bodies_.motion[one.place];
    motions_.push_back(motion);
    const Lanes root = all(one.root);
    motion.linear = motion.linear * root;
    motion.angular = motion.angular * root;
    motion.moved = motion.moved * root;
    motion.turned = motion.turned * root;
    if (also == Also::kComing) {
      bodies_.find_coming(one.place);
      Bodies::Coming& coming = bodies_.coming[one.place];
      coming_.push_back(coming);
      for (Lanes* part : {&coming.linear, &coming.angular, &coming.all_linear, &coming.all_angular})
        *part = *part * root;
    }
    if (also != Also::kFrames) continue;
    Frame& frame = bodies_.frame[one.place];
    frames_.push_back(frame);
    for (Lanes& row : frame.rows)
      for (int k = 0; k < 3; ++k) row[k] /= one.root;  // the fourth is of the position
    frame.root[0] /= one.root;
  }
}

AsBacked::~AsBacked() {
  LAPJOINT_ASSERT(motions_.size() == backed_.size());  // the list is as it was
  for (std::size_t i = 0; i < backed_.size(); ++i) {
    const Backed& one = backed_[i];
    const Lanes root = all(one.root);
    Motion& now = bodies_.motion[one.place];
    const Motion& was = motions_[i];
    // What was not changed is as it was, to the last bit.
    const auto put_in = [&](Lanes& after, const Lanes& before) { after = before + root * (after - root * before); };
    put_in(now.linear, was.linear);
    put_in(now.angular, was.angular);
    put_in(now.moved, was.moved);
    put_in(now.turned, was.turned);
  }
  for (std::size_t i = 0; i < frames_.size(); ++i) bodies_.frame[backed_[i].place] = frames_[i];
  for (std::size_t i = 0; i < coming_.size(); ++i) bodies_.coming[backed_[i].place] = coming_[i];
}

}  // namespace lapjoint
