#include "bullet/substeps.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>
#include <tuple>

#include "assertions.h"

namespace lapjoint {

namespace {

constexpr int kPartsAhead = 1 << 8;  // from which a manifold's parts are of a contact that comes within the step
constexpr btScalar kSameNormal = btScalar(0.9998);  // cosine: points whose normals differ by less are one contact

void put(const btVector3& from, Real* into) {
  for (int k = 0; k < 3; ++k) into[k] = from[k];
}

btVector3 get(const Real* from) { return {from[0], from[1], from[2]}; }

// By which contacts are ordered.
std::uint64_t contact_key(std::uint64_t bodies, std::uint64_t parts) {
  return scattered_key(bodies ^ scattered_key(parts));
}

// By the upper half of the keys, which tell nearly all apart: three passes of eleven bits.
void sort_by_key(std::vector<std::pair<std::uint64_t, int>>& entries,
                 std::vector<std::pair<std::uint64_t, int>>& scratch) {
  constexpr int kBits = 11, kSize = 1 << kBits;
  scratch.resize(entries.size());
  for (int shift = 64 - 3 * kBits; shift < 64; shift += kBits) {
    int start[kSize] = {};
    const auto digit = [shift](std::uint64_t key) { return static_cast<int>(key >> shift) & (kSize - 1); };
    for (const auto& [key, number] : entries) ++start[digit(key)];
    int sum = 0;
    for (int& one : start) sum += std::exchange(one, sum);
    for (const auto& entry : entries) scratch[start[digit(entry.first)]++] = entry;
    entries.swap(scratch);
  }
  LAPJOINT_ASSERT(std::is_sorted(entries.begin(), entries.end(),
                                 [](const auto& x, const auto& y) { return x.first >> 31 < y.first >> 31; }));
}

}  // namespace

SubstepWorld::SubstepWorld(const SubstepSettings& settings, double length_unit, double mass_unit)
    : length_unit_(length_unit), mass_unit_(mass_unit) {
  solver_.settings = settings;
  solver_.bodies.resize(0, false);
}

void SubstepWorld::set_tables(int body_count, const JointColumns& joints) {
  LAPJOINT_ASSERT(joints.count >= static_cast<int>(locked_.size()) &&
                  body_count >= static_cast<int>(axis_counts_.size()));
  columns_ = joints;
  axis_counts_.resize(body_count, 0);
  for (int j = static_cast<int>(locked_.size()); j < joints.count; ++j) {
    add_axes(j);
    ties_.push_back(locked_[j] != 0 || std::any_of(axes_.begin() + first_axis_.back(), axes_.end(),
                                                   [](const AxisDefinition& axis) { return axis.ties(); }));
    first_axis_.push_back(static_cast<int>(axes_.size()));
    for (const int body : {joints.body_a[j], joints.body_b[j]})
      if (body >= 0) axis_counts_[body] += first_axis_[j + 1] - first_axis_[j];
    const bool keeps = counts_turns(j) || joints.kind[j] == JointColumns::kGear;
    const int kept = joints.bonds.keeps_load(j) ? kLoadValues : keeps;
    first_impulse_.push_back(first_impulse_.back() + 6 + first_axis_[j + 1] - first_axis_[j] + kept);
    if (counts_turns(j)) counted_.push_back({j, first_impulse_.back() - 1, 0});
  }
  LAPJOINT_ASSERT(static_cast<int>(first_axis_.size()) == joints.count + 1 &&
                  first_impulse_.size() == first_axis_.size());
  solver_.joint_impulses.resize(first_impulse_.back(), 0);
  if (static_cast<int>(structures_.joint_count()) == joints.count) {
    structures_.add_bodies(body_count);
    return;
  }
  std::vector<Tie> ties;
  for (int j = 0; j < joints.count; ++j) {
    Tie& tie = ties.emplace_back();
    tie.ends = {joints.body_a[j], joints.body_b[j]};
    tie.row_count = ties_[j] ? std::max(std::popcount(locked_[j]), 1) : 0;
    tie.is_bond = joints.bonds.has(j);
    tie.may_break = joints.breaks(j);
    tie.welds = locked_[j] == 63 && !(tie.is_bond && joints.bonds.is_elastic[j]);
    tie.bounded_rows =
        static_cast<int>(std::count_if(axes_.begin() + first_axis_[j], axes_.begin() + first_axis_[j + 1],
                                       [](const AxisDefinition& axis) { return axis.has_bounds(); }));
  }
  structures_.define(body_count, std::move(ties));
}

JointDefinition SubstepWorld::define_joint(const LiveJoint& from) const {
  const auto put_frame = [&](const double* frame, const btQuaternion& turn, Real* place, Real* axes) {
    const double unit = length_unit_;
    const btVector3 origin(btScalar(frame[0] / unit), btScalar(frame[1] / unit), btScalar(frame[2] / unit));
    const btQuaternion own{btScalar(frame[4]), btScalar(frame[5]), btScalar(frame[6]), btScalar(frame[3])};
    const btTransform in_body = btTransform(turn.inverse()) * btTransform(own, origin);
    put(in_body.getOrigin(), place);
    for (int k = 0; k < 9; ++k) axes[k] = in_body.getBasis()[k / 3][k % 3];
  };
  JointDefinition joint;
  joint.id = from.id;
  joint.a = from.a;
  joint.b = from.b;
  joint.locked = locked_[from.id];
  joint.ties = ties_[from.id] != 0;
  joint.may_break = columns_.breaks(from.id);
  put_frame(columns_.frame_a + 7 * from.id, from.turn_a, joint.place_a, joint.axes_a);
  put_frame(columns_.frame_b + 7 * from.id, from.turn_b, joint.place_b, joint.axes_b);
  joint.first_axis = first_axis_[from.id];
  joint.axis_count = first_axis_[from.id + 1] - joint.first_axis;
  joint.first_impulse = first_impulse_[from.id];
  joint.keeps = first_impulse_[from.id + 1] == joint.kept_place() + 1;
  joint.ratio = Real(columns_.gear_ratio[from.id]);
  if (columns_.bonds.has(from.id)) {
    joint.bond = columns_.bonds.is_rigid(from.id) ? JointDefinition::kRigid : JointDefinition::kElastic;
    joint.bond_damping_time = columns_.bonds.damping_time[from.id];
    for (int k = 0; k < 4; ++k)
      joint.bond_stiffness[k] = columns_.bonds.stiffness[4 * static_cast<std::size_t>(from.id) + k] /
                                (mass_unit_ * (k ? length_unit_ * length_unit_ : 1));
  }
  const int ends[2] = {columns_.body_a[from.id], columns_.body_b[from.id]};
  joint.shares = std::any_of(ends, ends + 2, [&](int body) { return body >= 0 && axis_counts_[body] > 1; });
  return joint;
}

void SubstepWorld::set_joints(const std::vector<LiveJoint>& live, int self, std::vector<Neighbour> neighbours,
                              const std::vector<int>& whole, const std::vector<int>& parted, bool stale) {
  const int fixed = static_cast<int>(bodies_.size());
  is_first_.clear();
  for (const Neighbour& neighbour : neighbours) is_first_.push_back(self < neighbour.worker);
  std::vector<JointDefinition> own;
  std::vector<std::vector<JointDefinition>> between(neighbours.size());
  for (const LiveJoint& from : live) {
    const int owner = owner_of(from.a, from.b);
    if (owner == kNobody && stale) continue;
    if (owner == kNobody)
      throw std::invalid_argument("joint " + std::to_string(from.id) +
                                  " is between workers that do not share its bodies");
    (owner == kOwn ? own : between[owner]).push_back(define_joint(from));
  }
  measured_joints_ = own;
  for (std::size_t n = 0; n < between.size(); ++n)
    if (is_first_[n]) measured_joints_.insert(measured_joints_.end(), between[n].begin(), between[n].end());
  if (solver_.settings.keep_forces) solver_.wrenches.define(measured_joints_, axes_);
  breakable_.clear();
  const auto collect_breakable = [&](const std::vector<JointDefinition>& from, bool is_reported) {
    for (const JointDefinition& joint : from)
      if (columns_.breaks(joint.id)) breakable_.push_back({joint, is_reported});
  };
  collect_breakable(own, true);
  for (std::size_t n = 0; n < between.size(); ++n) collect_breakable(between[n], is_first_[n]);
  std::sort(breakable_.begin(), breakable_.end(),
            [](const Breakable& x, const Breakable& y) { return x.joint.id < y.joint.id; });
  joint_ends_.clear();
  driven_.clear();
  const auto is_driven = [&](const AxisDefinition& axis) {
    return axis.kind == AxisDefinition::kMotor || axis.kind == AxisDefinition::kSpring ||
           axis.kind == AxisDefinition::kDrive;
  };
  const auto collect_work = [&](const std::vector<JointDefinition>& from, bool is_reported) {
    for (const JointDefinition& joint : from) {
      if (joint.a != fixed && joint.b != fixed) joint_ends_.emplace_back(joint.a, joint.b);
      const auto first = axes_.begin() + joint.first_axis;
      if (is_reported && std::any_of(first, first + joint.axis_count, is_driven)) driven_.push_back(joint);
    }
  };
  collect_work(own, true);
  for (std::size_t n = 0; n < between.size(); ++n) collect_work(between[n], is_first_[n]);
  solver_.sums_joints = !breakable_.empty() || !driven_.empty();
  // Structures that are not here as a whole: what is little work for a part may be much for the whole, and the parts of
  // several workers have to be solved alike. Those with joints to other workers are chosen below.
  const JointChoice choice = solver_.settings.joints;
  std::vector<JointChoice> choices(fixed + 1, choice);
  for (const int place : choice == JointChoice::kAuto ? parted : std::vector<int>()) {
    const bool fits = structures_.fits(structures_.label(bodies_[place]->getUserIndex()), choice);
    choices[place] = fits ? JointChoice::kDirect : JointChoice::kSwept;
  }
  for (const auto& joints : between)
    for (const JointDefinition& joint : joints)
      if (joint.ties) choices[joint.a] = choices[joint.b] = JointChoice::kSwept;
  solver_.direct_joints.choose(own, axes_, choice, choices, fixed);
  std::vector<int> numbers, labels, wanted;
  std::vector<char> is_ghost;
  for (const btRigidBody* body : bodies_) {
    numbers.push_back(body->getUserIndex());
    labels.push_back(structures_.label(body->getUserIndex()));
    is_ghost.push_back(ghost_of_[is_ghost.size()] != kOwn);
  }
  for (const int label : whole)
    if (structures_.fits(label, choice)) wanted.push_back(label);
  bool is_bonded = false, may_break = false;
  for (const int label : wanted) {
    is_bonded |= structures_.is_bonded(label);
    may_break |= structures_.may_break(label);
  }
  solver_.direct_joints.choose_shared(own, between, is_first_, is_ghost, numbers, labels, wanted);
  int bounded_rows = 0;
  for (const int label : wanted) bounded_rows += structures_.bounded_rows(label);
  solver_.direct_joints.set_shared_bounds(bounded_rows);
  solver_.direct_joints.set_shared_bonds(is_bonded, may_break);
  solver_.direct_joints.set_asks(!structures_.empty() && choice != JointChoice::kSwept);
  solver_.backing.define(own, between, is_ghost, numbers, structures_.has_welds() && choice != JointChoice::kSwept);
  solver_.joints.define(std::move(own), axes_, fixed);
  solver_.between.define(std::move(neighbours), std::move(between), axes_, fixed);
}

// ---- contacts ------------------------------------------------------------------------------------------------------

bool SubstepWorld::Kept::replaces(const Source& source) const {
  return count == 1 && source.count == 1 && source.manifold->getContactPoint(source.points[0]).m_lifeTime == 0;
}

int SubstepWorld::owner_of(int a, int b) const {
  LAPJOINT_ASSERT(a >= 0 && b >= 0 && std::max(a, b) < static_cast<int>(ghost_of_.size()));
  const int of_a = ghost_of_[a], of_b = ghost_of_[b];
  if (of_a == kOwn && of_b == kOwn) return kOwn;
  if (of_a != kOwn && of_b != kOwn) return kNobody;
  const int owner = std::max(of_a, of_b), own = of_a == kOwn ? a : b;
  return is_border_[owner][own] ? owner : kNobody;
}

int SubstepWorld::place_of(int number) const {
  return number < kStaticBase ? members_[number].place : static_cast<int>(bodies_.size());
}

int SubstepWorld::split(btPersistentManifold& manifold, int ahead, Source* into) {
  const int points = manifold.getNumContacts();
  int count = 0;
  Source source;
  source.owner = kOwn;
  std::tie(source.name.bodies, source.name.parts) = manifold_key(manifold);
  source.name.key = contact_key(source.name.bodies, source.name.parts);
  source.manifold = &manifold;
  source.ahead = ahead;
  unsigned left = (1u << points) - 1;
  for (source.name.part = ahead == Source::kThere ? 0 : kPartsAhead; left != 0; ++source.name.part) {
    source.count = 0;
    const btVector3* normal = nullptr;
    for (int p = 0; p < points; ++p) {
      if (!(left >> p & 1)) continue;
      const btVector3& own = manifold.getContactPoint(p).m_normalWorldOnB;
      if (normal && normal->dot(own) < kSameNormal) continue;
      if (!normal) normal = &own;
      source.points[source.count++] = static_cast<std::uint8_t>(p);
      left &= ~(1u << p);
    }
    into[count++] = source;
  }
  return count;
}

void SubstepWorld::add_sources(btPersistentManifold& manifold, int ahead) {
  const auto [number_a, number_b] = manifold_bodies(manifold);
  const int owner = owner_of(place_of(number_a), place_of(number_b));
  if (owner == kNobody) {  // here and in no other worker: it starts from nothing, should it ever count
    manifold.clearManifold();
    return;
  }
  Source found[MANIFOLD_CACHE_SIZE];
  const int count = split(manifold, ahead, found);
  for (int i = 0; i < count; ++i) {
    found[i].owner = owner;
    sorted_.emplace_back(found[i].name.key, static_cast<int>(sources_.size()));
    sources_.push_back(found[i]);
  }
}

void SubstepWorld::collect(btDispatcher& dispatcher) {
  sources_.clear();
  sorted_.clear();
  const int count = dispatcher.getNumManifolds();
  btPersistentManifold** manifolds = dispatcher.getInternalManifoldPointer();
  const bool some_pass = !ahead_->passed.empty();
  for (int i = 0; i < count; ++i) {
    btPersistentManifold* manifold = manifolds[i];
    if (manifold->getNumContacts() == 0) continue;
    if (islands_) {
      const auto [number_a, number_b] = manifold_bodies(*manifold);
      if (is_asleep(number_a) || is_asleep(number_b)) continue;
    }
    if (some_pass && ahead_->passes(*manifold)) {
      for (int p = 0; p < manifold->getNumContacts(); ++p) manifold->getContactPoint(p).m_appliedImpulse = 0;
      continue;
    }
    add_sources(*manifold, Source::kThere);
  }
  for (std::size_t i = 0; i < ahead_->contacts.size(); ++i)
    add_sources(*ahead_->contacts[i].manifold, static_cast<int>(i));
  sort_by_key(sorted_, scratch_);
  // Few have the same key.
  for (std::size_t i = 1; i < sorted_.size(); ++i)
    for (std::size_t k = i; k > 0 && sources_[sorted_[k].second].name < sources_[sorted_[k - 1].second].name; --k)
      std::swap(sorted_[k], sorted_[k - 1]);
  LAPJOINT_ASSERT(std::is_sorted(sorted_.begin(), sorted_.end(), [this](const auto& x, const auto& y) {
    return sources_[x.second].name < sources_[y.second].name;
  }));
}

void SubstepWorld::read_contacts() {
  const int fixed = static_cast<int>(bodies_.size());
  std::vector<Contact>& contacts = solver_.contacts;
  contacts.resize(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    btPersistentManifold& manifold = *source.manifold;
    Contact& contact = contacts[i];
    const auto member = [&](int number, const btCollisionObject* object) {
      return number < kStaticBase ? members_[number] : Member{fixed, object->getRollingFriction()};
    };
    const auto [number_a, number_b] = manifold_bodies(manifold);
    const Member a = member(number_a, manifold.getBody0()), b = member(number_b, manifold.getBody1());
    contact.a = a.place;
    contact.b = b.place;
    const int number = std::max(number_a, number_b) - kStaticBase;
    const bool may_move = number >= 0 && number < static_cast<int>(surface_of_.size());
    contact.surface = may_move ? surface_of_[number] : Contact::kStill;
    contact.shift = source.ahead;
    contact.point_count = source.count;
    contact.rolling = a.rolling + b.rolling;
    btVector3 normal(0, 0, 0);
    for (int k = 0; k < source.count; ++k) {
      const btManifoldPoint& point = manifold.getContactPoint(source.points[k]);
      normal += point.m_normalWorldOnB;
      put(point.getPositionWorldOnB(), contact.place[k]);
      contact.distance[k] = point.getDistance();
      contact.impulse[k] = point.m_appliedImpulse;
      if (k == 0) {
        contact.friction = point.m_combinedFriction;
        contact.restitution = point.m_combinedRestitution;
      }
    }
    put(source.count == 1 ? normal : normal.normalized(), contact.normal);
    const btManifoldPoint& point = manifold.getContactPoint(source.points[0]);
    if (part_surfaces_ && !(point.m_contactPointFlags & kCore)) {
      const CombinedSurface own = part_surfaces_->combine({number_a, point.m_index0}, {number_b, point.m_index1});
      contact.friction = own.friction;
      contact.restitution = own.restitution;
      contact.rolling = own.rolling;
    }
  }
  solver_.contact_order.clear();
  for (std::vector<int>& order : solver_.between.contact_orders) order.clear();
  LAPJOINT_ASSERT(
      std::is_sorted(kept_.begin(), kept_.end(), [](const Kept& x, const Kept& y) { return x.name < y.name; }));
  std::size_t at = 0;  // both lists are in the same order
  for (const auto& [key, number] : sorted_) {
    const int owner = sources_[number].owner;
    (owner == kOwn ? solver_.contact_order : solver_.between.contact_orders[owner]).push_back(number);
    const Name& name = sources_[number].name;
    while (at < kept_.size() && kept_[at].name < name) ++at;
    const bool same = at < kept_.size() && kept_[at].name == name;
    Contact& contact = contacts[number];
    contact.is_new = !same;
    if (same && kept_[at].replaces(sources_[number])) contact.impulse[0] = kept_[at].normal;
    for (int k = 0; k < 3; ++k) {
      contact.tangential[k] = same ? kept_[at].tangential[k] : 0;
      contact.angular[k] = same ? kept_[at].angular[k] : 0;
    }
  }
}

void SubstepWorld::set_surfaces(const std::vector<int>& numbers, const std::vector<const btRigidBody*>& bodies,
                                std::vector<Surface> surfaces) {
  moving_statics_ = bodies;
  LAPJOINT_ASSERT(numbers.size() == surfaces.size() && std::is_sorted(numbers.begin(), numbers.end()));
  surface_of_.assign(numbers.empty() ? 0 : numbers.back() + 1, Contact::kStill);
  for (std::size_t i = 0; i < numbers.size(); ++i) surface_of_[numbers[i]] = static_cast<int>(i);
  solver_.surfaces = std::move(surfaces);
}

void SubstepWorld::write_back() {
  LAPJOINT_ASSERT(solver_.contacts.size() == sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    for (int k = 0; k < source.count; ++k)
      source.manifold->getContactPoint(source.points[k]).m_appliedImpulse = solver_.contacts[i].impulse[k];
  }
  kept_.clear();
  for (const auto& [key, number] : sorted_) {
    if (sources_[number].ahead != Source::kThere) continue;
    const Contact& contact = solver_.contacts[number];
    Kept& kept = kept_.emplace_back();
    kept.name = sources_[number].name;
    kept.count = contact.point_count;
    kept.normal = contact.impulse[0];
    std::copy(contact.tangential, contact.tangential + 3, kept.tangential);
    std::copy(contact.angular, contact.angular + 3, kept.angular);
  }
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    if (ghost_of_[i] != kOwn) continue;
    const BodyState& state = solver_.bodies.start[i];
    btTransform& place = bodies_[i]->getWorldTransform();
    place.setOrigin(get(state.position));
    for (int k = 0; k < 3; ++k) place.getBasis()[k] = get(state.axes + 3 * k);
    bodies_[i]->setLinearVelocity(get(state.linear));
    bodies_[i]->setAngularVelocity(get(state.angular));
  }
}

