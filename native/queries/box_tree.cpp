#include "queries/box_tree.h"

#include <numeric>

namespace lapjoint::queries {

namespace {

constexpr double kWorse = 1.5;  // times the area of all boxes as they were built, from which it is built again

}  // namespace

void BoxTree::set(const std::vector<Box>& boxes) {
  if (order_.size() == boxes.size() && !boxes.empty() && refit(boxes) <= kWorse * built_area_) return;
  nodes_.clear();
  order_.resize(boxes.size());
  if (boxes.empty()) return;
  std::iota(order_.begin(), order_.end(), 0);
  centres_.resize(boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) centres_[i] = boxes[i].centre();
  nodes_.reserve(boxes.size());
  build(boxes, 0, static_cast<int>(boxes.size()), 0);
  built_area_ = refit(boxes);
}

// Boxes in two halves along the axis on which they lie farthest apart: by place where that leaves some on both sides,
// else, and where the tree becomes deep, by number.
void BoxTree::build(const std::vector<Box>& boxes, int first, int count, int depth) {
  const int self = static_cast<int>(nodes_.size());
  nodes_.push_back({{}, first, count});
  if (count <= kLeaf) return;
  Box around;
  for (int i = first; i < first + count; ++i) around.add(centres_[order_[i]]);
  const Vector size = around.high - around.low;
  const int axis = size.x >= size.y && size.x >= size.z ? 0 : size.y >= size.z ? 1 : 2;
  const double middle = around.centre()[axis];
  const auto begin = order_.begin() + first, end = begin + count;
  const auto smaller = [&](int a, int b) {
    return centres_[a][axis] != centres_[b][axis] ? centres_[a][axis] < centres_[b][axis] : a < b;
  };
  int low = 0;
  if (depth < 40)
    low = static_cast<int>(std::partition(begin, end, [&](int i) { return centres_[i][axis] < middle; }) - begin);
  if (low == 0 || low == count) {
    low = count / 2;
    std::nth_element(begin, begin + low, end, smaller);
  }
  build(boxes, first, low, depth + 1);
  nodes_[self].count = 0;
  nodes_[self].first = static_cast<int>(nodes_.size());
  build(boxes, first + low, count - low, depth + 1);
}

double BoxTree::refit(const std::vector<Box>& boxes) {
  double area = 0;
  for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
    Node& node = nodes_[i];
    if (node.count > 0) {
      node.box = {};
      for (int k = node.first; k < node.first + node.count; ++k) node.box.add(boxes[order_[k]]);
    } else {
      node.box = nodes_[i + 1].box;
      node.box.add(nodes_[node.first].box);
    }
    area += node.box.area();
  }
  return area;
}

}  // namespace lapjoint::queries
