// Clusters across workers: all workers come to the same ones, and to the same factors.
#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "assertions.h"
#include "substeps/backing.h"
#include "substeps/between.h"

namespace lapjoint {

namespace {

constexpr int kNone = -1;

// A message to every other worker, of so many bytes at most, and theirs.
template <typename Put, typename Get>
void exchange_all(Mailboxes& mailboxes, std::size_t most, Put&& put, Get&& get) {
  if (most > mailboxes.room()) throw std::length_error("too many welded bodies at the ends of joints between workers");
  for (int worker = 0; worker < mailboxes.worker_count(); ++worker) {
    if (worker == mailboxes.self()) continue;
    auto* begin = static_cast<char*>(mailboxes.outgoing(worker));
    char* end = put(worker, begin);
    LAPJOINT_ASSERT(end >= begin && static_cast<std::size_t>(end - begin) <= most);
    mailboxes.send(worker, static_cast<std::size_t>(end - begin));
  }
  for (int worker = 0; worker < mailboxes.worker_count(); ++worker)
    if (worker != mailboxes.self()) get(worker, static_cast<const char*>(mailboxes.receive_any(worker)));
}

template <typename T>
char* put_one(const T& value, char* into) {
  std::memcpy(into, &value, sizeof value);
  return into + sizeof value;
}

template <typename T>
const char* get_one(const char* from, T& value) {
  std::memcpy(&value, from, sizeof value);
  return from + sizeof value;
}

const Neighbour* neighbour_of(const std::vector<Neighbour>& neighbours, int worker) {
  for (const Neighbour& one : neighbours)
    if (one.worker == worker) return &one;
  return nullptr;
}

std::size_t most_border(const std::vector<Neighbour>& neighbours) {
  std::size_t most = 0;
  for (const Neighbour& one : neighbours) most = std::max(most, one.border.size());
  return most;
}

// The lower label of two that a joint ties together, and of all that are tied to them.
int lowest(const std::map<int, int>& lower, int label) {
  for (auto at = lower.find(label); at != lower.end(); at = lower.find(label)) label = at->second;
  return label;
}

}  // namespace

// What workers' parts are called is known to all; parts that a joint ties together get one name.
void Backing::exchange_labels(const std::vector<Neighbour>& neighbours, Mailboxes& mailboxes) {
  struct End {
    int joint, label;
  };
  std::vector<End> ends;
  for (const Tie& tie : ties_) ends.push_back({tie.joint, first_label_[tie.part]});
  exchange_all(
      mailboxes, sizeof(int) * (1 + most_border(neighbours)) + sizeof(End) * ties_.size(),
      [&](int worker, char* out) {
        out = put_one(static_cast<int>(ties_.size()), out);
        for (std::size_t i = 0; i < ties_.size(); ++i) out = put_one(ends[i], out);
        if (const Neighbour* to = neighbour_of(neighbours, worker))
          for (const int place : to->border) out = put_one(label_of_[place], out);
        return out;
      },
      [&](int worker, const char* in) {
        int count;
        in = get_one(in, count);
        for (int i = 0; i < count; ++i) in = get_one(in, ends.emplace_back());
        if (const Neighbour* from = neighbour_of(neighbours, worker))
          for (const int place : from->ghosts) in = get_one(in, label_of_[place]);
      });
  std::sort(ends.begin(), ends.end(),
            [](const End& x, const End& y) { return x.joint != y.joint ? x.joint < y.joint : x.label < y.label; });
  std::map<int, int> lower;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    if (ends[i].joint != ends[i - 1].joint) continue;
    const int x = lowest(lower, ends[i - 1].label), y = lowest(lower, ends[i].label);
    if (x != y) lower[std::max(x, y)] = std::min(x, y);
  }
  for (Part& part : parts_) part.label = lowest(lower, part.label);
  for (int& label : label_of_) label = lowest(lower, label);
}

// Inertias of clusters across workers are added up by all, in the order of workers. Factors of others go to neighbours.
void Backing::exchange_inertias(const std::vector<Neighbour>& neighbours, Mailboxes& mailboxes) {
  struct Sum {
    int label;
    Inertia whole, touched;
  };
  std::vector<std::vector<Sum>> sums(mailboxes.worker_count());
  for (const Part& part : parts_)
    if (part.is_across) sums[mailboxes.self()].push_back({part.label, part.whole, part.touched});
  const std::vector<Sum> own = sums[mailboxes.self()];
  std::vector<double> given(factor_of_.size(), 0.0);
  exchange_all(
      mailboxes, 2 * sizeof(int) + sizeof(Sum) * own.size() + sizeof(double) * most_border(neighbours),
      [&](int worker, char* out) {
        out = put_one(static_cast<int>(bounces_), out);
        out = put_one(static_cast<int>(own.size()), out);
        for (const Sum& one : own) out = put_one(one, out);
        if (const Neighbour* to = neighbour_of(neighbours, worker))
          for (const int place : to->border) {
            const Part* part = part_of_[place] == kNone ? nullptr : &parts_[part_of_[place]];
            out = put_one(!part ? 1.0 : part->is_across ? 0.0 : part->factor, out);  // 0: all find it by themselves
          }
        return out;
      },
      [&](int worker, const char* in) {
        int bounces, count;
        in = get_one(in, bounces);
        in = get_one(in, count);
        bounces_ |= bounces != 0;
        for (int i = 0; i < count; ++i) in = get_one(in, sums[worker].emplace_back());
        if (const Neighbour* from = neighbour_of(neighbours, worker))
          for (const int place : from->ghosts) in = get_one(in, given[place]);
      });
  std::map<int, Sum> all;
  for (const std::vector<Sum>& of_worker : sums)
    for (const Sum& one : of_worker) {
      const auto [at, is_new] = all.emplace(one.label, one);
      if (is_new) continue;
      for (int k = 0; k < 36; ++k) {
        at->second.whole[k] += one.whole[k];
        at->second.touched[k] += one.touched[k];
      }
    }
  std::map<int, double> factors;
  for (const auto& [label, sum] : all) factors[label] = factor(sum.whole, sum.touched);
  for (Part& part : parts_)
    if (part.is_across) part.factor = factors.at(part.label);
  for (std::size_t place = 0; place < is_ghost_.size(); ++place)
    if (is_ghost_[place]) {
      const auto known = factors.find(label_of_[place]);
      factor_of_[place] = given[place] > 0 ? given[place] : known == factors.end() ? 1.0 : known->second;
    }
}

}  // namespace lapjoint
