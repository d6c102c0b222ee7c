# Tests of the scripts in tools/, and rules of the tree that these scripts check.

# titan_add_tool_test(<name> ENVIRONMENT...): tests/tools/<name>_test.py
function(titan_add_tool_test name)
  add_test(NAME tools.${name} COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}_test.py)
  set_tests_properties(tools.${name} PROPERTIES LABELS tools TIMEOUT 600
    ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARGN};${titan_python_environment}")
endfunction()

titan_add_tool_test(check_floors)

# includes in the tree go only downwards
add_test(NAME tools.floors COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_floors.py)
set_tests_properties(tools.floors PROPERTIES LABELS tools TIMEOUT 600)

# older words do not spread
titan_add_tool_test(check_words)
add_test(NAME tools.words COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_words.py)
set_tests_properties(tools.words PROPERTIES LABELS tools TIMEOUT 600)

# the core names no plugin
titan_add_tool_test(plugin_names)

titan_add_tool_test(sdk_abi TITAN_CMAKE=${CMAKE_COMMAND})

# which versions of LibTorch are accepted
titan_add_tool_test(torch_versions TITAN_CMAKE=${CMAKE_COMMAND})

# converts configurations of torchtitan 0.3 to Titan's
titan_add_tool_test(torchtitan_config TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan)

# registers, spills and shared memory of the compiled CUDA kernels; without nvcc it is skipped with
# the reason
titan_add_tool_test(cuda_kernels TITAN_CUDA_LOGS=${PROJECT_BINARY_DIR}/plugins/devices/cuda)

# bytes and operations that predict the time of a step on a GPU
titan_add_tool_test(gpu_prediction TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan)

# docs/results/gpu.md from the reports of GPU runs
titan_add_tool_test(gpu_report)

# two commits, bit for bit, with stand-in programs
titan_add_tool_test(same_bits)

# the parts of ./run_tests.sh --slice, the tests left out of the everyday suite, and that every
# mutation still applies
titan_add_tool_test(test_slices TITAN_BUILD=${PROJECT_BINARY_DIR})

# costs of the tests, within the budget
titan_add_tool_test(test_costs TITAN_BUILD=${PROJECT_BINARY_DIR})

# when .ci/run adds a slice, with stand-in programs
titan_add_tool_test(ci_run)

# costs of the build
titan_add_tool_test(build_costs)

# which tests .ci/run adds to the everyday suite
titan_add_tool_test(touched_tests)
