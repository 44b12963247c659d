#include "substeps/interface_matrix.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "assertions.h"

namespace lapjoint {

namespace {

constexpr int kSide = BlockCholesky::kSide, kBlock = BlockCholesky::kBlock;

struct Head {
  std::int32_t body_count, pair_count, works, unused;
};

template <typename Number>
char* put(const Number* from, std::size_t count, char* out) {
  std::memcpy(out, from, count * sizeof(Number));
  return out + count * sizeof(Number);
}

template <typename Number>
const char* get(const char* in, std::size_t count, Number* into) {
  std::memcpy(into, in, count * sizeof(Number));
  return in + count * sizeof(Number);
}

std::vector<int> set_of(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::size_t place_in(const std::vector<int>& sorted, int number) {
  return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
}

}  // namespace

template <typename Visit>
void InterfaceMatrix::each_other(Mailboxes& mailboxes, Visit&& visit) const {
  for (int worker = 0; worker < mailboxes.worker_count(); ++worker)
    if (worker != self_ && !parts_[worker].bodies.empty()) visit(worker);
}

void InterfaceMatrix::exchange_pattern(Mailboxes& mailboxes, const Part& own) {
  LAPJOINT_ASSERT(own.labels.size() == own.bodies.size() && own.blocks.size() == kBlock * own.pairs.size());
  LAPJOINT_ASSERT(std::is_sorted(own.bodies.begin(), own.bodies.end()));
  self_ = mailboxes.self();
  const int worker_count = mailboxes.worker_count();
  parts_.resize(worker_count);
  const std::size_t body_count = own.bodies.size(), pair_count = own.pairs.size();
  const std::size_t size =
      sizeof(Head) + 2 * sizeof(int) * (body_count + pair_count) + sizeof(double) * kBlock * pair_count;
  if (size > mailboxes.room()) throw std::runtime_error("an interface is too wide for a message");
  for (int worker = 0; worker < worker_count; ++worker) {
    if (worker == self_) continue;
    auto* out = static_cast<char*>(mailboxes.outgoing(worker));
    const Head head{static_cast<std::int32_t>(body_count), static_cast<std::int32_t>(pair_count), own.works, 0};
    out = put(&head, 1, out);
    out = put(own.bodies.data(), body_count, out);
    out = put(own.labels.data(), body_count, out);
    out = put(own.pairs.data(), pair_count, out);
    put(own.blocks.data(), kBlock * pair_count, out);
    mailboxes.send(worker, size);
  }
  bool changed = false;
  const auto replace = [&](auto& before, auto&& after) {
    changed |= before != after;
    before = std::move(after);
  };
  for (int worker = 0; worker < worker_count; ++worker) {
    Known& part = parts_[worker];
    if (worker == self_) {
      replace(part.bodies, std::vector<int>(own.bodies));
      replace(part.labels, std::vector<int>(own.labels));
      replace(part.pairs, std::vector<BlockPlace>(own.pairs));
      continue;
    }
    const char* in = static_cast<const char*>(mailboxes.receive_any(worker));
    Head head;
    in = get(in, 1, &head);
    std::vector<int> bodies(head.body_count), labels(head.body_count);
    std::vector<BlockPlace> pairs(head.pair_count);
    in = get(in, bodies.size(), bodies.data());
    in = get(in, labels.size(), labels.data());
    in = get(in, pairs.size(), pairs.data());
    part.blocks.resize(kBlock * pairs.size());
    get(in, part.blocks.size(), part.blocks.data());
    part.works = head.works != 0;
    replace(part.bodies, std::move(bodies));
    replace(part.labels, std::move(labels));
    replace(part.pairs, std::move(pairs));
  }
  takes_part_ = !own.bodies.empty();
  if (!changed) return;
  std::vector<int> all;
  for (const Known& part : parts_) all.insert(all.end(), part.bodies.begin(), part.bodies.end());
  bodies_ = set_of(std::move(all));
  std::vector<std::pair<int, int>> pairs;
  for (Known& part : parts_) {
    part.rows.clear();
    for (const int body : part.bodies) part.rows.push_back(static_cast<int>(place_in(bodies_, body)));
    for (const auto& [a, b] : part.pairs)
      if (a != b) pairs.emplace_back(part.rows[a], part.rows[b]);
    part.label_set = set_of(part.labels);
  }
  own_labels_ = parts_[self_].label_set;
  matrix_.analyse(std::vector<char>(bodies_.size(), 0), pairs, std::numeric_limits<long>::max());
}

void InterfaceMatrix::exchange_blocks(Mailboxes& mailboxes, const Part& own) {
  const std::size_t size = sizeof(Head) + sizeof(double) * own.blocks.size();
  each_other(mailboxes, [&](int worker) {
    auto* out = static_cast<char*>(mailboxes.outgoing(worker));
    const Head head{0, 0, own.works, 0};
    out = put(&head, 1, out);
    put(own.blocks.data(), own.blocks.size(), out);
    mailboxes.send(worker, size);
  });
  each_other(mailboxes, [&](int worker) {
    Known& part = parts_[worker];
    const char* in =
        static_cast<const char*>(mailboxes.receive(worker, sizeof(Head) + sizeof(double) * part.blocks.size()));
    Head head;
    in = get(in, 1, &head);
    get(in, part.blocks.size(), part.blocks.data());
    part.works = head.works != 0;
  });
}

bool InterfaceMatrix::factor(const Part& own) {
  matrix_.clear();
  bool works = own.works;
  for (int worker = 0; worker < static_cast<int>(parts_.size()); ++worker) {
    const Known& part = parts_[worker];
    const double* block = worker == self_ ? own.blocks.data() : part.blocks.data();
    LAPJOINT_ASSERT((worker == self_ ? own.blocks : part.blocks).size() == kBlock * part.pairs.size());
    if (worker != self_ && !part.bodies.empty()) works &= part.works;
    for (const auto& [a, b] : part.pairs) {
      const int row = part.rows[a], column = part.rows[b];
      if (matrix_.stored(row, column)) {
        double* into = matrix_.block(row, column);
        for (int i = 0; i < kBlock; ++i) into[i] += block[i];
      } else {
        double* into = matrix_.block(column, row);
        for (int i = 0; i < kSide; ++i)
          for (int k = 0; k < kSide; ++k) into[kSide * k + i] += block[kSide * i + k];
      }
      block += kBlock;
    }
  }
  return works && matrix_.factor();
}

void InterfaceMatrix::solve(Mailboxes& mailboxes, double* values, int sides) {
  LAPJOINT_ASSERT(takes_part_ && (sides == 1 || sides == 2));
  const std::size_t each = static_cast<std::size_t>(kSide) * sides;
  const Known& own = parts_[self_];
  const std::size_t size = each * own.bodies.size();
  each_other(mailboxes, [&](int worker) {
    std::memcpy(mailboxes.outgoing(worker), values, size * sizeof(double));
    mailboxes.send(worker, size * sizeof(double));
  });
  values_.assign(each * bodies_.size(), 0.0);
  for (int worker = 0; worker < static_cast<int>(parts_.size()); ++worker) {
    const Known& part = parts_[worker];
    if (part.bodies.empty()) continue;
    const double* in = values;
    if (worker != self_)
      in = static_cast<const double*>(mailboxes.receive(worker, each * part.bodies.size() * sizeof(double)));
    for (const int row : part.rows)
      for (std::size_t k = 0; k < each; ++k) values_[each * row + k] += *in++;
  }
  sides == 1 ? matrix_.solve_one(values_.data()) : matrix_.solve_two(values_.data());
  for (std::size_t i = 0; i < own.rows.size(); ++i) std::copy_n(&values_[each * own.rows[i]], each, values + each * i);
}

bool InterfaceMatrix::any(Mailboxes& mailboxes, bool own) {
  const double said = own ? 1 : 0;
  bool found = own;
  each_other(mailboxes, [&](int worker) {
    std::memcpy(mailboxes.outgoing(worker), &said, sizeof said);
    mailboxes.send(worker, sizeof said);
  });
  each_other(mailboxes, [&](int worker) {
    double theirs;
    std::memcpy(&theirs, mailboxes.receive(worker, sizeof theirs), sizeof theirs);
    found |= theirs > 0;
  });
  return found;
}

void InterfaceMatrix::largest(Mailboxes& mailboxes, std::vector<double>& of_labels) {
  each_other(mailboxes, [&](int worker) {
    std::memcpy(mailboxes.outgoing(worker), of_labels.data(), of_labels.size() * sizeof(double));
    mailboxes.send(worker, of_labels.size() * sizeof(double));
  });
  each_other(mailboxes, [&](int worker) {
    const std::vector<int>& theirs = parts_[worker].label_set;
    const auto* in = static_cast<const double*>(mailboxes.receive(worker, theirs.size() * sizeof(double)));
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::size_t at = place_in(own_labels_, theirs[i]);
      if (at < own_labels_.size() && own_labels_[at] == theirs[i]) of_labels[at] = std::max(of_labels[at], in[i]);
    }
  });
}

}  // namespace lapjoint
