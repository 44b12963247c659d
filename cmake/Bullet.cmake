# Where Bullet's sources come from, in this order:
#   1. LAPJOINT_BULLET_SOURCE, a directory that contains btBulletDynamicsCommon.h (Bullet's own src/);
#   2. the folder bullet/ beside CMakeLists.txt, which a source distribution of lapjoint has;
#   3. the cache of an earlier build;
#   4. the source distribution of pybullet 3.2.7 (Bullet 3.26), fetched by pip, checked against a pinned hash.
# Sets BULLET_SOURCE_DIR and LAPJOINT_BULLET_SOURCES.

set(LAPJOINT_BULLET_SOURCE "$ENV{LAPJOINT_BULLET_SOURCE}" CACHE PATH "Directory of Bullet 3.26 sources (its src/)")

set(_bullet_version 3.2.7)
set(_bullet_sha256 042879db8d101ac7590dee475fc6aded508b85fe1273fdbbfde1d88bd200e14f)

function(_lapjoint_bullet_cache_dir out)
  if(DEFINED ENV{LAPJOINT_CACHE})
    set(base "$ENV{LAPJOINT_CACHE}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(base "$ENV{XDG_CACHE_HOME}/lapjoint")
  elseif(DEFINED ENV{HOME})
    set(base "$ENV{HOME}/.cache/lapjoint")
  else()
    set(base "${CMAKE_BINARY_DIR}/cache")
  endif()
  string(SUBSTRING ${_bullet_sha256} 0 12 short)
  set(${out} "${base}/bullet-${_bullet_version}-${short}" PARENT_SCOPE)
endfunction()

function(_lapjoint_fetch_bullet destination)
  set(work "${CMAKE_BINARY_DIR}/bullet-download")
  file(REMOVE_RECURSE "${work}")
  file(MAKE_DIRECTORY "${work}")
  message(STATUS "lapjoint: fetching Bullet's sources (80 MB, once)")
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m pip download --quiet --no-deps --no-build-isolation --no-binary pybullet
            --disable-pip-version-check --dest "${work}" pybullet==${_bullet_version}
    RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_VARIABLE errors)
  set(archive "${work}/pybullet-${_bullet_version}.tar.gz")
  if(NOT status EQUAL 0 OR NOT EXISTS "${archive}")
    message(FATAL_ERROR
      "lapjoint could not fetch Bullet's sources with pip:\n${errors}\n"
      "There are two ways out:\n"
      "  * let pip reach a package registry that has the source distribution of pybullet ${_bullet_version}, or\n"
      "  * set the environment variable LAPJOINT_BULLET_SOURCE (or -DLAPJOINT_BULLET_SOURCE=...) to the src/ "
      "directory of Bullet 3.26, the one that contains btBulletDynamicsCommon.h.\n")
  endif()
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL _bullet_sha256)
    message(FATAL_ERROR
      "lapjoint: the fetched pybullet ${_bullet_version} archive has SHA-256 ${found}, expected ${_bullet_sha256}. "
      "Nothing was built from it. Set LAPJOINT_BULLET_SOURCE to Bullet sources you trust instead.")
  endif()
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${work}"
       PATTERNS "pybullet-${_bullet_version}/src/bt*" "pybullet-${_bullet_version}/src/LinearMath/*"
                "pybullet-${_bullet_version}/src/BulletCollision/*" "pybullet-${_bullet_version}/src/BulletDynamics/*")
  # Renaming a finished directory is atomic: two builds at once cannot see half a cache.
  get_filename_component(parent "${destination}" DIRECTORY)
  file(MAKE_DIRECTORY "${parent}")
  file(RENAME "${work}/pybullet-${_bullet_version}/src" "${destination}.new" RESULT moved)
  if(moved)  # another file system: copy next to the destination first
    file(COPY "${work}/pybullet-${_bullet_version}/src/" DESTINATION "${destination}.new")
  endif()
  file(RENAME "${destination}.new" "${destination}" RESULT moved)
  file(REMOVE_RECURSE "${work}")
endfunction()

if(LAPJOINT_BULLET_SOURCE)
  set(BULLET_SOURCE_DIR "${LAPJOINT_BULLET_SOURCE}")
  if(NOT EXISTS "${BULLET_SOURCE_DIR}/btBulletDynamicsCommon.h")
    message(FATAL_ERROR "LAPJOINT_BULLET_SOURCE is ${BULLET_SOURCE_DIR}, but there is no btBulletDynamicsCommon.h in it. "
                        "Expected the src/ directory of Bullet 3.26.")
  endif()
elseif(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/bullet/btBulletDynamicsCommon.h")
  set(BULLET_SOURCE_DIR "${CMAKE_CURRENT_SOURCE_DIR}/bullet")
else()
  _lapjoint_bullet_cache_dir(BULLET_SOURCE_DIR)
  if(NOT EXISTS "${BULLET_SOURCE_DIR}/btBulletDynamicsCommon.h")
    _lapjoint_fetch_bullet("${BULLET_SOURCE_DIR}")
  endif()
endif()
message(STATUS "lapjoint: Bullet sources in ${BULLET_SOURCE_DIR}")

include(cmake/BulletSources.cmake)
# Compiled as one file for each library, as Bullet's own btBulletCollisionAll.cpp.
foreach(part Collision Dynamics Math)
  string(TOUPPER ${part} upper)
  string(REPLACE Math LinearMath folder ${part})
  string(REGEX REPLACE "^(Collision|Dynamics)$" "Bullet\\1" folder ${folder})
  foreach(name ${LAPJOINT_BULLET_${upper}})
    set(file "${BULLET_SOURCE_DIR}/${folder}/${name}.cpp")
    set_source_files_properties("${file}" PROPERTIES UNITY_GROUP ${part})
    list(APPEND LAPJOINT_BULLET_SOURCES "${file}")
  endforeach()
endforeach()

if(SKBUILD_STATE STREQUAL "sdist")  # pyproject.toml puts this folder into the source distribution
  set(_bullet_copy "${CMAKE_BINARY_DIR}/bullet")
  file(REMOVE_RECURSE "${_bullet_copy}")
  file(GLOB_RECURSE _bullet_headers "${BULLET_SOURCE_DIR}/*.h")
  list(FILTER _bullet_headers EXCLUDE REGEX "/(Featherstone|Gimpact|Character|TaskScheduler)/")
  foreach(file ${_bullet_headers} ${LAPJOINT_BULLET_SOURCES})
    file(RELATIVE_PATH _path "${BULLET_SOURCE_DIR}" "${file}")
    get_filename_component(_folder "${_bullet_copy}/${_path}" DIRECTORY)
    file(COPY "${file}" DESTINATION "${_folder}")
  endforeach()
endif()
