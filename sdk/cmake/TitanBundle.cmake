# Runs at the end of `cmake --install` with TITAN_BUNDLE_LIBRARIES: copies the libraries of this system that the installed files need
# into lib/titan/libs, with the licences of their packages. Left to the target: the C and C++ runtime, and what comes from wheels
# (LibTorch, CUDA, Arrow). In: CMAKE_INSTALL_PREFIX, TITAN_PATCHELF.

set(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX})
set(folder ${prefix}/lib/titan/libs)
file(GLOB programs ${prefix}/bin/titan ${prefix}/bin/titan-train ${prefix}/lib/titan/plugins/titan-*)
file(GLOB libraries ${prefix}/lib/*.so ${prefix}/lib/titan/plugins/*.so)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} MODULES ${libraries}
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^libtitan_" "^lib(torch|c10|cuda|cudart|cupti|nccl|gomp|arrow|parquet)" "^ld-linux"
                      "^lib(c|m|dl|rt|pthread|resolv|anl|gcc_s|stdc[+][+])[.]so")
if(missing)
  message(FATAL_ERROR "these libraries, which installed files need, were not found on this system: ${missing}")
endif()
file(MAKE_DIRECTORY ${folder})
foreach(library ${found})
  get_filename_component(name ${library} NAME)
  file(COPY ${library} DESTINATION ${folder} FOLLOW_SYMLINK_CHAIN)
  file(REAL_PATH ${library} real)
  get_filename_component(real_name ${real} NAME)
  if(NOT name STREQUAL real_name)  # one file under the name that others ask for
    file(REMOVE ${folder}/${name})
    file(RENAME ${folder}/${real_name} ${folder}/${name})
  endif()
  execute_process(COMMAND ${TITAN_PATCHELF} --set-rpath $ORIGIN ${folder}/${name} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND dpkg-query -S "*/${real_name}" OUTPUT_VARIABLE package ERROR_QUIET)
  if(package MATCHES "^([^:\n]+):")
    file(INSTALL /usr/share/doc/${CMAKE_MATCH_1}/copyright DESTINATION ${prefix}/share/doc/titan/licenses RENAME ${CMAKE_MATCH_1})
  endif()
endforeach()
list(LENGTH found count)
message(STATUS "bundled ${count} libraries of this system in ${folder}")
