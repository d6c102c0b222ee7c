# The programs for machines with GPUs (docs/guides/bench.md), and a test that runs all stages on the
# CPU, in small, to test the script. The tests that need them build both programs; so does `ninja -C
# build/release gpu_programs`.

add_executable(device_probe EXCLUDE_FROM_ALL
  gpu/probe/main.cpp gpu/probe/accuracy.cpp gpu/probe/collectives.cpp gpu/probe/float8.cpp gpu/probe/inputs.cpp
  gpu/probe/numbers.cpp
  gpu/probe/operations.cpp gpu/probe/planted_operations.cpp gpu/probe/speed.cpp gpu/probe/speed_operations.cpp
  gpu/probe/speed_products.cpp gpu/probe/step_operations.cpp gpu/probe/stopwatch.cpp)
target_include_directories(device_probe PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(device_probe PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_link_libraries(device_probe PRIVATE titan_core titan_float8 titan_mx)
titan_use_torch(device_probe)
titan_compile_options(device_probe)
titan_unity(device_probe)
titan_cold(device_probe)
add_dependencies(device_probe plugins)

# Only the tests of the cuda device, for a machine that has a GPU and no build tree. The program
# finds the plugins in its own folder and contains no path of the build. titan_torch_tests has the
# same tests.
add_executable(titan_gpu_tests EXCLUDE_FROM_ALL
  plugins/devices/cuda_test.cpp plugins/registry.cpp sdk/ops/ops_testing.cpp test_main.cpp)
target_include_directories(titan_gpu_tests PRIVATE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/sdk/src ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(titan_gpu_tests PRIVATE TITAN_PLUGIN_DIR="../lib/titan/plugins")
target_compile_options(titan_gpu_tests PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_link_libraries(titan_gpu_tests PRIVATE titan_core titan::sdk GTest::gtest GTest::gmock)
titan_use_torch(titan_gpu_tests)
titan_compile_options(titan_gpu_tests)
titan_cold(titan_gpu_tests)
target_link_options(titan_gpu_tests PRIVATE -Wl,--no-as-needed)
add_dependencies(titan_gpu_tests plugins)
add_custom_target(gpu_programs DEPENDS device_probe titan_gpu_tests)

add_test(NAME gpu.run_all_on_the_cpu COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/gpu/run_all_test.py)
set_tests_properties(gpu.run_all_on_the_cpu PROPERTIES COST 300 PROCESSORS 2 LABELS end_to_end TIMEOUT 1800
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_BUILD=${CMAKE_BINARY_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;${titan_python_environment}")

# A bundle of the build, made and checked on the CPU.
add_test(NAME gpu.bundle COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/gpu/bundle_test.py)
set_tests_properties(gpu.bundle PROPERTIES COST 40 LABELS end_to_end TIMEOUT 300
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_BUILD=${CMAKE_BINARY_DIR};${titan_python_environment}")

titan_build_when_tested(gpu_programs gpu.run_all_on_the_cpu gpu.bundle)
