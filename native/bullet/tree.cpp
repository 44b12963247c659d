#include "bullet/tree.h"

#include <algorithm>

namespace lapjoint {

namespace {

struct Leaf {
  btScalar middle[3];
  btDbvtNode* node;
};

// The half with the lower middles along the longest side on the left, the others on the right.
btDbvtNode* build(Leaf* first, Leaf* last, btDbvtNode* parent) {
  if (last - first == 1) {
    first->node->parent = parent;
    return first->node;
  }
  btScalar low[3], high[3];
  std::copy(first->middle, first->middle + 3, low);
  std::copy(first->middle, first->middle + 3, high);
  for (const Leaf* leaf = first; leaf != last; ++leaf)
    for (int k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], leaf->middle[k]);
      high[k] = std::max(high[k], leaf->middle[k]);
    }
  int axis = 0;
  for (int k = 1; k < 3; ++k)
    if (high[k] - low[k] > high[axis] - low[axis]) axis = k;
  Leaf* middle = first + (last - first) / 2;
  std::nth_element(first, middle, last,
                   [axis](const Leaf& a, const Leaf& b) { return a.middle[axis] < b.middle[axis]; });
  auto* node = new (btAlignedAlloc(sizeof(btDbvtNode), 16)) btDbvtNode();
  node->parent = parent;
  node->childs[0] = build(first, middle, node);
  node->childs[1] = build(middle, last, node);
  Merge(node->childs[0]->volume, node->childs[1]->volume, node->volume);
  return node;
}

}  // namespace

std::vector<btDbvtNode*> take_leaves(btDbvt& tree) {
  std::vector<btDbvtNode*> leaves, left;
  if (tree.m_root) left.push_back(tree.m_root);
  while (!left.empty()) {
    btDbvtNode* node = left.back();
    left.pop_back();
    if (node->isleaf()) {
      leaves.push_back(node);
      continue;
    }
    left.insert(left.end(), {node->childs[1], node->childs[0]});
    btAlignedFree(node);
  }
  tree.m_root = nullptr;
  tree.m_leaves = 0;
  return leaves;
}

void build_tree(btDbvt& tree, const std::vector<btDbvtNode*>& leaves) {
  std::vector<Leaf> places;
  places.reserve(leaves.size());
  for (btDbvtNode* node : leaves) {
    const btVector3 middle = node->volume.Center();
    places.push_back({{middle.x(), middle.y(), middle.z()}, node});
  }
  tree.m_root = places.empty() ? nullptr : build(places.data(), places.data() + places.size(), nullptr);
  tree.m_leaves = static_cast<int>(places.size());
}

}  // namespace lapjoint
