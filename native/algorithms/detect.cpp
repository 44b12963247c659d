#include "algorithms/detect.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace lapjoint {

namespace {

constexpr double kBodiesPerCell = 1.75;                // edge of a cell, in typical bodies
constexpr double kLeastSkin = 0.04, kMostSkin = 0.25;  // how much larger boxes are, in typical bodies
constexpr int kAllTogether = 8;     // once one in so many bodies was refit, it is cheaper to look up all at once
constexpr double kWayAhead = 1.5;   // of the last step: what a body may move in the next
constexpr double kFastShare = 0.4;  // less than a world's own (bullet/ahead.h): rounding decides nothing
constexpr double kStepsInSkin = 5;  // a moving body's box holds about so many steps

double typical_extent(const BodyBounds& bodies, double margin) {
  std::vector<double> extent(bodies.body_count);
  for (int b = 0; b < bodies.body_count; ++b)
    extent[b] = 2 * std::max({bodies.half[3 * b], bodies.half[3 * b + 1], bodies.half[3 * b + 2]}) + 2 * margin;
  if (extent.empty()) return 1;
  const auto middle = extent.begin() + extent.size() / 2;
  std::nth_element(extent.begin(), middle, extent.end());
  return *middle;
}

double square_distance(const double* p, const double* q) {
  double square = 0;
  for (int i = 0; i < 3; ++i) square += (p[i] - q[i]) * (p[i] - q[i]);
  return square;
}

}  // namespace

PairFinder::PairFinder(const BodyBounds& bodies, double margin, double timestep, double fall)
    : bodies_(bodies),
      margin_(margin),
      timestep_(timestep),
      fall_(fall),
      typical_(typical_extent(bodies, margin)),
      grid_(bodies.body_count, kBodiesPerCell * typical_),
      turn_reach_(bodies.body_count),
      last_(bodies.body_count),
      is_fast_(bodies.body_count, 0),
      moves_(timestep > 0 ? bodies.body_count : 0),
      turned_(bodies.body_count),
      way_(bodies.body_count),
      fits_(bodies.body_count),
      larger_(bodies.body_count),
      boxes_(bodies.body_count),
      box_step_(bodies.body_count, -1),
      is_marked_(bodies.body_count) {
  for (int b = 0; b < bodies.body_count; ++b) {
    const double *c = bodies.center + 3 * b, *h = bodies.half + 3 * b;
    const bool ball = std::all_of(h, h + 3, [&](double x) { return x == bodies.radius[b]; }) && !c[0] && !c[1] && !c[2];
    turn_reach_[b] = ball ? 0 : std::hypot(c[0], c[1], c[2]) + std::hypot(h[0], h[1], h[2]);
  }
}