// `kept`: what is kept of it, or null.
void SubstepWorld::save_to_points(const Source& source, const Kept* kept) {
  if (kept && kept->replaces(source))
    source.manifold->getContactPoint(source.points[0]).m_appliedImpulse = kept->normal;
  for (int p = 0; p < source.count; ++p) {
    btManifoldPoint& point = source.manifold->getContactPoint(source.points[p]);
    const bool is_first = p == 0 && kept;
    point.m_contactPointFlags = is_first ? kWasThere : 0;
    each_kept(point, [&](int k, btScalar& value) {
      value = !is_first ? 0 : k < 3 ? kept->tangential[k] : kept->angular[k - 3];
    });
  }
}

void SubstepWorld::load_from_points(const Source& source, std::vector<Kept>& into) {
  btManifoldPoint& first = source.manifold->getContactPoint(source.points[0]);
  if (!(first.m_contactPointFlags & kWasThere)) return;
  Kept& kept = into.emplace_back();
  kept.name = source.name;
  kept.count = source.count;
  kept.normal = first.m_appliedImpulse;
  each_kept(first, [&](int k, btScalar& value) { (k < 3 ? kept.tangential[k] : kept.angular[k - 3]) = value; });
}

void SubstepWorld::save_to_points(btDispatcher& dispatcher) {
  ahead_->forget();  // of a step, and no part of the state
  collect(dispatcher);
  passed_.clear();
  std::size_t at = 0;
  for (const auto& [key, number] : sorted_) {
    const Source& source = sources_[number];
    for (; at < kept_.size() && kept_[at].name < source.name; ++at) passed_.push_back(kept_[at]);
    const bool same = at < kept_.size() && kept_[at].name == source.name;
    save_to_points(source, same ? &kept_[at] : nullptr);
    at += same;
  }
  passed_.insert(passed_.end(), kept_.begin() + static_cast<std::ptrdiff_t>(at), kept_.end());
}

