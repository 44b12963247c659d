#include "algorithms/overlap.h"

#include <vector>

namespace lapjoint {

void assign_overlap(int growth_depth, const Graph& graph, Membership& membership) {
  Search search(graph);
  std::vector<Word> partition(membership.bits,
                              membership.bits + static_cast<std::size_t>(membership.body_count) * membership.words);
  Membership first = membership;
  first.bits = partition.data();
  for (int a = 0; a < graph.body_count; ++a) {
    for (int k = graph.start[a]; k < graph.start[a + 1]; ++k) {
      const int b = graph.neighbor[k];
      if (b < a) continue;
      Workers both = first.workers(a);
      if (both == first.workers(b)) continue;  // line 4
      both.add(first.row(b));
      grow_overlap(a, growth_depth, both, search, membership);  // lines 5 and 6
      grow_overlap(b, growth_depth, both, search, membership);  // lines 7 and 8
    }
  }
}

void grow_overlap(int root, int growth_depth, const Workers& workers, Search& search, Membership& membership) {
  search.within(root, growth_depth, [&](int body, int) {
    membership.activate(workers, body);
    return true;
  });
}

}  // namespace lapjoint
