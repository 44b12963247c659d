// Memory for Bullet.
#pragma once

namespace lapjoint {

// Bullet asks for 23 bytes more than it needs, clears them twice, and with them what an array only may need some day:
// of memory that nobody has used yet, both is slow. From now on it gets what it asks for, as the system has it. Before
// Bullet has any memory.
void give_memory_to_bullet();

}  // namespace lapjoint