void SubstepWorld::read_passed(int* numbers, btScalar* values) const {
  for (const Kept& kept : passed_) {
    for (const std::uint64_t pair : {kept.name.bodies, kept.name.parts})
      for (const std::uint64_t one : {pair >> 32, pair & 0xFFFFFFFFu})
        *numbers++ = pair == kept.name.bodies ? scene_number(one) : static_cast<int>(static_cast<std::uint32_t>(one));
    *numbers++ = kept.name.part;
    *numbers++ = kept.count;
    *values++ = kept.normal;
    values = std::copy(kept.tangential, kept.tangential + 3, values);
    values = std::copy(kept.angular, kept.angular + 3, values);
  }
}

void SubstepWorld::add_passed(const int* numbers, const btScalar* values, int count) {
  for (int i = 0; i < count; ++i, numbers += kPassedNumbers, values += kPassedValues) {
    Kept& kept = kept_.emplace_back();
    const auto broadphase_number = [](int body) { return body < 0 ? kStaticBase + (-1 - body) : body; };
    kept.name.bodies = pair_key(broadphase_number(numbers[0]), broadphase_number(numbers[1]));
    kept.name.parts = pair_key(numbers[2], numbers[3]);
    kept.name.key = contact_key(kept.name.bodies, kept.name.parts);
    kept.name.part = numbers[4];
    kept.count = numbers[5];
    kept.normal = values[0];
    std::copy_n(values + 1, 3, kept.tangential);
    std::copy_n(values + 4, 3, kept.angular);
  }
  std::sort(kept_.begin(), kept_.end(), [](const Kept& x, const Kept& y) { return x.name < y.name; });
  const auto twins = [](const Kept& x, const Kept& y) { return x.name == y.name; };
  kept_.erase(std::unique(kept_.begin(), kept_.end(), twins), kept_.end());
}

