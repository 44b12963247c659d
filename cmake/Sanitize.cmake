# Checks that run with the code, for tests (tools/sanitize): LAPJOINT_SANITIZE=address,undefined.
set(LAPJOINT_SANITIZE "" CACHE STRING "Sanitizers to build with, as in -fsanitize=; empty: none")

# A module of ours. Casts of floats that an integer cannot hold are undefined too, though `undefined` does not name them.
function(lapjoint_sanitize target)
  if(LAPJOINT_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${LAPJOINT_SANITIZE} -fsanitize=float-cast-overflow -fno-omit-frame-pointer -g1 -O1)
    # Public: whatever links a library of ours with checks needs what they call.
    target_link_options(${target} PUBLIC -fsanitize=${LAPJOINT_SANITIZE})
  endif()
endfunction()

# Bullet's own sources. What is undefined in them is not ours to mend: those checks are left out.
function(lapjoint_sanitize_foreign target)
  if(LAPJOINT_SANITIZE)
    string(REPLACE ",undefined" "" checks "${LAPJOINT_SANITIZE}")
    target_compile_options(${target} PRIVATE -fsanitize=${checks} -fno-omit-frame-pointer -g1 -O1)
  endif()
endfunction()

# What must hold in native code (native/assertions.h), in a module of ours.
option(LAPJOINT_ASSERTIONS "Check native/assertions.h; builds with sanitizers do" OFF)
function(lapjoint_assertions target)
  if(LAPJOINT_ASSERTIONS OR LAPJOINT_SANITIZE)
    target_compile_definitions(${target} PRIVATE LAPJOINT_ASSERTIONS)
  endif()
endfunction()
