#include "algorithms/balance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/depths.h"

namespace lapjoint {

namespace {

class Balancer {
 public:
  Balancer(const Graph& graph, Membership& membership, const BalanceRules& rules)
      : graph_(graph),
        membership_(membership),
        rules_(rules),
        search_(graph),
        before_(membership.bits, membership.bits + static_cast<std::size_t>(membership.body_count) * membership.words) {
  }

  void contact(int a, int b) {
    if (membership_.same_single(a, b)) return;
    const int count_a = membership_.worker_count_of(a), count_b = membership_.worker_count_of(b);
    if (!membership_.share(a, b)) {  // line 4: Figure 9 (i), (ii)
      const Workers workers_a = membership_.workers(a), workers_b = membership_.workers(b);
      Workers both = workers_a;
      both.add(workers_b.data());
      int root = a;
      if (membership_.total_load(workers_a) <= membership_.total_load(workers_b)) {  // line 5
        activate(workers_a, b);
        root = b;
      } else {
        activate(workers_b, a);
      }
      search_.within(root, rules_.growth_depth, [&](int near, int) {  // lines 12 to 15
        activate(both, near);
        return true;
      });
    } else if (count_a > 1 && count_b == 1) {
      if (!is_bridge(a)) leave(a, without(a, b));  // line 17: Figure 9 (iii), (iv)
    } else if (count_b > 1 && count_a == 1) {
      if (!is_bridge(b)) leave(b, without(b, a));                                  // line 19
    } else if (count_a > 1 && membership_.workers(a) == membership_.workers(b)) {  // line 20: Figure 9 (v)
      Workers others = membership_.workers(a);
      int smallest = -1;
      others.each([&](int w) {
        if (smallest < 0 || membership_.load[w] < membership_.load[smallest]) smallest = w;
      });
      others.erase(smallest);
      leave(a, others);
      leave(b, others);
    }
  }

  void prune() {
    if (grown_) depths_.reset();
    overlap_.clear();
    for (int body = 0; body < membership_.body_count; ++body)
      if (membership_.worker_count_of(body) > 1) overlap_.push_back(body);
    for (const int body : overlap_) {
      while (membership_.worker_count_of(body) > 1) {
        const int worker = fullest(body);
        if (!may_leave(body, worker) || !is_time(body)) break;
        deactivate(worker, body);
      }
    }
  }

  // A step more for those who left; a step less for those who wait, if they could have left now.
  void count_steps() {
    if (rules_.linger == 0) return;
    std::sort(waiting_.begin(), waiting_.end());
    auto next = waiting_.begin();
    for (int body = 0; body < graph_.body_count; ++body) {
      if (rules_.since_left[body] < rules_.linger) ++rules_.since_left[body];
      if (rules_.must_wait[body] == 0) continue;
      next = std::lower_bound(next, waiting_.end(), body);
      const bool waited = next != waiting_.end() && *next == body;
      rules_.must_wait[body] = waited ? rules_.must_wait[body] - 1 : rules_.linger;
    }
  }

  std::vector<int> left() {
    std::sort(left_.begin(), left_.end());
    left_.erase(std::unique(left_.begin(), left_.end()), left_.end());
    std::erase_if(left_, [&](int body) { return membership_.workers(body).contains(before(body)); });
    return std::move(left_);
  }

 private:
  int reach(int body) const { return 1 + 2 * rules_.growth_depth + (rules_.jointed[body] ? 1 : 0); }

  const Word* before(int body) const { return before_.data() + static_cast<std::size_t>(body) * membership_.words; }

  // A body that joins a worker now stays in its old ones for this step.
  bool was_overlap(int body) const { return Workers(before(body), membership_.words).count() > 1; }

  Depths& depths() {
    if (!depths_) {
      depths_.emplace(graph_, membership_, 2 + 2 * rules_.growth_depth);
      grown_ = false;
    }
    return *depths_;
  }

  void activate(const Workers& workers, int body) {
    if (membership_.workers(body).contains(workers.data())) return;
    grown_ = true;
    membership_.activate(workers, body);
    if (rules_.since_left[body] < rules_.linger) rules_.must_wait[body] = rules_.linger;  // it has come back
  }

  void deactivate(int worker, int body) {
    membership_.deactivate(worker, body);
    left_.push_back(body);
    rules_.since_left[body] = rules_.must_wait[body] = 0;
    if (depths_) depths_->leave(worker, body);
  }

  // The most loaded worker of a body, ties by the lowest number.
  int fullest(int body) const {
    int found = -1;
    membership_.workers(body).each([&](int w) {
      if (found < 0 || membership_.load[w] > membership_.load[found]) found = w;
    });
    return found;
  }

  // Algorithm 7.
  bool is_bridge(int body) const {
    Workers workers(membership_.words);
    for (int k = graph_.start[body]; k < graph_.start[body + 1]; ++k) workers.add(membership_.row(graph_.neighbor[k]));
    return workers.count() > 1;
  }

  Workers without(int body, int other) const {
    Workers left = membership_.workers(body);
    left.remove(membership_.workers(other));
    return left;
  }

  // The most loaded worker first, ties by the lowest number.
  void leave(int body, const Workers& workers) {
    order_.clear();
    workers.each([&](int w) { order_.push_back({-membership_.load[w], w}); });
    std::sort(order_.begin(), order_.end());
    for (const auto& [load, worker] : order_)
      if (rules_.mode == Balance::kPrinted || (may_leave(body, worker) && is_time(body))) deactivate(worker, body);
  }

  // Whether a body that may leave has waited long enough; if not, it waits on.
  bool is_time(int body) {
    if (rules_.must_wait[body] == 0) return true;
    waiting_.push_back(body);
    return false;
  }

  // Whether the body would still share a worker with every body within its reach.
  bool may_leave(int body, int worker) {
    Workers left = membership_.workers(body);
    left.erase(worker);
    const int count = left.count();
    if (count == 0 || !was_overlap(body)) return false;
    if (rules_.growth_depth > 0) {  // else a look at the neighbours is quicker
      bool deep = false;            // one worker has them all
      left.each([&](int w) { deep = deep || depths().of(body, w) > reach(body); });
      // Depths only grow while bodies join workers, so what was deep is deep; else they tell only of a single worker.
      if (deep || (count == 1 && !grown_)) return deep;
    }
    bool kept = true;
    search_.within(body, reach(body), [&](int near, int) {
      kept = near == body || left.meets(membership_.row(near));
      return kept;
    });
    return kept;
  }

  Graph graph_;
  Membership& membership_;
  BalanceRules rules_;
  Search search_;
  std::optional<Depths> depths_;  // once needed
  bool grown_ = false;            // bodies have joined workers since the depths were found
  std::vector<std::pair<std::int64_t, int>> order_;
  std::vector<int> overlap_, left_, waiting_;
  std::vector<Word> before_;  // the membership at the start
};

}  // namespace

std::vector<int> balance(const int* contacts, int contact_count, const Graph& graph, Membership& membership,
                         const BalanceRules& rules) {
  Balancer balancer(graph, membership, rules);
  for (int i = 0; i < contact_count; ++i) balancer.contact(contacts[2 * i], contacts[2 * i + 1]);
  if (rules.mode == Balance::kPruned) balancer.prune();
  balancer.count_steps();
  return balancer.left();
}

}  // namespace lapjoint