void SubstepWorld::load_from_points(btDispatcher& dispatcher) {
  ahead_->forget();
  collect(dispatcher);
  std::vector<Kept> loaded;
  for (const auto& [key, number] : sorted_) load_from_points(sources_[number], loaded);
  kept_.clear();
  std::set_union(loaded.begin(), loaded.end(), passed_.begin(), passed_.end(), std::back_inserter(kept_),
                 [](const Kept& x, const Kept& y) { return x.name < y.name; });
}

void SubstepWorld::forget_contacts_of(const std::vector<char>& marked_by_id) {
  std::erase_if(kept_, [&](const Kept& kept) {
    for (const std::uint64_t end : {kept.name.bodies >> 32, kept.name.bodies & 0xFFFFFFFFu})
      if (end < static_cast<std::uint64_t>(kStaticBase) && marked_by_id[end]) return true;
    return false;
  });
}

// ---- joints' impulses ----------------------------------------------------------------------------------------------

int SubstepWorld::joint_impulse_count(const std::vector<int>& live) const {
  int count = 0;
  for (const int id : live) count += first_impulse_[id + 1] - first_impulse_[id];
  return count;
}

void SubstepWorld::read_joint_impulses(const std::vector<int>& live, int* joint_ids, btScalar* impulses) const {
  for (const int id : live)
    for (int k = first_impulse_[id]; k < first_impulse_[id + 1]; ++k) {
      *joint_ids++ = id;
      *impulses++ = solver_.joint_impulses[k];
    }
}

