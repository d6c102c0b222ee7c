# titan_unity(TARGET [KIB n]): compiles the .cpp files of a target in batches of equal size, each of at most n KiB of source
# (default 110). Files of one folder are in the same batch or in adjacent ones.
#
# Included headers are then read, and their templates instantiated, once per batch; they are most of the cost of a file. In return
# file-local names (anonymous namespaces) must differ within a batch, and a changed file recompiles its batch. `-DTITAN_UNITY=OFF`
# compiles each file separately. Only Titan's own tree does this.

option(TITAN_UNITY "Compile the files of a target together" ON)

function(titan_unity target)
  if(NOT TITAN_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIB" "")
  if(NOT arg_KIB)
    set(arg_KIB 110)
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\$<|^${PROJECT_BINARY_DIR}/")  # generated manifests, which use no precompiled header
  set(total 0)
  set(together "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${base})
    get_source_file_property(alone ${path} TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    if(alone)
      continue()
    endif()
    file(SIZE ${path} size)
    math(EXPR total "${total} + ${size}")
    list(APPEND together "${path}|${size}")
  endforeach()
  list(SORT together)
  math(EXPR batches "(${total} + ${arg_KIB} * 1024 - 1) / (${arg_KIB} * 1024)")
  set(before 0)
  foreach(entry ${together})
    string(REPLACE "|" ";" entry ${entry})
    list(GET entry 0 path)
    list(GET entry 1 size)
    # a file belongs to the batch that contains its middle
    math(EXPR batch "(${before} + ${size} / 2) * ${batches} / ${total}")
    math(EXPR before "${before} + ${size}")
    set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP batch_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
