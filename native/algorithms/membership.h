// Who simulates what: rows of bits, one row per body, one bit per worker. Twin: src/lapjoint/algorithms/membership.py
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace lapjoint {

using Word = std::uint64_t;

constexpr int kMaxWords = 16;  // 1024 workers

// A set of workers, without allocation.
class Workers {
 public:
  explicit Workers(int words) : words_(words) {}
  Workers(const Word* bits, int words) : words_(words) { std::copy(bits, bits + words, bits_.begin()); }

  bool operator==(const Workers& other) const { return std::equal(data(), data() + words_, other.data()); }
  bool has(int worker) const { return bits_[worker / 64] >> (worker % 64) & 1; }
  void erase(int worker) { bits_[worker / 64] &= ~(Word{1} << (worker % 64)); }
  int count() const {
    int total = 0;
    for (int i = 0; i < words_; ++i) total += std::popcount(bits_[i]);
    return total;
  }
  bool meets(const Word* other) const {
    for (int i = 0; i < words_; ++i)
      if (bits_[i] & other[i]) return true;
    return false;
  }
  bool contains(const Word* other) const {
    for (int i = 0; i < words_; ++i)
      if (other[i] & ~bits_[i]) return false;
    return true;
  }
  void add(const Word* other) {
    for (int i = 0; i < words_; ++i) bits_[i] |= other[i];
  }
  void keep(const Word* other) {
    for (int i = 0; i < words_; ++i) bits_[i] &= other[i];
  }
  void remove(const Workers& other) {
    for (int i = 0; i < words_; ++i) bits_[i] &= ~other.bits_[i];
  }
  // Calls visit(worker), ascending.
  template <typename Visit>
  void each(Visit&& visit) const {
    for (int i = 0; i < words_; ++i)
      for (Word word = bits_[i]; word; word &= word - 1) visit(64 * i + std::countr_zero(word));
  }
  const Word* data() const { return bits_.data(); }

 private:
  int words_;
  std::array<Word, kMaxWords> bits_{};
};

// A view of the Python object's arrays; changes go into them.
struct Membership {
  int body_count = 0;
  int words = 0;
  Word* bits = nullptr;  // body_count x words
  // What balancing evens out; not needed by those who only read the bits.
  std::int64_t* load = nullptr;        // per worker: rate x the costs of its bodies
  const std::int64_t* rate = nullptr;  // per worker
  const std::int64_t* cost = nullptr;  // per body

  const Word* row(int body) const { return bits + static_cast<std::size_t>(body) * words; }
  Word* row(int body) { return bits + static_cast<std::size_t>(body) * words; }
  Workers workers(int body) const { return {row(body), words}; }
  int worker_count_of(int body) const {
    int total = 0;
    for (int i = 0; i < words; ++i) total += std::popcount(row(body)[i]);
    return total;
  }
  bool share(int a, int b) const {
    for (int i = 0; i < words; ++i)
      if (row(a)[i] & row(b)[i]) return true;
    return false;
  }
  // Both in the same worker and no other, as most bodies that touch are.
  bool same_single(int a, int b) const { return std::equal(row(a), row(a) + words, row(b)) && worker_count_of(a) == 1; }
  void activate(const Workers& workers, int body) {
    Word* own = row(body);
    for (int i = 0; i < words; ++i) {
      for (Word fresh = workers.data()[i] & ~own[i]; fresh; fresh &= fresh - 1)
        add_load(64 * i + std::countr_zero(fresh), cost[body]);
      own[i] |= workers.data()[i];
    }
  }
  void deactivate(int worker, int body) {
    Word& word = row(body)[worker / 64];
    const Word bit = Word{1} << (worker % 64);
    if (word & bit) add_load(worker, -cost[body]);
    word &= ~bit;
  }
  void add_load(int worker, std::int64_t amount) { load[worker] += rate[worker] * amount; }
  std::int64_t total_load(const Workers& workers) const {
    std::int64_t total = 0;
    workers.each([&](int w) { total += load[w]; });
    return total;
  }
};

}  // namespace lapjoint
