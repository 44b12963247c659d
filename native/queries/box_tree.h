// A tree of boxes: which of many boxes a ray, a box or a point meets. Results do not depend on how it is built.
#pragma once

#include <vector>

#include "queries/geometry.h"

namespace lapjoint::queries {

class BoxTree {
 public:
  // Of these boxes, by number. If it was built for as many before, and the boxes have not gone far since, it keeps its
  // order, which is much less work.
  void set(const std::vector<Box>& boxes);
  bool empty() const { return nodes_.empty(); }
  const Box& bounds() const { return nodes_[0].box; }

  // Calls `visit(number, reach)` for boxes that the ray meets before `reach`, near ones mostly first; it returns how
  // long the ray is from then on.
  template <typename Visit>
  void along(const Ray& ray, double reach, Visit&& visit) const;
  // Calls `visit(number)` for boxes that meet this one.
  template <typename Visit>
  void within(const Box& box, Visit&& visit) const;
  // Calls `visit(number, distance)` for boxes nearer to the point than `distance`, near ones mostly first; it returns
  // the distance from then on. Boxes around the point are all visited.
  template <typename Visit>
  void near(const Vector& point, double distance, Visit&& visit) const;

 private:
  static constexpr int kLeaf = 4, kDepth = 128;
  struct Node {
    Box box;
    int first;  // a leaf: of its boxes in `order_`; else the second child, and the first is the next node
    int count;  // of its boxes; 0: not a leaf
  };
  struct Open {
    int node;
    double at;
  };

  void build(const std::vector<Box>& boxes, int first, int count, int depth);
  double refit(const std::vector<Box>& boxes);

  std::vector<Node> nodes_;
  std::vector<int> order_;
  std::vector<Vector> centres_;
  double built_area_ = 0;
};

template <typename Visit>
void BoxTree::along(const Ray& ray, double reach, Visit&& visit) const {
  Open open[kDepth];
  int count = 0;
  double at;
  if (!nodes_.empty() && ray.meets(nodes_[0].box, reach, at)) open[count++] = {0, at};
  while (count > 0) {
    const Open top = open[--count];
    if (top.at > reach + ray.slack) continue;
    const Node& node = nodes_[top.node];
    if (node.count > 0) {
      for (int i = node.first; i < node.first + node.count; ++i) reach = visit(order_[i], reach);
      continue;
    }
    double left = 0, right = 0;
    const bool meets_left = ray.meets(nodes_[top.node + 1].box, reach, left);
    const bool meets_right = ray.meets(nodes_[node.first].box, reach, right);
    const bool left_first = left <= right;
    if (left_first && meets_right) open[count++] = {node.first, right};
    if (meets_left) open[count++] = {top.node + 1, left};
    if (!left_first && meets_right) open[count++] = {node.first, right};
  }
}

template <typename Visit>
void BoxTree::within(const Box& box, Visit&& visit) const {
  int open[kDepth], count = 0;
  if (!nodes_.empty()) open[count++] = 0;
  while (count > 0) {
    const int top = open[--count];
    const Node& node = nodes_[top];
    if (!node.box.meets(box)) continue;
    if (node.count > 0) {
      for (int i = node.first; i < node.first + node.count; ++i) visit(order_[i]);
      continue;
    }
    open[count++] = node.first;
    open[count++] = top + 1;
  }
}

template <typename Visit>
void BoxTree::near(const Vector& point, double distance, Visit&& visit) const {
  Open open[kDepth];
  int count = 0;
  const auto far = [&](int node) { return nodes_[node].box.distance2(point); };
  if (!nodes_.empty()) open[count++] = {0, far(0)};
  while (count > 0) {
    const Open top = open[--count];
    // Inside of a body the distance is negative, and another one may be deeper there.
    if (top.at > 0 && (distance < 0 || top.at > distance * distance)) continue;
    const Node& node = nodes_[top.node];
    if (node.count > 0) {
      for (int i = node.first; i < node.first + node.count; ++i) distance = visit(order_[i], distance);
      continue;
    }
    const Open left{top.node + 1, far(top.node + 1)}, right{node.first, far(node.first)};
    open[count++] = left.at <= right.at ? right : left;
    open[count++] = left.at <= right.at ? left : right;
  }
}

}  // namespace lapjoint::queries
