# What makes an installation a package: libraries of this system that the target's may lack, and the archive of `cpack`.

option(TITAN_BUNDLE_LIBRARIES "cmake --install also copies the libraries of this system that Titan needs (Boost, curl ...)" OFF)

if(TITAN_BUNDLE_LIBRARIES)
  find_program(TITAN_PATCHELF patchelf REQUIRED)
  install(CODE "set(TITAN_PATCHELF \"${TITAN_PATCHELF}\")")
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/TitanBundle.cmake)
endif()

# no installed file names the folders of the build
find_program(TITAN_PYTHON3 python3 REQUIRED)
set(titan_build_folders ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${TITAN_TORCH_ROOT} ${TITAN_PYARROW_ROOT})
list(JOIN titan_build_folders "\" \"" titan_build_folders)
install(CODE "execute_process(COMMAND \"${TITAN_PYTHON3}\" \"${PROJECT_SOURCE_DIR}/tools/scrub_paths.py\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" \"${titan_build_folders}\" COMMAND_ERROR_IS_FATAL ANY)")

set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME titan)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME titan-${PROJECT_VERSION}-torch${TITAN_TORCH_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
