# titan_add_plugin(<name> VERSION <x.y.z> PROVIDES <kind>:<name>... SOURCES <file>...
#                  [LIBRARIES <target or library>...] [PROGRAMS <target>...] [TORCH_FREE])
#
# Builds <name>.plugin.so with its manifest in the ELF section .titan_plugin. TORCH_FREE: the plugin includes no torch
# (tokenizers, datasets, loggers, schedules), links only titan::base and loads under any LibTorch.
# The manifest has a copy of each text of plugin.add<T>("name", "text") in the sources, so that `titan list` and `titan --help`
# show it without opening the plugin. Both arguments must be string literals; a command without such a text is an error.
# If several kinds have one name, PROVIDES lists them in the order of their registration.
# PROGRAMS: executables that the plugin starts (titan/program/side_program.h). They are built with it, into the same folder.
# TITAN_PLUGIN_WHEEL_FOLDERS, set before the call: folders of other wheels, relative to site-packages, whose libraries it needs.
# A plugin in TITAN_STATIC_PLUGINS is linked into the program instead.
#
# In (set by Titan's own build or by find_package(Titan)): TITAN_SDK_VERSION, TITAN_SDK_ABI,
# TITAN_SDK_ABI_TORCH_FREE, TITAN_SDK_OPTIONAL, TITAN_TORCH_VERSION,
# TITAN_TORCH_CUDA, TITAN_PLUGIN_DIRECTORY (folder of the built file; default: lib/titan/plugins of the build tree).

set(TITAN_MANIFEST_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/plugin_manifest.cpp.in)

# titan_manifest_text(<variable> <plugin> <version> "<provides>" <torch version or none> [<field>...]): sets <variable> to the
# manifest, as the content of a C string literal.
function(titan_manifest_text variable plugin version provides torch)
  string(REGEX MATCH "^[0-9]+" compiler_major ${CMAKE_CXX_COMPILER_VERSION})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(compiler "gcc ${compiler_major}")
  else()
    string(TOLOWER "${CMAKE_CXX_COMPILER_ID} ${compiler_major}" compiler)
  endif()
  set(cuda none)
  if(NOT torch STREQUAL "none" AND TITAN_TORCH_CUDA)
    set(cuda ${TITAN_TORCH_CUDA})
  endif()
  set(cuda_archs none)
  if(TITAN_PLUGIN_CUDA_ARCHS)  # such as "80 90"; a plugin with CUDA kernels sets it before titan_add_plugin()
    set(cuda_archs ${TITAN_PLUGIN_CUDA_ARCHS})
  endif()
  set(sanitizer none)
  if(TITAN_SANITIZER)
    set(sanitizer ${TITAN_SANITIZER})
  endif()
  set(git unknown)
  find_program(TITAN_GIT git)
  mark_as_advanced(TITAN_GIT)
  if(TITAN_GIT)
    execute_process(COMMAND ${TITAN_GIT} rev-parse --short=12 HEAD WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
                    OUTPUT_VARIABLE git_head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE git_failed)
    if(NOT git_failed)
      set(git ${git_head})
    endif()
  endif()
  list(JOIN provides " " provides)
  set(sdk_abi ${TITAN_SDK_ABI})
  if(torch STREQUAL "none")
    set(sdk_abi ${TITAN_SDK_ABI_TORCH_FREE})
  endif()
  set(fields
    "manifest=1" "plugin=${plugin}" "version=${version}" "provides=${provides}" "sdk=${TITAN_SDK_VERSION}"
    "sdk_abi=${sdk_abi}" "sdk_abi_torch_free=${TITAN_SDK_ABI_TORCH_FREE}"
    "sdk_optional=${TITAN_SDK_OPTIONAL}"
    "torch=${torch}" "cxx11_abi=1" "compiler=${compiler}" "std=20"
    "arch=${CMAKE_SYSTEM_PROCESSOR}" "cuda=${cuda}" "cuda_archs=${cuda_archs}" "sanitizer=${sanitizer}"
    "build_type=${CMAKE_BUILD_TYPE}" "built_by=${PROJECT_NAME}" "git=${git}" ${ARGN})
  list(JOIN fields "\\0\"\n    \"" text)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# titan_summary_fields(<variable> <plugin> "<provides>" "<sources>"): sets <variable> to the manifest's fields that describe each
