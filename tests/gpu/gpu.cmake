# What a person with GPUs runs (docs/bench.md), and a run of all its stages on the CPU, in small, for the script's own sake.

titan_add_probe(device_probe titan_core)
titan_use_torch(device_probe)
add_dependencies(device_probe plugins)

add_test(NAME gpu.run_all_on_the_cpu COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/gpu/run_all_test.py)
set_tests_properties(gpu.run_all_on_the_cpu PROPERTIES COST 300 PROCESSORS 2 LABELS end_to_end TIMEOUT 1800
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_BUILD=${CMAKE_BINARY_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;${titan_python_environment}")
