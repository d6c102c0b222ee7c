# Imported target titan::torch for the LibTorch in TITAN_TORCH_ROOT: the folder with lib/ and include/ of an unpacked
# wheel or LibTorch archive. find_package(Torch) is not used: on a CUDA wheel it demands nvcc and the toolkit.
#
# In:  TITAN_TORCH_VERSION (the exact version required) or TITAN_TORCH_VERSIONS_FILE (the table of supported versions),
#      TITAN_TORCH_ROOT (cache or environment; else .venv of the tree, the active virtual environment, python3's torch)
# Out: titan::torch, TITAN_TORCH_VERSION, TITAN_TORCH_ROOT, TITAN_TORCH_CUDA, TITAN_TORCH_NCCL (such as "2.30"; only from a table)

if(TITAN_TORCH_VERSIONS_FILE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TITAN_TORCH_VERSIONS_FILE})
  file(STRINGS ${TITAN_TORCH_VERSIONS_FILE} titan_torch_rows REGEX "^[0-9]")
  list(TRANSFORM titan_torch_rows REPLACE " .*" "" OUTPUT_VARIABLE titan_torch_supported)
else()
  set(titan_torch_supported ${TITAN_TORCH_VERSION})
endif()
list(GET titan_torch_supported 0 titan_torch_first)
list(JOIN titan_torch_supported " or " titan_torch_any)

if(NOT TITAN_TORCH_ROOT AND DEFINED ENV{TITAN_TORCH_ROOT})
  set(TITAN_TORCH_ROOT $ENV{TITAN_TORCH_ROOT})
endif()
if(NOT TITAN_TORCH_ROOT)
  # as titan/program/installation.h: next to an installation in site-packages, in the active environment, python3's
  file(GLOB titan_torch_found ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(PACKAGE_PREFIX_DIR AND EXISTS ${PACKAGE_PREFIX_DIR}/../torch/lib/libtorch_cpu.so)
    get_filename_component(titan_torch_near ${PACKAGE_PREFIX_DIR}/../torch ABSOLUTE)
    list(APPEND titan_torch_found ${titan_torch_near})
  endif()
  if(NOT "$ENV{VIRTUAL_ENV}" STREQUAL "")
    file(GLOB titan_torch_active $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/torch)
    list(APPEND titan_torch_found ${titan_torch_active})
  endif()
  if(NOT titan_torch_found)
    execute_process(COMMAND python3 -c "import sys; sys.path = [p for p in sys.path if p]
import importlib.util; s = importlib.util.find_spec('torch')
print(s.submodule_search_locations[0] if s else '')" OUTPUT_VARIABLE titan_torch_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(titan_torch_found)
    list(GET titan_torch_found 0 TITAN_TORCH_ROOT)
  endif()
endif()
set(TITAN_TORCH_ROOT "${TITAN_TORCH_ROOT}" CACHE PATH "Folder with lib/ and include/ of LibTorch ${titan_torch_any}")

set(titan_torch_header ${TITAN_TORCH_ROOT}/include/torch/headeronly/version.h)
if(NOT TITAN_TORCH_ROOT OR NOT EXISTS ${titan_torch_header})
  message(FATAL_ERROR
    "LibTorch ${titan_torch_any} was not found (TITAN_TORCH_ROOT = '${TITAN_TORCH_ROOT}').\n"
    "Either install it into the tree:\n"
    "  python3 -m venv .venv && .venv/bin/pip install --no-deps torch==${titan_torch_first} nvidia-cuda-runtime nvidia-cuda-cupti\n"
    "or give the folder that contains torch's lib/ and include/:\n"
    "  cmake -DTITAN_TORCH_ROOT=<folder> ...")
endif()
file(STRINGS ${titan_torch_header} titan_torch_lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX REPLACE "[^0-9;]" "" titan_torch_numbers "${titan_torch_lines}")
list(JOIN titan_torch_numbers "." titan_torch_found_version)
if(NOT titan_torch_found_version IN_LIST titan_torch_supported)
  if(TITAN_TORCH_VERSIONS_FILE)
    set(titan_torch_why "Titan supports only ${titan_torch_any}")
  else()
    set(titan_torch_why "this Titan and all its plugins need exactly ${TITAN_TORCH_VERSION}, with which it was built, because \
LibTorch promises no binary compatibility between releases")
  endif()
  message(FATAL_ERROR
    "LibTorch ${titan_torch_found_version} in ${TITAN_TORCH_ROOT} cannot be used: ${titan_torch_why}.\n"
    "Set TITAN_TORCH_ROOT to an installation of ${titan_torch_any}, or install one: pip install torch==${titan_torch_first}")
endif()
set(TITAN_TORCH_VERSION ${titan_torch_found_version})
if(TITAN_TORCH_VERSIONS_FILE)
  list(FIND titan_torch_supported ${TITAN_TORCH_VERSION} titan_torch_row)
  list(GET titan_torch_rows ${titan_torch_row} titan_torch_row)
  string(REGEX REPLACE ".* ([0-9]+[.][0-9]+)[.][0-9]+$" "\\1" TITAN_TORCH_NCCL "${titan_torch_row}")
endif()

# "13.0" for a CUDA wheel, empty for a CPU build
set(TITAN_TORCH_CUDA "")
if(EXISTS ${TITAN_TORCH_ROOT}/version.py)
  file(STRINGS ${TITAN_TORCH_ROOT}/version.py titan_torch_cuda_line REGEX "^cuda")
  if(titan_torch_cuda_line MATCHES "'([0-9.]+)'")
    set(TITAN_TORCH_CUDA ${CMAKE_MATCH_1})
  endif()
endif()

if(NOT TARGET titan::torch)
  add_library(titan::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(titan::torch SYSTEM INTERFACE
    ${TITAN_TORCH_ROOT}/include ${TITAN_TORCH_ROOT}/include/torch/csrc/api/include)
  target_compile_definitions(titan::torch INTERFACE
    AT_PER_OPERATOR_HEADERS USE_DISTRIBUTED USE_C10D_GLOO FMT_HEADER_ONLY=1)
  target_compile_options(titan::torch INTERFACE -fopenmp)
  target_link_libraries(titan::torch INTERFACE
    ${TITAN_TORCH_ROOT}/lib/libtorch_cpu.so ${TITAN_TORCH_ROOT}/lib/libc10.so ${TITAN_TORCH_ROOT}/lib/libgomp.so.1)
  # at run time torch's own RPATH finds the wheels of the CUDA libraries
  target_link_options(titan::torch INTERFACE -Wl,--allow-shlib-undefined)
endif()
