// Bullet's tree of boxes, built from all of its leaves at once.
#pragma once

#include <BulletCollision/BroadphaseCollision/btDbvt.h>

#include <vector>

namespace lapjoint {

// All leaves of a tree, which is empty after it.
std::vector<btDbvtNode*> take_leaves(btDbvt& tree);

// A balanced tree of these leaves, in place of an empty one. Bullet's grows downwards without turning: bodies of a
// grid, one after the other, make it as deep as the grid's three sides together, bodies along a line a list.
void build_tree(btDbvt& tree, const std::vector<btDbvtNode*>& leaves);

}  // namespace lapjoint
