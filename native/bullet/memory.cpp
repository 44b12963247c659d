#include "bullet/memory.h"

#include <LinearMath/btAlignedAllocator.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace lapjoint {

void give_memory_to_bullet() {
#if !defined(_MSC_VER)  // where memory of a wider alignment is not given back like any other
  btAlignedAllocSetCustomAligned(
      [](std::size_t size, int alignment) {
        const std::size_t wanted = static_cast<std::size_t>(alignment);
        if (wanted <= alignof(std::max_align_t)) {
          void* memory = std::calloc(1, size);
          if (!memory && size > 0) throw std::bad_alloc();
          return memory;
        }
        const std::size_t rounded = (size + wanted - 1) / wanted * wanted;
        void* memory = std::aligned_alloc(wanted, rounded);
        if (!memory) throw std::bad_alloc();
        return std::memset(memory, 0, rounded);
      },
      [](void* memory) { std::free(memory); });
#endif
}

}  // namespace lapjoint
