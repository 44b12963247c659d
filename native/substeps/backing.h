// Bodies as contacts see them: with what is welded to them.
//
// Bodies that joints hold in all six axes, and that are solved at once, are a cluster: one body but for what loads do
// to it. A contact's row that knew the mass of the body it touches alone would answer for a small part of the load that
// the cluster puts on it. Soft contacts and the relaxing sweep are then a map of place, velocity and impulse whose
// largest eigenvalue is .30 where the cluster is as heavy as the body, .93 where it is 5 times as heavy, 1.01 at 10 and
// 1.05 at 20: a welded wall hops. So contacts are swept as if a touched body were heavier, and what their impulses do
// to the body itself is put in behind the sweep; the solution of the structure shares it out.
//
// How much heavier: with W and T the 6 x 6 inertias of the whole cluster and of its touched bodies, one over the
// largest eigenvalue of W^-1 T, which is the share of the touched bodies in how heavy the cluster is in any of its
// motions. One factor for all motions: roll is three times as soft as heave, and with the ratio of masses a slab on
// four posts flies apart. Joints that give way, as hinges do, end a cluster: what is behind them can only make it
// heavier. A cluster that is welded to the world is as heavy as any: a beam that broke off at its clamped end was
// thrown away from there at 1.8 m/s.
//
// Clusters may be across workers. These send each other which joints tie their parts together, and then the inertias,
// and come to the same clusters and factors, to the last bit.
#pragma once

#include <array>
#include <vector>

#include "exchange/mailboxes.h"
#include "substeps/as_backed.h"
#include "substeps/bodies.h"
#include "substeps/contacts.h"
#include "substeps/joints.h"

namespace lapjoint {

struct Neighbour;

class Backing {
 public:
  using Inertia = std::array<double, 36>;

  // Anew whenever joints or places of bodies change. Joints that are not solved at once weld nothing. `bodies`: their
  // numbers; ghosts are other workers'. `any_welds`: whether the scene has any, the same in all workers.
  void define(const std::vector<JointDefinition>& own, const std::vector<std::vector<JointDefinition>>& between,
              const std::vector<char>& is_ghost, const std::vector<int>& bodies, bool any_welds);
  bool empty() const { return !any_welds_; }

  // As a step begins. Takes contacts within a cluster out of the lists, and lets them do nothing: what would push there
  // is held. Then finds who is how much heavier.
  void find(std::vector<Contact>& contacts, std::vector<int>& own, std::vector<std::vector<int>>& between,
            const std::vector<Neighbour>& neighbours, const Bodies& bodies, Mailboxes* mailboxes);
  // After it: bodies that own contacts touch, and those with each neighbour; and by place, which they are.
  const std::vector<Backed>& own() const { return own_; }
  const std::vector<Backed>& between(std::size_t neighbour) const { return between_[neighbour]; }
  const char* is_backed() const { return any_backed_ ? is_backed_.data() : nullptr; }
  // Whether any contact of a cluster, of any worker, has restitution.
  bool bounces() const { return bounces_; }

  // One over the largest eigenvalue of whole^-1 touched, with a little to spare; at least 1, and 1 for little.
  static double factor(const Inertia& whole, const Inertia& touched);

 private:
  struct Part {     // of a cluster, in this worker
    int label = 0;  // its lowest body, over all workers
    bool is_across = false;
    bool is_held = false;  // by the world
    double mass = 0, touched_mass = 0;
    bool counts = false;  // may be heavier than its touched bodies by enough, as far as this worker knows
    Inertia whole{}, touched{};
    double factor = 1;
  };
  void exchange_labels(const std::vector<Neighbour>& neighbours, Mailboxes& mailboxes);
  void exchange_inertias(const std::vector<Neighbour>& neighbours, Mailboxes& mailboxes);
  void drop_inner(std::vector<Contact>& contacts, std::vector<int>& order) const;
  void add_inertias(const Bodies& bodies);
  void list(const std::vector<Contact>& contacts, const std::vector<int>& order, std::vector<Backed>& into);

  bool any_welds_ = false, any_backed_ = false, bounces_ = false;
  std::vector<int> numbers_;
  std::vector<char> is_ghost_;
  std::vector<int> part_of_;  // by place: its part, or -1
  std::vector<Part> parts_;
  std::vector<int> first_label_;  // of each part, before others are asked
  struct Tie {
    int joint, part;
  };
  std::vector<Tie> ties_;          // joints to other workers
  std::vector<int> own_label_of_;  // the next one, before others are asked
  std::vector<int> label_of_;      // by place: of its cluster; bodies of none have their own number
  std::vector<double> factor_of_;  // by place
  std::vector<char> is_touched_, is_backed_;
  std::vector<Backed> own_;
  std::vector<std::vector<Backed>> between_;
};

}  // namespace lapjoint