void SubstepWorld::set_joint_impulses(const int* joint_ids, const btScalar* impulses, int count) {
  for (int i = 0; i < count;) {
    const int id = joint_ids[i], size = first_impulse_[id + 1] - first_impulse_[id];
    int length = 0;
    while (i + length < count && joint_ids[i + length] == id) ++length;
    if (length == size) std::copy(impulses + i, impulses + i + size, &solver_.joint_impulses[first_impulse_[id]]);
    i += length;
  }
}

// What a joint keeps is no warm-start data, and stays.
void SubstepWorld::forget_joint(int id) {
  std::fill_n(solver_.joint_impulses.begin() + first_impulse_[id], 6 + first_axis_[id + 1] - first_axis_[id], Real(0));
}

// Turns are told to all workers whenever they change, and stay. How far gears have slipped is not, nor what bonds bear.
void SubstepWorld::leave_joint(int id) {
  forget_joint(id);
  if (columns_.kind[id] == JointColumns::kGear) solver_.joint_impulses[first_impulse_[id + 1] - 1] = 0;
  if (columns_.bonds.keeps_load(id))
    std::fill_n(solver_.joint_impulses.begin() + first_impulse_[id + 1] - kLoadValues, kLoadValues, Real(0));
}

void SubstepWorld::forget_joints() {
  for (int id = 0; id < columns_.count; ++id) forget_joint(id);
}

