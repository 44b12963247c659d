#include "bullet/memory.h"

#include <LinearMath/btAlignedAllocator.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_set>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace lapjoint {

namespace {

#if !defined(_MSC_VER)  // where memory of a wide alignment is not given back like any other

// Pieces of up to a kilobyte. A slab is cut into chunks, a chunk into pieces of one size; which size a piece has is
// found by its address. Several worlds of a process may ask at the same time.
class Pieces {
 public:
  static constexpr std::size_t kMost = 1024;

  void* take(std::size_t size) {
    const std::size_t kind = (size + kGrain - 1) / kGrain;
    const std::lock_guard lock(mutex_);
    if (!free_[kind]) cut(kind);
    Piece* piece = free_[kind];
    free_[kind] = piece->next;
    return piece;
  }

  // False if it is no piece.
  bool give_back(void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::lock_guard lock(mutex_);
    if (!slabs_.contains(address / kSlab)) return false;
    const auto* slab = reinterpret_cast<const Slab*>(address / kSlab * kSlab);
    const std::size_t kind = slab->kinds[address % kSlab / kChunk];
    free_[kind] = new (memory) Piece{free_[kind]};
    return true;
  }

 private:
  static constexpr std::size_t kGrain = 16, kChunk = 1 << 16, kSlab = 1 << 21;
  struct Piece {
    Piece* next;
  };
  struct alignas(kGrain) Slab {  // at its begin
    std::uint8_t kinds[kSlab / kChunk];
  };

  // One more piece, of a new chunk where the last is used up. Pages that nobody needs are never touched.
  void cut(std::size_t kind) {
    Open& open = open_[kind];
    const std::size_t size = kind * kGrain;
    if (open.end - open.next < static_cast<std::ptrdiff_t>(size)) {
      open.next = new_chunk(kind);
      open.end = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(open.next) / kChunk * kChunk + kChunk);
    }
    free_[kind] = new (open.next) Piece{nullptr};
    open.next += size;
  }

  char* new_chunk(std::size_t kind) {
    if (!slab_ || chunk_ == kSlab / kChunk) {
      slab_ = static_cast<char*>(std::aligned_alloc(kSlab, kSlab));
      if (!slab_) throw std::bad_alloc();
      new (slab_) Slab();
      slabs_.insert(reinterpret_cast<std::uintptr_t>(slab_) / kSlab);
      chunk_ = 0;
    }
    reinterpret_cast<Slab*>(slab_)->kinds[chunk_] = static_cast<std::uint8_t>(kind);
    char* begin = slab_ + chunk_ * kChunk + (chunk_ == 0 ? sizeof(Slab) : 0);
    ++chunk_;
    return begin;
  }

  struct Open {
    char *next = nullptr, *end = nullptr;  // of the chunk that is cut now, what is left
  };
  std::mutex mutex_;
  std::array<Piece*, kMost / kGrain + 1> free_{};
  std::array<Open, kMost / kGrain + 1> open_{};
  std::unordered_set<std::uintptr_t> slabs_;
  char* slab_ = nullptr;
  std::size_t chunk_ = 0;  // of the last slab, the first that is free
};

// For as long as the process lives: worlds may end after everything else.
Pieces& pieces() {
  static Pieces* const all = new Pieces;
  return *all;
}

void* allocate(std::size_t size, int alignment) {
  const std::size_t wanted = static_cast<std::size_t>(alignment);
  if (size > 0 && size <= Pieces::kMost && wanted <= 16) return std::memset(pieces().take(size), 0, size);
  if (wanted <= alignof(std::max_align_t)) {
    void* memory = std::calloc(1, size);
    if (!memory && size > 0) throw std::bad_alloc();
    return memory;
  }
  const std::size_t rounded = (size + wanted - 1) / wanted * wanted;
  void* memory = std::aligned_alloc(wanted, rounded);
  if (!memory) throw std::bad_alloc();
  return std::memset(memory, 0, rounded);
}

void release(void* memory) {
  if (!pieces().give_back(memory)) std::free(memory);
}

#endif

}  // namespace

void give_memory_to_bullet() {
#if !defined(_MSC_VER)
  btAlignedAllocSetCustomAligned(allocate, release);
#endif
}

void give_back_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace lapjoint
