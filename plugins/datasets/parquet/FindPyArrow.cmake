# The Arrow and Parquet libraries of a pyarrow wheel, which has headers and versioned libraries, but
# no CMake files. Does not run Python.
#
# In:  TITAN_PYARROW_ROOT (cache or environment): the folder `pyarrow` of an unpacked wheel; else the one in .venv of the tree
# Out: PyArrow_FOUND, PyArrow_VERSION, PyArrow_LIBRARY_DIR; target titan::pyarrow. If it is not found, PyArrow_REASON has the reason.

set(PyArrow_FOUND FALSE)
set(PyArrow_REASON "")
set(titan_pyarrow_lowest 21)  # the first version whose wheels use the new C++ ABI of libstdc++

if(NOT TITAN_PYARROW_ROOT AND DEFINED ENV{TITAN_PYARROW_ROOT})
  set(TITAN_PYARROW_ROOT $ENV{TITAN_PYARROW_ROOT})
endif()
if(NOT TITAN_PYARROW_ROOT)
  file(GLOB titan_pyarrow_found ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/pyarrow)
  if(titan_pyarrow_found)
    list(GET titan_pyarrow_found 0 TITAN_PYARROW_ROOT)
  endif()
endif()

set(titan_pyarrow_header "${TITAN_PYARROW_ROOT}/include/arrow/util/config.h")
if(NOT TITAN_PYARROW_ROOT)
  set(PyArrow_REASON "there is no pyarrow in .venv; install it there (pip install pyarrow) or set TITAN_PYARROW_ROOT to its folder")
elseif(NOT EXISTS ${titan_pyarrow_header})
  set(PyArrow_REASON "'${TITAN_PYARROW_ROOT}' contains no include/arrow/util/config.h")
else()
  file(STRINGS ${titan_pyarrow_header} titan_pyarrow_lines REGEX "^#define ARROW_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" titan_pyarrow_numbers "${titan_pyarrow_lines}")
  list(JOIN titan_pyarrow_numbers "." PyArrow_VERSION)
  string(REGEX MATCH "^[0-9]+" titan_pyarrow_major "${PyArrow_VERSION}")
  # the libraries have the suffix 100 * major; the wheel has no unversioned links
  set(PyArrow_LIBRARY_DIR ${TITAN_PYARROW_ROOT})
  set(titan_pyarrow_libraries ${TITAN_PYARROW_ROOT}/libparquet.so.${titan_pyarrow_major}00
                              ${TITAN_PYARROW_ROOT}/libarrow.so.${titan_pyarrow_major}00)
  if(PyArrow_VERSION VERSION_LESS titan_pyarrow_lowest)
    set(PyArrow_REASON "pyarrow ${PyArrow_VERSION} in '${TITAN_PYARROW_ROOT}' is older than ${titan_pyarrow_lowest}")
  else()
    set(PyArrow_FOUND TRUE)
    foreach(library ${titan_pyarrow_libraries})
      if(NOT EXISTS ${library})
        set(PyArrow_FOUND FALSE)
        set(PyArrow_REASON "'${library}' is missing")
      endif()
    endforeach()
  endif()
endif()

if(PyArrow_FOUND AND NOT TARGET titan::pyarrow)
  add_library(titan::pyarrow INTERFACE IMPORTED GLOBAL)
  target_include_directories(titan::pyarrow SYSTEM INTERFACE ${TITAN_PYARROW_ROOT}/include)
  target_link_libraries(titan::pyarrow INTERFACE ${titan_pyarrow_libraries})
endif()
