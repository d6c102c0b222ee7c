# titan_unity(TARGET [BATCH n]): compiles the .cpp files of one folder together, at most n (default 8) in one go.
#
# What the files include is then read, and its templates instantiated, once for all of them: a whole build takes half of
# the time. The price: file-local names (anonymous namespaces) must differ within a folder, and a changed file brings its
# neighbours along. `-DTITAN_UNITY=OFF` compiles each file by itself. Only Titan's own tree does this.

option(TITAN_UNITY "Compile the files of one folder together" ON)

function(titan_unity target)
  if(NOT TITAN_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "BATCH" "")
  if(NOT arg_BATCH)
    set(arg_BATCH 8)
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\$<|^${PROJECT_BINARY_DIR}/")  # generated: manifests, which take no precompiled header
  set(folders "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${base})
    get_filename_component(folder ${path} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    if(NOT folder IN_LIST folders)
      list(APPEND folders ${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR batch "${count_${folder}} / ${arg_BATCH}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
