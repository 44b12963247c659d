// What holds wherever the code comes to it: LAPJOINT_ASSERT(condition).
//
// Checked in builds with -DLAPJOINT_ASSERTIONS=ON and in those of tools/sanitize: a condition that does not hold is
// printed with its place, and the process ends. In all other builds nothing is computed. It is for what follows from
// the code around it; what comes from outside (a user, a file, a socket) is checked everywhere, by an exception.
// Numbers that a solver could not keep finite are no mistake here: conditions on them are written so that they hold for
// NaN.
#pragma once

#ifdef LAPJOINT_ASSERTIONS

#include <cstdio>
#include <cstdlib>

namespace lapjoint {

[[noreturn]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace lapjoint

#define LAPJOINT_ASSERT(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) : lapjoint::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__))

#else

#define LAPJOINT_ASSERT(...) static_cast<void>(true || (__VA_ARGS__))

#endif
