# `cmake --install`: installs the program and the CMake package Titan, against which plugins outside this tree are built.
#   <prefix>/bin/titan  <prefix>/lib/libtitan_{base,sdk}.so  <prefix>/lib/titan/plugins/*.plugin.so
#   <prefix>/include/titan/...  <prefix>/lib/cmake/Titan/...  <prefix>/share/titan/template/...
#   <prefix>/share/titan/{train_configs,tests/assets}: configurations, the small tokenizer and text (titan/program/installation.h)
#   <prefix>/share/doc/titan/...: the pages of docs/, and html/ if tools/site.sh has built the site

include(CMakePackageConfigHelpers)

install(TARGETS titan_base titan_sdk LIBRARY DESTINATION lib)
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/titan DESTINATION include)
# a template of an earlier version would add its files to new projects
install(CODE "file(REMOVE_RECURSE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/titan/template\")")
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/template DESTINATION share/titan)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/train_configs DESTINATION share/titan)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/assets/tokenizer ${PROJECT_SOURCE_DIR}/tests/assets/corpus
        ${PROJECT_SOURCE_DIR}/tests/assets/chat DESTINATION share/titan/tests/assets)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/titan)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION share/doc/titan
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN made EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/build/site/ DESTINATION share/doc/titan/html OPTIONAL)
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/TitanConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/TitanConfig.cmake INSTALL_DESTINATION lib/cmake/Titan)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/TitanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/TitanConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/TitanConfigVersion.cmake
  cmake/TitanTorch.cmake cmake/TitanCompileOptions.cmake cmake/TitanAddPlugin.cmake cmake/plugin_manifest.cpp.in
  DESTINATION lib/cmake/Titan)
