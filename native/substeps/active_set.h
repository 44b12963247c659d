// Which rows of a structure that is solved at once hold, and which are at a bound of their impulse.
//
// A limit only pushes; a motor and friction do no more than they can. After every solution of the structure's matrix
// each such row is asked for the impulse that it wants. One in the matrix that is beyond its bound leaves it and keeps
// the bound; one at a bound that wants less comes back. The matrix is factored and solved again until no row changes:
// then all that can hold holds, whatever the masses are, and every impulse is within its bounds. This is a linear
// complementarity problem with boxes, solved by block pivoting (Kostreva 1978; Judice and Pires 1994). Rows begin where
// they were in the last substep, so that mostly there is nothing to change.
//
// To change all rows at once may go round in circles. So after some passes one worker changes the worst row alone;
// several change a quarter of their rows, another one each time and the same in all of them. What is still not settled
// ends with rows that may only leave, which comes to an end.
#pragma once

#include <vector>

#include "substeps/direct_row.h"

namespace lapjoint {

class ActiveSet {
 public:
  // Which rows may change in a pass, counted from 0.
  enum class Change { kAll, kWorst, kQuarter, kToBounds };
  struct Pass {
    Change change;
    int number;

    // The more rows have bounds, the more passes it may take.
    static Pass of_one_worker(int number, int bounded_rows);
    static Pass of_several(int number, int bounded_rows);
  };
  // A row that came to a bound: what its impulse was changed by.
  struct Arrival {
    const DirectLink* link;
    const DirectRow* row;
    double by;
  };

  // Of a solution. `velocities` are the bodies', six numbers each, and `shares` what part of a link's errors was taken
  // back over h. Whether there was any row to change.
  template <typename Share>
  bool change(const std::vector<DirectLink>& links, std::vector<DirectRow>& rows, const std::vector<double>& velocities,
              double h, Pass pass, Share&& share) {
    begin(velocities);
    for (const DirectLink& link : links)
      if (link.row_count > link.locked_count) look_at(link, rows, share(link) / h, pass);
    return end();
  }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }

 private:
  void begin(const std::vector<double>& velocities);
  void look_at(const DirectLink& link, std::vector<DirectRow>& rows, double share_per_h, Pass pass);
  bool look_at_friction(const DirectLink& link, DirectRow* rows, Pass pass);
  bool end();
  void turn_over(const DirectLink& link, DirectRow& row, double wanted);
  double velocity_of(const DirectLink& link, const DirectRow& row) const;

  const std::vector<double>* velocities_ = nullptr;
  std::vector<Arrival> arrivals_;
  bool found_ = false;
  const DirectLink* worst_link_ = nullptr;
  DirectRow* worst_ = nullptr;
  double worst_miss_ = 0, worst_wanted_ = 0;
};

}  // namespace lapjoint
