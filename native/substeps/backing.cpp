#include "substeps/backing.h"

#include <algorithm>
#include <cmath>

#include "assertions.h"
#include "substeps/union_find.h"

namespace lapjoint {

namespace {

constexpr double kSpare = 1.1, kMostBehind = 1e3;
constexpr double kHeld = 1e6;  // by how much heavier what the world holds is
// Where a cluster is at most so much heavier than its touched bodies, contacts are as they are anywhere: with 5 the
// largest eigenvalue is .93.
constexpr double kLeastBehind = 4;
constexpr int kPasses = 64;  // of powers, to find the largest eigenvalue
constexpr int kNone = -1;

// Adds a body's inertia about the world's origin, in the world's axes.
void add_body(const BodyState& state, const BodyTraits& traits, Backing::Inertia& into) {
  LAPJOINT_ASSERT(traits.inverse_mass > 0);
  const double mass = 1 / double(traits.inverse_mass);
  double x[3], square = 0, inertia[3][3] = {};
  for (int k = 0; k < 3; ++k) x[k] = double(state.position[k]), square += x[k] * x[k];
  for (int k = 0; k < 3; ++k) {
    if (!(traits.inverse_inertia[k] > 0)) continue;
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        inertia[r][c] +=
            double(state.axes[3 * r + k]) * double(state.axes[3 * c + k]) / double(traits.inverse_inertia[k]);
  }
  const double crossed[3][3] = {{0, -x[2], x[1]}, {x[2], 0, -x[0]}, {-x[1], x[0], 0}};
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) {
      into[6 * r + c] += r == c ? mass : 0;
      into[6 * r + 3 + c] -= mass * crossed[r][c];
      into[6 * (3 + r) + c] += mass * crossed[r][c];
      into[6 * (3 + r) + 3 + c] += inertia[r][c] + mass * ((r == c ? square : 0) - x[r] * x[c]);
    }
}

}  // namespace

double Backing::factor(const Inertia& whole, const Inertia& touched) {
  if (whole[0] < kLeastBehind * touched[0]) return 1;  // their masses
  Inertia lower = whole;                               // Cholesky
  for (int k = 0; k < 6; ++k)
    for (int i = k; i < 6; ++i) {
      double sum = lower[6 * i + k];
      for (int j = 0; j < k; ++j) sum -= lower[6 * i + j] * lower[6 * k + j];
      if (i == k && !(sum > 0)) return 1;
      lower[6 * i + k] = i == k ? std::sqrt(sum) : sum / lower[6 * k + k];
    }
  double v[6] = {1, 0.9, 1.1, 0.8, 1.2, 1.05}, most = 1;
  for (int pass = 0; pass < kPasses; ++pass) {  // v = L^-1 T L^-T v
    double u[6], w[6], square = 0;
    for (int i = 5; i >= 0; --i) {
      u[i] = v[i];
      for (int j = i + 1; j < 6; ++j) u[i] -= lower[6 * j + i] * u[j];
      u[i] /= lower[6 * i + i];
    }
    for (int i = 0; i < 6; ++i) {
      w[i] = 0;
      for (int j = 0; j < 6; ++j) w[i] += touched[6 * i + j] * u[j];
      for (int j = 0; j < i; ++j) w[i] -= lower[6 * i + j] * w[j];
      w[i] /= lower[6 * i + i];
      square += w[i] * w[i];
    }
    most = std::sqrt(square);
    if (!(most > 0)) return 1;
    for (int i = 0; i < 6; ++i) v[i] = w[i] / most;
  }
  return std::clamp(1 / (kSpare * most), 1.0, kMostBehind);
}

// ---- which --------------------------------------------------------------------------------------------------------

void Backing::define(const std::vector<JointDefinition>& own, const std::vector<std::vector<JointDefinition>>& between,
                     const std::vector<char>& is_ghost, const std::vector<int>& bodies, bool any_welds) {
  any_welds_ = any_welds;
  any_backed_ = bounces_ = false;
  parts_.clear();
  first_label_.clear();
  ties_.clear();
  own_.clear();
  between_.assign(between.size(), {});
  if (!any_welds) return;
  LAPJOINT_ASSERT(is_ghost.size() == bodies.size() && std::is_sorted(bodies.begin(), bodies.end()));
  numbers_ = bodies;
  is_ghost_ = is_ghost;
  const int fixed = static_cast<int>(bodies.size());
  UnionFind groups(fixed);
  std::vector<char> is_welded(fixed + 1, 0), is_held(fixed, 0);
  for (const JointDefinition& joint : own) {
    if (!joint.direct || !joint.welds()) continue;
    is_welded[joint.a] = is_welded[joint.b] = 1;
    if (joint.a < fixed && joint.b < fixed)
      groups.unite(joint.a, joint.b);
    else
      is_held[std::min(joint.a, joint.b)] = 1;
  }
  const auto own_end = [&](const JointDefinition& joint) { return is_ghost_[joint.a] ? joint.b : joint.a; };
  for (const auto& joints : between)
    for (const JointDefinition& joint : joints)
      if (joint.direct && joint.welds()) is_welded[own_end(joint)] = 1;
  for (const auto& joints : between)
    for (const JointDefinition& joint : joints)
      LAPJOINT_ASSERT(joint.a < fixed && joint.b < fixed && is_ghost_[joint.a] != is_ghost_[joint.b]);
  part_of_.assign(fixed + 1, kNone);
  for (int place = 0; place < fixed; ++place) {
    if (!is_welded[place]) continue;
    const int first = groups.find(place);  // the lowest of them
    if (part_of_[first] == kNone) {
      part_of_[first] = static_cast<int>(parts_.size());
      parts_.emplace_back();
      first_label_.push_back(bodies[first]);
    }
    part_of_[place] = part_of_[first];
    parts_[part_of_[place]].is_held |= is_held[place] != 0;
  }
  for (const auto& joints : between)
    for (const JointDefinition& joint : joints)
      if (joint.direct && joint.welds()) {
        ties_.push_back({joint.id, part_of_[own_end(joint)]});
        parts_[ties_.back().part].is_across = true;
      }
  is_backed_.assign(fixed + 1, 0);
  own_label_of_ = numbers_;
  own_label_of_.push_back(kNone);
  for (int place = 0; place < fixed; ++place)
    if (part_of_[place] != kNone) own_label_of_[place] = first_label_[part_of_[place]];
  label_of_ = own_label_of_;
}

