# Tests of the scripts in tools/, and what these scripts hold the tree to.

# titan_add_tool_test(<name> ENVIRONMENT...): tests/tools/<name>_test.py
function(titan_add_tool_test name)
  add_test(NAME tools.${name} COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}_test.py)
  set_tests_properties(tools.${name} PROPERTIES LABELS tools TIMEOUT 600
    ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARGN};${titan_python_environment}")
endfunction()

titan_add_tool_test(check_floors)

# includes of the tree go down only
add_test(NAME tools.floors COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_floors.py)
set_tests_properties(tools.floors PROPERTIES LABELS tools TIMEOUT 600)

# older words become no more
titan_add_tool_test(check_words)
add_test(NAME tools.words COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_words.py)
set_tests_properties(tools.words PROPERTIES LABELS tools TIMEOUT 600)

# the core names no plugin
titan_add_tool_test(plugin_names)

# docs/reference/metrics.md has every tag that is logged
titan_add_tool_test(metric_tags)

titan_add_tool_test(sdk_abi TITAN_CMAKE=${CMAKE_COMMAND})

# which LibTorch will do
titan_add_tool_test(torch_versions TITAN_CMAKE=${CMAKE_COMMAND})

# configurations of torchtitan 0.3 become files of ours
titan_add_tool_test(torchtitan_config TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan)

# registers, spills and shared memory of the compiled CUDA kernels; what needs nvcc says so where it is skipped
titan_add_tool_test(cuda_kernels TITAN_CUDA_LOGS=${PROJECT_BINARY_DIR}/plugins/devices/cuda)

# bytes and operations that predict the time of a step on a GPU
titan_add_tool_test(gpu_prediction TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan)

# docs/results/gpu.md from the reports of GPU runs
titan_add_tool_test(gpu_report)

# two commits, bit for bit; the programs are stand-ins here
titan_add_tool_test(same_bits)

# the parts of ./run_tests.sh --slice, what the everyday suite leaves out, and that every mutation still applies
titan_add_tool_test(test_slices TITAN_BUILD=${PROJECT_BINARY_DIR})

# what the tests cost, held to its budget
titan_add_tool_test(test_costs TITAN_BUILD=${PROJECT_BINARY_DIR})

# when .ci/run adds a slice; what it calls are stand-ins here
titan_add_tool_test(ci_run)

# what the build costs
titan_add_tool_test(build_costs)

# what .ci/run adds to the everyday suite
titan_add_tool_test(touched_tests)
