#include "algorithms/command_lists.h"

#include <utility>

namespace lapjoint {

namespace {

// Sorts values by worker; each worker's stay in order.
class Sorter {
 public:
  void add(int worker, int value) { items_.push_back({worker, value}); }

  ByWorker sorted(int worker_count) const {
    ByWorker out;
    out.start.assign(worker_count + 1, 0);
    out.value.resize(items_.size());
    for (const auto& item : items_) ++out.start[item.first + 1];
    for (int w = 0; w < worker_count; ++w) out.start[w + 1] += out.start[w];
    std::vector<int> next(out.start.begin(), out.start.end() - 1);
    for (const auto& item : items_) out.value[next[item.first]++] = item.second;
    return out;
  }

 private:
  std::vector<std::pair<int, int>> items_;
};

}  // namespace

CommandLists command_lists(const Membership& membership, const Word* known, int worker_count, const int* reset,
                           int reset_count, const int* worker, int slot_count) {
  const int words = membership.words;
  const auto each = [words](const Word* has, const Word* also, bool wanted, auto&& visit) {
    for (int i = 0; i < words; ++i)
      for (Word word = has[i] & (wanted ? also[i] : ~also[i]); word; word &= word - 1)
        visit(64 * i + std::countr_zero(word));
  };
  Sorter activate, deactivate, again, slot;
  for (int body = 0; body < membership.body_count; ++body) {
    const Word *now = membership.row(body), *before = known + static_cast<std::size_t>(body) * words;
    if (std::equal(now, now + words, before)) continue;
    each(now, before, false, [&](int w) { activate.add(w, body); });
    each(before, now, false, [&](int w) { deactivate.add(w, body); });
  }
  for (int i = 0; i < reset_count; ++i) {
    const Word* before = known + static_cast<std::size_t>(reset[i]) * words;
    each(membership.row(reset[i]), before, true, [&](int w) { again.add(w, reset[i]); });
  }
  for (int i = 0; i < slot_count; ++i) slot.add(worker[i], i);
  return {activate.sorted(worker_count), deactivate.sorted(worker_count), again.sorted(worker_count),
          slot.sorted(worker_count)};
}

}  // namespace lapjoint
