#include "overlap.h"

namespace lapjoint {

void assign_overlap(int growth_depth, const Graph& graph, Membership& membership) {
  Search search(graph);
  for (int a = 0; a < graph.body_count; ++a) {
    for (int k = graph.start[a]; k < graph.start[a + 1]; ++k) {
      const int b = graph.neighbor[k];
      if (b < a || membership.share(a, b)) continue;  // line 4
      const Workers workers_a = membership.workers(a), workers_b = membership.workers(b);
      Workers both = workers_a;
      both.add(workers_b.data());
      membership.activate(workers_b, a);                       // line 5
      grow_overlap(a, growth_depth, both, search, membership);  // line 6
      membership.activate(workers_a, b);                       // line 7
      grow_overlap(b, growth_depth, both, search, membership);  // line 8
    }
  }
}

void grow_overlap(int root, int growth_depth, const Workers& workers, Search& search, Membership& membership) {
  search.within(root, growth_depth, [&](int body, int) {
    if (membership.worker_count_of(body) == 1) membership.activate(workers, body);
    return true;
  });
}

}  // namespace lapjoint