// ---- a step --------------------------------------------------------------------------------------------------------

BodyState state_of(const btRigidBody& body) {
  BodyState state;
  const btTransform& place = body.getWorldTransform();
  put(place.getOrigin(), state.position);
  for (int k = 0; k < 3; ++k) put(place.getBasis()[k], state.axes + 3 * k);
  put(body.getLinearVelocity(), state.linear);
  put(body.getAngularVelocity(), state.angular);
  return state;
}

void place_body(btRigidBody& body, const BodyState& state) {
  btTransform where;
  where.setOrigin(get(state.position));
  for (int k = 0; k < 3; ++k) where.getBasis()[k] = get(state.axes + 3 * k);
  body.setLinearVelocity(get(state.linear));
  body.setAngularVelocity(get(state.angular));
  body.setCenterOfMassTransform(where);
}

Real radius_of(const btRigidBody& body) {
  btVector3 middle;
  btScalar radius;
  body.getCollisionShape()->getBoundingSphere(middle, radius);
  return radius + middle.length();
}

void SubstepWorld::read_body(int i) { solver_.bodies.start[i] = state_of(*bodies_[i]); }

void SubstepWorld::read_bodies(btScalar timestep) {
  fast_.clear();
  slow_square_ = 0;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const btRigidBody& body = *bodies_[i];
    read_body(static_cast<int>(i));
    const btVector3 &linear = body.getLinearVelocity(), &angular = body.getAngularVelocity();
    if (moves_farther(sure_ways_[i], linear, angular, radii_[i], timestep))
      fast_.push_back(static_cast<int>(i));
    else
      slow_square_ = std::max(slow_square_, linear.length2());
    BodyTraits& traits = solver_.bodies.traits[i];
    put(body.getTotalForce(), traits.force);
    put(body.getTotalTorque(), traits.torque);
    const btVector3 weight = body.getInvMass() > 0 ? body.getGravity() / body.getInvMass() : btVector3(0, 0, 0);
    traits.falls = (body.getTotalForce() - weight).length2() <= btScalar(1e-10) * weight.length2() &&
                   body.getTotalTorque().length2() == 0;
    traits.linear_damping = body.getLinearDamping();
    traits.angular_damping = body.getAngularDamping();
  }
}