// The box of a body along the world's axes.
PairFinder::Box PairFinder::box_at(const double* s, int body) const {
  Box box;
  if (is_fast_[body]) {  // however it turns
    const auto& moves = moves_[body];
    const double way = std::hypot(moves[0], moves[1], moves[2]);
    const double reach =
        bodies_.radius[body] + margin_ + fall_ + 1e-6 * (std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]) + way);
    box.radius = static_cast<float>(reach + way);
    for (int i = 0; i < 3; ++i) {
      box.position[i] = static_cast<float>(s[i]);
      box.low[i] = static_cast<float>(s[i] + std::min(moves[i], 0.0) - reach);
      box.high[i] = static_cast<float>(s[i] + std::max(moves[i], 0.0) + reach);
    }
    return box;
  }
  const double far = std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]);
  box.radius = static_cast<float>(bodies_.radius[body] + margin_ + 1e-6 * far);
  if (turn_reach_[body] == 0) {  // a ball
    for (int i = 0; i < 3; ++i) {
      box.position[i] = static_cast<float>(s[i]);
      box.low[i] = static_cast<float>(s[i] - box.radius);
      box.high[i] = static_cast<float>(s[i] + box.radius);
    }
    return box;
  }
  const double w = s[3], x = s[4], y = s[5], z = s[6];
  const double r[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                          {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                          {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
  const double* c = bodies_.center + 3 * body;
  const double* h = bodies_.half + 3 * body;
  for (int i = 0; i < 3; ++i) {
    const double middle = s[i] + r[i][0] * c[0] + r[i][1] * c[1] + r[i][2] * c[2];
    // No box is wider than the body's sphere.
    const double reach = std::min(std::abs(r[i][0]) * h[0] + std::abs(r[i][1]) * h[1] + std::abs(r[i][2]) * h[2],
                                  bodies_.radius[body] + std::abs(middle - s[i])) +
                         margin_;
    // Rounding to float must not make the box smaller.
    const double slack = 1e-6 * (std::abs(middle) + reach);
    box.low[i] = static_cast<float>(middle - reach - slack);
    box.high[i] = static_cast<float>(middle + reach + slack);
    box.position[i] = static_cast<float>(s[i]);
  }
  return box;
}

const PairFinder::Box& PairFinder::box(int body) {
  if (box_step_[body] != step_) {
    box_step_[body] = step_;
    boxes_[body] = box_at(last_[body].data(), body);
  }
  return boxes_[body];
}

void PairFinder::look_ahead(int body, const double* state) {
  const double *v = state + 7, *w = state + 10;
  const double limit = kFastShare * bodies_.thickness[body] / timestep_, radius = bodies_.radius[body];
  const double linear = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
  const double angular = radius * radius * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  const bool was_fast = is_fast_[body];
  is_fast_[body] = 2 * (linear + angular) > limit * limit && std::sqrt(linear) + std::sqrt(angular) > limit;
  if (is_fast_[body])
    for (int i = 0; i < 3; ++i) moves_[body][i] = timestep_ * v[i];
  if (is_fast_[body] || was_fast) mark(body);  // for what is looked for with it
}

void PairFinder::track(const double* states) {
  for (int b = 0; b < bodies_.body_count; ++b) {
    const double* s = states + 13 * static_cast<std::size_t>(b);
    if (timestep_ > 0) look_ahead(b, s);
    auto& last = last_[b];
    double way = std::sqrt(square_distance(s, last.data()));
    if (turn_reach_[b] > 0) {
      double turn = 0, dot = 0;
      for (int i = 3; i < 7; ++i) dot += s[i] * last[i];
      for (int i = 3; i < 7; ++i) {
        const double difference = dot < 0 ? s[i] + last[i] : s[i] - last[i];
        turn += difference * difference;
      }
      // A point at distance r moves by 2 r sin(angle / 2), which is at most 2 r |dq|.
      turn = 2 * turn_reach_[b] * std::sqrt(turn);
      turned_[b] += turn;
      way += turn;
    }
    way_[b] = way;
    std::copy(s, s + 7, last.begin());
    if (leaves_box(b, 0)) mark(b);
  }
}

// Whether the body may have left its larger box, or may leave it if it goes on for `way`.
bool PairFinder::leaves_box(int body, double way) const {
  const Fit& fit = fits_[body];
  const double room = fit.skin - (turned_[body] - fit.turned) - way;
  return !(room > 0 && square_distance(last_[body].data(), fit.position) < room * room);  // for NaN too
}

void PairFinder::mark(int body) {
  if (is_marked_[body]) return;
  is_marked_[body] = true;
  marked_.push_back(body);
}

// A larger box around the body as it is now: the larger, the faster it moves.
void PairFinder::fit(int body) {
  Fit& fit = fits_[body];
  const double speed = fit.skin < 0 ? 0 : way_[body];
  const double skin = std::clamp(kStepsInSkin * speed, kLeastSkin * typical_, kMostSkin * typical_);
  Box& larger = larger_[body] = box(body);
  for (int i = 0; i < 3; ++i) {
    larger.low[i] -= static_cast<float>(skin);
    larger.high[i] += static_cast<float>(skin);
  }
  grid_.insert(body, larger.low, larger.high);
  std::copy_n(last_[body].begin(), 3, fit.position);
  fit.turned = turned_[body];
  fit.skin = (1 - 1e-6) * skin;
}

bool PairFinder::may_touch(int a, int b) const {
  if (!(bodies_.group[a] & bodies_.mask[b]) || !(bodies_.group[b] & bodies_.mask[a])) return false;
  if (bodies_.ignored_count == 0) return true;
  const std::int64_t key = static_cast<std::int64_t>(std::min(a, b)) * bodies_.body_count + std::max(a, b);
  return !std::binary_search(bodies_.ignored, bodies_.ignored + bodies_.ignored_count, key);
}

// Whether all is seen of two bodies that has to be: some worker has both. Of a fast body all its workers have to see
// what it meets, or it goes through that in some.
bool PairFinder::is_seen(int a, int b, const Membership& membership) const {
  if (!is_fast_[a] && !is_fast_[b]) return membership.share(a, b);
  return std::equal(membership.row(a), membership.row(a) + membership.words, membership.row(b));
}

void PairFinder::meet(int a, int b, const Membership& membership) {
  if (is_marked_[b] && b < a) return;  // b's turn
  if (is_seen(a, b, membership)) return;
  const Box &p = larger_[a], &q = larger_[b];
  for (int i = 0; i < 3; ++i)
    if (p.low[i] > q.high[i] || q.low[i] > p.high[i]) return;
  if (!may_touch(a, b)) return;
  candidates_.push_back({std::min(a, b), std::max(a, b), {}, -1, 0});
}

// Brings the candidates up to date for the marked bodies and those with other workers than before.
std::size_t PairFinder::look_up(const Membership& membership) {
  const std::size_t size = static_cast<std::size_t>(membership.body_count) * membership.words;
  if (known_.size() != size) known_.assign(size, 0);
  for (int b = 0; b < membership.body_count; ++b) {
    Word* known = known_.data() + static_cast<std::size_t>(b) * membership.words;
    if (std::equal(known, known + membership.words, membership.row(b))) continue;
    std::copy_n(membership.row(b), membership.words, known);
    mark(b);
  }
  if (marked_.empty()) return candidates_.size();
  const auto marked = [&](const Candidate& pair) { return is_marked_[pair.a] || is_marked_[pair.b]; };
  const auto gone = std::stable_partition(candidates_.begin(), candidates_.end(), std::not_fn(marked));
  former_.assign(gone, candidates_.end());
  candidates_.erase(gone, candidates_.end());
  const std::size_t first = candidates_.size();
  for (const int body : marked_) grid_.each_near(body, [&](int other) { meet(body, other, membership); });
  for (const int body : marked_) is_marked_[body] = false;
  marked_.clear();
  recall(first);
  return first;
}

// What was known of pairs that were candidates before holds still: it is about the bodies, not about their boxes.
void PairFinder::recall(std::size_t first) {
  const auto before = [](const Candidate& p, const Candidate& q) { return p.a != q.a ? p.a < q.a : p.b < q.b; };
  std::erase_if(former_, [](const Candidate& pair) { return !(pair.apart > 0); });
  if (former_.empty()) return;
  std::sort(former_.begin(), former_.end(), before);
  for (std::size_t i = first; i < candidates_.size(); ++i) {
    const auto found = std::lower_bound(former_.begin(), former_.end(), candidates_[i], before);
    if (found != former_.end() && !before(candidates_[i], *found)) candidates_[i] = *found;
  }
}

void PairFinder::look_up_all(const Membership& membership) {
  grid_.clear();
  for (int b = 0; b < bodies_.body_count; ++b) fit(b);
  for (const int body : marked_) is_marked_[body] = false;
  marked_.clear();
  refit_count_ = 0;
  known_.assign(membership.bits, membership.bits + static_cast<std::size_t>(membership.body_count) * membership.words);
  former_.swap(candidates_);
  candidates_.clear();
  std::vector<Word> common(membership.words);
  grid_.each_bucket([&](const std::vector<int>& bodies, auto&& share_first_cell) {
    // Most buckets lie inside one worker, which sees all their pairs.
    std::copy_n(membership.row(bodies[0]), membership.words, common.begin());
    for (const int body : bodies)
      for (int k = 0; k < membership.words; ++k) common[k] &= membership.row(body)[k];
    if (std::any_of(common.begin(), common.end(), [](Word word) { return word != 0; })) return;
    for (std::size_t i = 0; i < bodies.size(); ++i)
      for (std::size_t j = i + 1; j < bodies.size(); ++j)
        if (!membership.share(bodies[i], bodies[j]) && !is_fast_[bodies[i]] && !is_fast_[bodies[j]] &&
            share_first_cell(i, j))
          meet(bodies[i], bodies[j], membership);
  });
  std::vector<int> apart = grid_.large();  // and fast ones: pairs that a bucket has not
  for (const int body : apart) is_marked_[body] = true;
  for (int b = 0; timestep_ > 0 && b < bodies_.body_count; ++b) {
    if (!is_fast_[b] || is_marked_[b]) continue;
    is_marked_[b] = true;
    apart.push_back(b);
  }
  for (const int body : apart) grid_.each_near(body, [&](int other) { meet(body, other, membership); });
  for (const int body : apart) is_marked_[body] = false;
  recall(0);
}

bool PairFinder::still_apart(const Candidate& pair) const {
  const double room = pair.apart - (turned_[pair.a] + turned_[pair.b] - pair.turned);
  if (!(room > 0)) return false;
  double square = 0;
  for (int i = 0; i < 3; ++i) {
    const double moved = last_[pair.a][i] - last_[pair.b][i] - pair.offset[i];
    square += moved * moved;
  }
  return square < room * room;
}

void PairFinder::set_apart(Candidate& pair, double distance) {
  double size = 0;
  for (int i = 0; i < 3; ++i) {
    const double offset = last_[pair.a][i] - last_[pair.b][i];
    pair.offset[i] = static_cast<float>(offset);
    size += std::abs(offset);
  }
  pair.turned = turned_[pair.a] + turned_[pair.b];
  pair.apart = static_cast<float>((1 - 1e-6) * distance - 1e-6 * size);  // what rounding may have hidden
}

bool PairFinder::near(Candidate& pair) {
  const bool is_fast = is_fast_[pair.a] || is_fast_[pair.b];  // what it is apart from now says nothing of later
  if (!is_fast && still_apart(pair)) return false;
  const Box &p = box(pair.a), &q = box(pair.b);
  float square = 0, apart = 0;
  for (int i = 0; i < 3; ++i) {
    apart = std::max({apart, p.low[i] - q.high[i], q.low[i] - p.high[i]});
    square += (p.position[i] - q.position[i]) * (p.position[i] - q.position[i]);
  }
  const float reach = p.radius + q.radius;
  if (square > reach * reach) apart = std::max(apart, std::sqrt(square) - reach);
  if (apart > 0 && !is_fast) set_apart(pair, 0.999 * apart);
  return !(apart > 0);
}

std::vector<PairFinder::Pair> PairFinder::answer() {
  std::sort(asked_.begin(), asked_.end(), [&](int i, int j) {
    const Candidate &p = candidates_[i], &q = candidates_[j];
    return p.a != q.a ? p.a < q.a : p.b < q.b;
  });
  std::vector<Pair> out;
  out.reserve(asked_.size());
  for (const int i : asked_) out.push_back({candidates_[i].a, candidates_[i].b});
  return out;
}

// Larger boxes for the marked bodies, and the candidates brought up to date.
void PairFinder::refresh(const Membership& membership) {
  refit_count_ += static_cast<int>(marked_.size());
  if (kAllTogether * refit_count_ > bodies_.body_count) return look_up_all(membership);
  for (const int body : marked_) fit(body);
  look_up(membership);
}

std::vector<PairFinder::Pair> PairFinder::find(const double* states, const Membership& membership) {
  ++step_;
  track(states);
  refresh(membership);
  asked_.clear();
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (near(candidates_[i])) asked_.push_back(static_cast<int>(i));
  return answer();
}

std::vector<PairFinder::Pair> PairFinder::find_again(const int* changed, int count, const Membership& membership) {
  asked_.clear();
  if (count == 0) return {};
  for (int i = 0; i < count; ++i) mark(changed[i]);
  const std::size_t first = look_up(membership);  // their candidates are the newest
  for (int i = 0; i < count; ++i) is_marked_[changed[i]] = true;
  for (std::size_t i = first; i < candidates_.size(); ++i)
    if ((is_marked_[candidates_[i].a] || is_marked_[candidates_[i].b]) && near(candidates_[i]))
      asked_.push_back(static_cast<int>(i));
  for (int i = 0; i < count; ++i) is_marked_[changed[i]] = false;
  return answer();
}

void PairFinder::prepare(const Membership& membership) {
  for (int b = 0; b < bodies_.body_count; ++b)
    if (leaves_box(b, kWayAhead * way_[b])) mark(b);
  asked_.clear();
  refresh(membership);
}

void PairFinder::keep_apart(const double* gaps, int count) {
  for (int i = 0; i < count && i < static_cast<int>(asked_.size()); ++i) {
    Candidate& pair = candidates_[asked_[i]];
    if (gaps[i] > 0 && !is_fast_[pair.a] && !is_fast_[pair.b]) set_apart(pair, gaps[i]);
  }
}

}  // namespace lapjoint
