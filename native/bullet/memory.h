// Memory for Bullet.
#pragma once

namespace lapjoint {

// Bullet asks for 23 bytes more than it needs and clears them twice. From now on what it asks for in small pieces - a
// body, its box, nodes of the tree, manifolds - lies in chunks, side by side and with nothing in between. Once, before
// Bullet has any memory.
void give_memory_to_bullet();

// To the system, what is free at this moment.
void give_back_memory();

}  // namespace lapjoint
