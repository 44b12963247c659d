#include "substeps/colours.h"

#include <algorithm>
#include <bit>

#include "assertions.h"

namespace lapjoint {

// A group is solved as if its constraints knew nothing of each other.
[[maybe_unused]] static bool share_no_body(const std::vector<int>& members, const std::vector<ConstraintEnds>& ends,
                                           int fixed) {
  for (std::size_t group = 0; group < members.size(); group += 4) {
    std::vector<int> bodies;
    for (std::size_t i = group; i < group + 4; ++i)
      if (members[i] != Colours::kEmpty)
        for (const int body : {ends[members[i]].a, ends[members[i]].b})
          if (body < fixed) bodies.push_back(body);
    std::sort(bodies.begin(), bodies.end());
    if (std::adjacent_find(bodies.begin(), bodies.end()) != bodies.end()) return false;
  }
  return true;
}

void Colours::group(const std::vector<ConstraintEnds>& ends, const std::vector<std::uint8_t>& kind, int fixed) {
  constexpr int kBuckets = kColours * kKinds;
  const std::size_t count = ends.size();
  taken_.assign(fixed, 0);
  bucket_.resize(count);
  int size[kBuckets + 1] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const auto [a, b] = ends[i];
    LAPJOINT_ASSERT(a >= 0 && b >= 0 && a != b && kind[i] < kKinds);
    std::uint64_t none = 0;
    std::uint64_t &of_a = a < fixed ? taken_[a] : none, &of_b = b < fixed ? taken_[b] : none;
    const int colour = std::countr_one(of_a | of_b);
    if (colour == kColours) {  // a body has more constraints than there are colours: these are solved one by one
      bucket_[i] = kBuckets;
    } else {
      const std::uint64_t bit = std::uint64_t(1) << colour;
      of_a |= bit;
      of_b |= bit;
      none = 0;
      bucket_[i] = static_cast<std::uint16_t>(kKinds * colour + kind[i]);
    }
    ++size[bucket_[i]];
  }
  int next[kBuckets + 1], total = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    next[bucket] = total;
    total += (size[bucket] + 3) / 4 * 4;
  }
  next[kBuckets] = total;
  members_.assign(total + 4 * static_cast<std::size_t>(size[kBuckets]), kEmpty);
  for (std::size_t i = 0; i < count; ++i) {
    int& at = next[bucket_[i]];
    members_[at] = static_cast<int>(i);
    at += bucket_[i] == kBuckets ? 4 : 1;
  }
  LAPJOINT_ASSERT(std::count(members_.begin(), members_.end(), kEmpty) + std::ssize(ends) == std::ssize(members_));
  LAPJOINT_ASSERT(share_no_body(members_, ends, fixed));
}

}  // namespace lapjoint