void SubstepWorld::exchange_states() {
  std::vector<BodyState>& states = solver_.bodies.start;
  for (const Neighbour& neighbour : solver_.between.neighbours())
    for (const int place : neighbour.border) read_body(place);
  solver_.between.exchange_states(states);
  for (const Neighbour& neighbour : solver_.between.neighbours())
    for (const int place : neighbour.ghosts) place_body(*bodies_[place], states[place]);
}

std::optional<btVector3> SubstepWorld::fast_way(const btRigidBody& body, btScalar timestep) const {
  const btVector3 &linear = body.getLinearVelocity(), &angular = body.getAngularVelocity();
  if (!is_fast(thickness_of(body), linear, angular, radius_of(body), timestep)) return std::nullopt;
  return timestep * (linear + timestep * gravity_);
}

void SubstepWorld::watch_bodies(const std::vector<const btRigidBody*>& own, const std::vector<Reach>& reaches) {
  watched_.resize(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    Watched& watched = watched_[i];
    const btTransform& now = own[i]->getWorldTransform();
    put(now.getOrigin(), watched.position);
    for (int k = 0; k < 3; ++k) put(now.getBasis()[k], watched.axes + 3 * k);
    watched.number = own[i]->getUserIndex();
    watched.radius = radius_of(*own[i]);
    watched.reach = reaches[i];
  }
}

bool SubstepWorld::have_moved_far(btScalar timestep) const {
  std::size_t at = 0;  // both lists are in the same order
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    if (ghost_of_[i] != kOwn) continue;
    const int number = bodies_[i]->getUserIndex();
    while (at < watched_.size() && watched_[at].number < number) ++at;
    if (at == watched_.size() || watched_[at].number != number) return true;
    const Watched& then = watched_[at];
    const BodyState& now = solver_.bodies.start[i];
    const Reach& reach = then.reach;
    const btVector3 linear = get(now.linear), position = get(now.position);
    if (is_fast(thickness_[i], linear, get(now.angular), radii_[i], timestep)) {
      const btVector3 next = position + timestep * (linear + timestep * gravity_);
      for (int k = 0; k < 3; ++k)
        if (!(reach.low[k] <= position[k] && position[k] <= reach.high[k] && reach.low[k] <= next[k] &&
              next[k] <= reach.high[k]))
          return true;
      continue;
    }
    Real way = 0, turn = 0;
    for (int k = 0; k < 3; ++k) way += (now.position[k] - then.position[k]) * (now.position[k] - then.position[k]);
    for (int k = 0; k < 9; ++k) turn += (now.axes[k] - then.axes[k]) * (now.axes[k] - then.axes[k]);
    // A point at distance r moves by 2 r sin(angle / 2); the squares of the axes' differences add up to 8 sin^2(angle /
    // 2).
    if (!(std::sqrt(way) + then.radius * std::sqrt(turn / 2) <= reach.any_way)) return true;
  }
  return false;
}

std::vector<int> SubstepWorld::find_not_finite() const {
  std::vector<int> found;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    if (ghost_of_[i] != kOwn) continue;
    const BodyState& state = solver_.bodies.start[i];
    Real sum = 0;
    for (const Real* part : {state.position, state.linear, state.angular})
      for (int k = 0; k < 3; ++k) sum += part[k] * part[k];
    if (!std::isfinite(sum) || !Between::is_finite(solver_.bodies.motion[i])) found.push_back(static_cast<int>(i));
  }
  return found;
}