# component, from plugin.add<T>("name", "text") in the sources. A change of these sources runs cmake again.
function(titan_summary_fields variable plugin provides sources)
  set(code "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    if(EXISTS ${path})  # otherwise the build generates it
      file(READ ${path} text)
      if(text MATCHES "TITAN_PLUGIN\\(")
        string(APPEND code "${text}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
      endif()
    endif()
  endforeach()
  set(fields "")
  foreach(provided ${provides})
    string(REGEX REPLACE "^[a-z_]+:" "" name ${provided})
    string(REGEX REPLACE "([.+*?^$()|])" "\\\\\\1" name "${name}")
    set(summary "")
    set(pattern ">[(][ \t\r\n]*\"${name}\",[ \t\r\n]*((\"[^\"\\\n]*\"[ \t\r\n]*)+)[,)]")
    # a name of several kinds: the texts follow each other as the kinds in PROVIDES
    string(MAKE_C_IDENTIFIER "rest_${name}" rest)
    if(NOT DEFINED ${rest})
      set(${rest} "${code}")
    endif()
    if("${${rest}}" MATCHES "${pattern}")
      set(found "${CMAKE_MATCH_0}")
      string(REGEX REPLACE "\"[ \t\r\n]*\"" "" summary "${CMAKE_MATCH_1}")
      string(FIND "${${rest}}" "${found}" at)
      math(EXPR at "${at} + 1")
      string(SUBSTRING "${${rest}}" ${at} -1 ${rest})
      string(REGEX REPLACE "^\"|\"[ \t\r\n]*$" "" summary "${summary}")
      string(REPLACE ";" "\\073" summary "${summary}")  # fields pass through CMake's lists on their way into a C literal
    endif()
    if(summary)
      list(APPEND fields "summary:${provided}=${summary}")
    elseif(provided MATCHES "^command:")
      message(FATAL_ERROR "titan_add_plugin(${plugin}): the sources have no description of '${provided}'; register it as "
                          "plugin.add<T>(\"name\", \"what it does\") with string literals")
    endif()
  endforeach()
  set(${variable} "${fields}" PARENT_SCOPE)
endfunction()

# titan_plugin_row(<folder> <name> <provides> [<field>...]): adds a row to plugins.txt, the list of plugins of Titan's own tree.
function(titan_plugin_row folder name provides)
  if(folder STREQUAL "${TITAN_PLUGIN_DIRECTORY_OF_TREE}")
    list(JOIN provides " " provided)
    set_property(GLOBAL APPEND PROPERTY TITAN_PLUGIN_ROWS "${name} ${provided}")
    foreach(field ${ARGN})
      string(REGEX REPLACE "^summary:([^=]*)=" "# summary \\1: " row "${field}")
      set_property(GLOBAL APPEND PROPERTY TITAN_PLUGIN_ROWS "${row}")
    endforeach()
  endif()
endfunction()

# titan_compile_fast(<target>): fewer collections of g++'s garbage, 7 % of the time of a file that includes torch. Titan's own tree sets the
# same for all files.
function(titan_compile_fast target)
  if(NOT COMMAND titan_unity AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=524288)
  endif()
endfunction()

function(titan_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH_FREE" "VERSION" "PROVIDES;SOURCES;LIBRARIES;SUMMARIES;PROGRAMS")  # SUMMARIES: ignored, accepted until 0.3
  foreach(required VERSION PROVIDES SOURCES)
    if(NOT arg_${required})
      message(FATAL_ERROR "titan_add_plugin(${name}): ${required} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "titan_add_plugin(${name}): unknown argument '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  foreach(provided ${arg_PROVIDES})
    if(NOT provided MATCHES "^[a-z_]+:[^ :]+$")
      message(FATAL_ERROR "titan_add_plugin(${name}): PROVIDES takes <kind>:<name>, got '${provided}'")
    endif()
  endforeach()

  set(torch ${TITAN_TORCH_VERSION})
  if(arg_TORCH_FREE)
    set(torch none)
  endif()
  titan_summary_fields(summaries ${name} "${arg_PROVIDES}" "${arg_SOURCES}")
  titan_manifest_text(TITAN_MANIFEST ${name} ${arg_VERSION} "${arg_PROVIDES}" ${torch} ${summaries})

  if(name IN_LIST TITAN_STATIC_PLUGINS)
    set(target titan_static_${name})
    add_library(${target} OBJECT ${arg_SOURCES})
    string(MAKE_C_IDENTIFIER titan_plugin_entry_v1_${name} entry)
    target_compile_definitions(${target} PRIVATE TITAN_PLUGIN_ENTRY=${entry})
    set_property(GLOBAL APPEND PROPERTY TITAN_STATIC_TARGETS ${target})
    set_property(GLOBAL APPEND PROPERTY TITAN_STATIC_ENTRIES ${entry})
    set_property(GLOBAL APPEND PROPERTY TITAN_STATIC_MANIFESTS "${TITAN_MANIFEST}")
  else()
    set(target ${name}.plugin)
    set(manifest ${CMAKE_CURRENT_BINARY_DIR}/${name}.manifest.cpp)
    configure_file(${TITAN_MANIFEST_TEMPLATE} ${manifest} @ONLY)
    add_library(${target} MODULE ${arg_SOURCES} ${manifest})
    set_source_files_properties(${manifest} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    set(directory ${TITAN_PLUGIN_DIRECTORY})
    if(NOT directory)
      set(directory ${CMAKE_BINARY_DIR}/lib/titan/plugins)
    endif()
    set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${directory})
    # the linker reports a missing symbol, so LIBRARIES must name everything that the plugin needs in addition to the sdk
    target_link_options(${target} PRIVATE -Wl,-z,defs)
    set_property(GLOBAL APPEND PROPERTY TITAN_PLUGIN_TARGETS ${target})
    titan_plugin_row("${directory}" ${name} "${arg_PROVIDES}" ${summaries})
    if(directory STREQUAL "${TITAN_PLUGIN_DIRECTORY_OF_TREE}")
      titan_install_rpath(${target} plugins ${TITAN_PLUGIN_WHEEL_FOLDERS})
      install(TARGETS ${target} LIBRARY DESTINATION lib/titan/plugins OPTIONAL)  # a build may have made some plugins only
    endif()
  endif()

  foreach(program ${arg_PROGRAMS})
    if(name IN_LIST TITAN_STATIC_PLUGINS)
      set(directory ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    endif()
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${directory})
    add_dependencies(${target} ${program})
    if(directory STREQUAL "${TITAN_PLUGIN_DIRECTORY_OF_TREE}")
      titan_install_rpath(${program} plugins)
      install(TARGETS ${program} RUNTIME DESTINATION lib/titan/plugins OPTIONAL)
    endif()
  endforeach()

  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                                             POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  titan_compile_options(${target})
  titan_compile_fast(${target})
  if(arg_TORCH_FREE)
    target_link_libraries(${target} PRIVATE titan::base ${arg_LIBRARIES})
    titan_use_base_pch(${target})
  else()
    target_link_libraries(${target} PRIVATE titan::sdk ${arg_LIBRARIES})
    titan_use_torch(${target})
  endif()
  if(COMMAND titan_unity)  # Titan's own tree
    titan_unity(${target})
    if(arg_TORCH_FREE AND TITAN_PLUGIN_DIRECTORY STREQUAL "${TITAN_PLUGIN_DIRECTORY_OF_TREE}")
      set_property(GLOBAL APPEND PROPERTY TITAN_TORCH_FREE_PLUGINS ${target})
      # tests link all objects except plugin.cpp's, so it must be an object of its own
      set_source_files_properties(plugin.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# titan_test_plugin(<name> SOURCES <file>...): tests of a plugin of titan_add_plugin(<name>), for ctest, after enable_testing().
#   <name>.unit         the sources, with GoogleTest and the plugin's objects (titan/testing/). Skipped if CMake finds no GoogleTest.
#   <name>.conformance  titan check --conformance, which loads the built file. It reads the folder's conformance.toml, if there is one
function(titan_test_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "titan_test_plugin(${name}): takes SOURCES <file>..., got '${ARGN}'")
  endif()
  if(NOT TARGET ${name}.plugin)
    message(FATAL_ERROR "titan_test_plugin(${name}): titan_add_plugin(${name}) must come before it")
  endif()
  set(expectations "")
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/conformance.toml)
    set(expectations --expect ${CMAKE_CURRENT_SOURCE_DIR}/conformance.toml)
  endif()
  add_test(NAME ${name}.conformance
    COMMAND ${Titan_EXECUTABLE} check --conformance $<TARGET_FILE:${name}.plugin> ${expectations})
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    set(advice "${name}.unit is skipped: CMake found no GoogleTest. Install libgtest-dev (Debian, Ubuntu) or set GTest_ROOT")
    message(STATUS "${advice}")
    add_test(NAME ${name}.unit COMMAND ${CMAKE_COMMAND} -E echo "${advice}")
    set_tests_properties(${name}.unit PROPERTIES SKIP_REGULAR_EXPRESSION "is skipped")
    return()
  endif()
  add_executable(${name}.unit ${arg_SOURCES} $<TARGET_OBJECTS:${name}.plugin>)
  get_target_property(libraries ${name}.plugin LINK_LIBRARIES)
  target_link_libraries(${name}.unit PRIVATE ${libraries} GTest::gtest_main)
  target_compile_features(${name}.unit PRIVATE cxx_std_20)
  titan_compile_options(${name}.unit)
  titan_compile_fast(${name}.unit)
  target_compile_options(${name}.unit PRIVATE -O0)  # compiles faster; the plugin's own objects are optimised
  # the program loads LibTorch, also if only the sdk needs it: the sdk does not find it by itself
  target_link_options(${name}.unit PRIVATE -Wl,--no-as-needed)
  add_test(NAME ${name}.unit COMMAND ${name}.unit)
endfunction()
