# titan_unity(TARGET [KIB n]): compiles the .cpp files of a target together, in batches of even size, at most n KiB of source
# (default 110) in one go; files of one folder stay together.
#
# What the files include is then read, and its templates instantiated, once for all of them: most of what a file
# costs is what it includes. The price: file-local names (anonymous namespaces) must differ within a batch, and a changed file brings its
# neighbours along. `-DTITAN_UNITY=OFF` compiles each file by itself. Only Titan's own tree does this.

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
  list(FILTER sources EXCLUDE REGEX "\\$<|^${PROJECT_BINARY_DIR}/")  # generated: manifests, which take no precompiled header
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
    # a file belongs to the batch that its middle falls into
    math(EXPR batch "(${before} + ${size} / 2) * ${batches} / ${total}")
    math(EXPR before "${before} + ${size}")
    set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP batch_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