void SubstepWorld::set_members(const std::vector<btRigidBody*>& bodies, const std::vector<LiveJoint>& joints, int self,
                               std::vector<Neighbour> neighbours, const std::vector<int>& whole,
                               const std::vector<int>& parted, bool stale) {
  bodies_ = bodies;
  solver_.bodies.resize(static_cast<int>(bodies.size()), columns_.count > 0);  // structures ask without a joint here
  radii_.resize(bodies.size());
  thickness_.resize(bodies.size());
  sure_ways_.resize(bodies.size());
  members_.assign(bodies.empty() ? 0 : bodies.back()->getUserIndex() + 1, {0, 0});
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const btRigidBody& body = *bodies[i];
    LAPJOINT_ASSERT(body.getUserIndex2() == static_cast<int>(i));
    LAPJOINT_ASSERT(i == 0 || bodies[i - 1]->getUserIndex() < body.getUserIndex());
    members_[body.getUserIndex()] = {static_cast<int>(i), body.getRollingFriction()};
    BodyTraits& traits = solver_.bodies.traits[i];
    traits.inverse_mass = body.getInvMass();
    put(body.getInvInertiaDiagLocal(), traits.inverse_inertia);
    traits.gyroscopic = body.getFlags() != 0;
    radii_[i] = radius_of(body);
    thickness_[i] = thickness_of(body);
    sure_ways_[i] = sure_way(body, thickness_[i]);
  }
  ghost_of_.assign(bodies.size() + 1, kOwn);
  is_border_.assign(neighbours.size(), std::vector<char>(bodies.size() + 1, 0));
  for (std::size_t n = 0; n < neighbours.size(); ++n) {
    for (const int place : neighbours[n].ghosts) {
      LAPJOINT_ASSERT(ghost_of_[place] == kOwn);  // a body has one owner
      ghost_of_[place] = static_cast<int>(n);
    }
    for (const int place : neighbours[n].border) is_border_[n][place] = 1;
  }
  for (const Neighbour& neighbour : neighbours)
    for (const int place : neighbour.border) LAPJOINT_ASSERT(ghost_of_[place] == kOwn);
  set_joints(joints, self, std::move(neighbours), whole, parted, stale);
  set_energy_limits();
}

void SubstepWorld::find_ahead(btScalar timestep) {
  ahead_->forget();
  solver_.shifts.clear();
  const int substeps = solver_.settings.substeps;
  const auto way_of_place = [&](int place) {
    const btRigidBody& body = *bodies_[place];
    return way_of(body, body.getUserIndex(), body.getLinearVelocity(), body.getAngularVelocity(), gravity_,
                  radii_[place], body.getInvMass(), timestep, substeps);
  };
  const auto way_of_surface = [&](const btCollisionObject& body, int number) {
    const btVector3 none(0, 0, 0);
    const int place = number - kStaticBase;
    const int surface = place < static_cast<int>(surface_of_.size()) ? surface_of_[place] : Contact::kStill;
    const bool moves = surface != Contact::kStill;
    const btVector3 linear = moves ? get(solver_.surfaces[surface].linear) : none;
    const btVector3 angular = moves ? get(solver_.surfaces[surface].angular) : none;
    const btScalar radius = moves ? radius_of(static_cast<const btRigidBody&>(body)) : btScalar(0);
    return way_of(body, number, linear, angular, none, radius, 0, timestep, substeps);
  };
  AheadFinder::Question question;
  for (const int place : fast_) question.fast.push_back(way_of_place(place));
  for (const btRigidBody* body : moving_statics_) {
    const Way way = way_of_surface(*body, body->getBroadphaseHandle()->m_uniqueId);
    const btScalar sure = sure_way(*body, std::max(thickness_of(*body), thinnest_));
    if (moves_farther(sure, way.moves, way.turns, way.radius, 1)) question.fast.push_back(way);
  }
  if (question.fast.empty()) return;
  question.other_way = timestep * (std::sqrt(slow_square_) + timestep * gravity_.length());
  question.way_of = [&](const btCollisionObject& body) {
    const int number = body.getBroadphaseHandle()->m_uniqueId;
    if (is_asleep(number)) return way_of(body, number, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, 0, timestep, substeps);
    return number < kStaticBase ? way_of_place(members_[number].place) : way_of_surface(body, number);
  };
  question.owner_of = [&](int a, int b) {
    if (is_asleep(a) || is_asleep(b)) return AheadFinder::Owner::kNobody;
    const int owner = owner_of(place_of(a), place_of(b));
    return owner == kOwn      ? AheadFinder::Owner::kOwn
           : owner == kNobody ? AheadFinder::Owner::kNobody
                              : AheadFinder::Owner::kBetween;
  };
  ahead_->find(question);
  for (const AheadContact& contact : ahead_->contacts) put(contact.shift, solver_.shifts.emplace_back().by);
}

void SubstepWorld::solve(btDispatcher& dispatcher, btScalar timestep, bool is_last) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  timestep_ = timestep;
  read_bodies(timestep);
  find_ahead(timestep);
  collect(dispatcher);
  read_contacts();
  StepMeasures measures;
  measure_contacts(measures);
  measure_joints(measured_joints_, solver_.bodies.start, measures);
  add_resting(measures);
  ordering_ = std::chrono::duration<double>(Clock::now() - start).count();
  const bool keeps = is_last && solver_.settings.keep_forces;
  set_sums(keeps);
  solver_.step(timestep);
  measures.residual = double(solver_.residual()) * length_unit_;
  measures.substeps = solver_.substeps();
  measures_.push_back(measures);
  find_touches();
  if (finds_slides()) find_slides();
  if (keeps) keep_forces(timestep);
}

}  // namespace lapjoint
