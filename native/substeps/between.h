// Constraints between bodies of different workers, solved by the workers themselves.
//
// They belong to pairs of workers. Both workers of a pair have its bodies: each its own and, as ghosts, the other's.
// Before either sweeps its own rows, they send each other how their bodies move; both then sweep the pair's rows from
// the same numbers in the same order and come to the same result to the last bit, so that nothing has to be sent back.
// A body that several pairs have is swept by one after the other: pairs take turns. So a sweep is that of one solver,
// in an order that begins with what is between workers.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "exchange/mailboxes.h"
#include "substeps/backing.h"
#include "substeps/bodies.h"
#include "substeps/contacts.h"
#include "substeps/joints.h"

namespace lapjoint {

// A body that would be sent is no longer made of numbers, or of such that cannot be computed with.
class MotionNotFinite : public std::runtime_error {
 public:
  MotionNotFinite() : std::runtime_error("not finite within the step") {}
};

// Another worker, and places of the bodies that both have.
struct Neighbour {
  int worker = 0, turn = 0;
  std::vector<int> border, ghosts;  // own ones, the other's; in the same order on both sides
};

class Between {
 public:
  // Anew whenever joints, bodies or neighbours change. `joints` are those of each neighbour.
  void define(std::vector<Neighbour> neighbours, std::vector<std::vector<JointDefinition>> joints,
              const std::vector<AxisDefinition>& axes, int fixed);
  const std::vector<Neighbour>& neighbours() const { return neighbours_; }
  // Numbers of the contacts with each neighbour's bodies, in an order that is the same on both sides.
  std::vector<std::vector<int>> contact_orders;

  // How contacts see bodies; read within steps.
  void set_backing(const Backing* backing) { backing_ = backing; }
  // Ways to the other workers for the steps to come, or none.
  void set_mailboxes(Mailboxes* mailboxes) { mailboxes_ = mailboxes; }
  // Gives every body that others have as a ghost to them, and takes theirs; before contacts are looked for.
  void exchange_states(std::vector<BodyState>& states);
  // How many of all workers' contacts are new, how many there are, and how many between workers have restitution.
  struct Counts {
    long fresh = 0, all = 0, bouncing_between = 0;
  };
  Counts sum_over_workers(Counts own, const std::vector<Contact>& contacts);

  // The largest of all workers' values, the same for all of them.
  Real largest_over_workers(Real own);
  bool any_over_workers(bool own) { return largest_over_workers(own) > 0; }

  static bool is_finite(const Motion& motion);
  // Of a body, in a message.
  static std::size_t most_bytes() { return sizeof(Motion) + std::max(sizeof(Bodies::Twist), sizeof(Bodies::Coming)); }

  bool needs_poses() const;
  // As the parts of a solver do.
  void colour(const std::vector<Contact>& contacts, int fixed);
  void prepare(const std::vector<Contact>& contacts, Bodies& bodies, const ContactSettings& of_contacts,
               const JointSettings& of_joints, const std::vector<Real>& joint_impulses);
  void warm_start(Bodies& bodies) const;
  void solve(Bodies& bodies);
  // `moved`: bodies have moved since the last sweep; `poses`: and somebody needs their poses.
  Real relax(Bodies& bodies, bool moved, bool poses);
  // `first`: of a substep; what its forces will do is told too.
  bool impact(Bodies& bodies, bool first);
  Mailboxes* mailboxes() const { return mailboxes_; }
  Real largest_overlap(Bodies& bodies) const;
  void store(std::vector<Contact>& contacts, std::vector<Real>& joint_impulses) const;
  void add_impulses(std::vector<Real>& sums) const;           // of joints, as JointSweeps does
  void add_impulses(std::vector<PointImpulses>& sums) const;  // of contacts, as ContactSweeps does
  void add_impulses(std::vector<FrictionImpulses>& sums) const;
  void add_impacts(std::vector<PointImpulses>& sums) const;
  void add_impacts(std::vector<FrictionImpulses>& sums) const;
  long row_count() const;

 private:
  // Rows with one neighbour's bodies.
  struct Rows {
    ContactSweeps contacts;
    JointSweeps joints;
  };
  // What goes with a body's motion: the velocities of the last substep's end, or what this one will do to them.
  enum class With { kNothing, kLast, kComing };
  static std::size_t motion_bytes(With with);
  // Sends each neighbour of a turn the motion of its bodies, and calls `sweep` for each with theirs. `with`: asks rows
  // what they read besides.
  template <typename Wanted, typename Reads, typename Sweep>
  void take_turns(Bodies& bodies, Wanted&& wanted, Reads&& with, Sweep&& sweep);
  const std::vector<Backed>& backed(const Rows& rows) const;
  void send_motion(const Neighbour& neighbour, const Bodies& bodies, With with);
  // All workers at once: sends each of the others `own`, and calls `visit` with theirs.
  template <typename Value, typename Visit>
  void exchange_with_all(const Value& own, Visit&& visit);
  void receive_motion(const Neighbour& neighbour, Bodies& bodies, With with);

  std::vector<Neighbour> neighbours_;
  std::vector<Rows> rows_;
  int turn_count_ = 0;
  const Backing* backing_ = nullptr;
  Mailboxes* mailboxes_ = nullptr;
};

}  // namespace lapjoint