void Backing::find(std::vector<Contact>& contacts, std::vector<int>& own, std::vector<std::vector<int>>& between,
                   const std::vector<Neighbour>& neighbours, const Bodies& bodies, Mailboxes* mailboxes) {
  any_backed_ = bounces_ = false;
  if (!any_welds_) return;
  LAPJOINT_ASSERT(part_of_.size() == bodies.motion.size());  // these are the bodies that it was defined for
  const int fixed = bodies.fixed();
  if (mailboxes) {
    for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p].label = first_label_[p];
    label_of_ = own_label_of_;
    exchange_labels(neighbours, *mailboxes);
  }

  drop_inner(contacts, own);
  for (std::vector<int>& order : between) drop_inner(contacts, order);

  is_touched_.assign(fixed + 1, 0);
  const auto touch = [&](const std::vector<int>& order) {
    for (const int number : order) {
      const Contact& contact = contacts[number];
      is_touched_[contact.a] = is_touched_[contact.b] = 1;
      if (contact.restitution > 0) bounces_ |= part_of_[contact.a] != kNone || part_of_[contact.b] != kNone;
    }
  };
  touch(own);
  for (const std::vector<int>& order : between) touch(order);
  add_inertias(bodies);
  factor_of_.assign(fixed + 1, 1.0);
  for (Part& part : parts_)
    if (!part.is_across) part.factor = part.counts ? factor(part.whole, part.touched) : 1;
  if (mailboxes) exchange_inertias(neighbours, *mailboxes);
  for (int place = 0; place < fixed; ++place)
    if (part_of_[place] != kNone && !is_ghost_[place]) factor_of_[place] = parts_[part_of_[place]].factor;

  std::fill(is_backed_.begin(), is_backed_.end(), 0);
  list(contacts, own, own_);
  for (std::size_t n = 0; n < between.size(); ++n) list(contacts, between[n], between_[n]);
}

void Backing::drop_inner(std::vector<Contact>& contacts, std::vector<int>& order) const {
  std::erase_if(order, [&](int number) {
    Contact& contact = contacts[number];
    if (label_of_[contact.a] != label_of_[contact.b]) return false;
    std::fill(contact.impulse, contact.impulse + Contact::kPoints, Real(0));
    std::fill(contact.tangential, contact.tangential + 3, Real(0));
    std::fill(contact.angular, contact.angular + 3, Real(0));
    return true;
  });
}

void Backing::add_inertias(const Bodies& bodies) {
  const auto each = [&](auto&& visit) {
    for (int place = 0; place < bodies.fixed(); ++place)
      if (part_of_[place] != kNone && !is_ghost_[place] && bodies.traits[place].inverse_mass > 0)
        visit(place, parts_[part_of_[place]]);
  };
  for (Part& part : parts_) part.mass = part.touched_mass = 0;
  each([&](int place, Part& part) {
    const double mass = 1 / double(bodies.traits[place].inverse_mass);
    part.mass += mass;
    if (is_touched_[place]) part.touched_mass += mass;
  });
  for (Part& part : parts_) {
    part.counts = part.touched_mass > 0 && (part.is_held || part.mass >= kLeastBehind * part.touched_mass);
    part.counts |= part.is_across;
    if (part.counts) part.whole.fill(0), part.touched.fill(0);
  }
  each([&](int place, Part& part) {
    if (!part.counts) return;
    add_body(bodies.start[place], bodies.traits[place], part.whole);
    if (is_touched_[place]) add_body(bodies.start[place], bodies.traits[place], part.touched);
  });
  for (Part& part : parts_)
    if (part.counts && part.is_held)
      for (double& entry : part.whole) entry *= kHeld;
}

void Backing::list(const std::vector<Contact>& contacts, const std::vector<int>& order, std::vector<Backed>& into) {
  LAPJOINT_ASSERT(factor_of_.back() == 1);  // of what cannot move
  into.clear();
  for (const int number : order)
    for (const int place : {contacts[number].a, contacts[number].b})
      if (factor_of_[place] > 1) into.push_back({place, Real(std::sqrt(factor_of_[place]))});
  std::sort(into.begin(), into.end(), [](const Backed& x, const Backed& y) { return x.place < y.place; });
  into.erase(std::unique(into.begin(), into.end(), [](const Backed& x, const Backed& y) { return x.place == y.place; }),
             into.end());
  for (const Backed& one : into) is_backed_[one.place] = 1;
  any_backed_ |= !into.empty();
}

}  // namespace lapjoint
