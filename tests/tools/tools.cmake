# Tests of the scripts in tools/, and the checks of the tree that these scripts make.

# titan_add_tool_test(<name> ENVIRONMENT...): tests/tools/<name>_test.py
function(titan_add_tool_test name)
  add_test(NAME tools.${name} COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}_test.py)
  set_tests_properties(tools.${name} PROPERTIES LABELS tools TIMEOUT 600
    ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARGN};${titan_python_environment}")
endfunction()

titan_add_tool_test(check_floors)

# every include goes to a lower layer
add_test(NAME tools.floors COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_floors.py)
set_tests_properties(tools.floors PROPERTIES LABELS tools TIMEOUT 600)

# the number of older words does not grow
titan_add_tool_test(check_words)
add_test(NAME tools.words COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_words.py)
set_tests_properties(tools.words PROPERTIES LABELS tools TIMEOUT 600)

# core names no plugin
titan_add_tool_test(plugin_names)

# docs/reference/metrics.md has every tag that is logged
titan_add_tool_test(metric_tags)

titan_add_tool_test(sdk_abi TITAN_CMAKE=${CMAKE_COMMAND})

# sdk/api.txt is the interface of the sdk; a sanitizer exports other symbols
if(NOT TITAN_SANITIZER)
  titan_add_tool_test(sdk_api TITAN_LIBRARIES=$<TARGET_FILE_DIR:titan_base>)
endif()

# the supported versions of LibTorch
titan_add_tool_test(torch_versions TITAN_CMAKE=${CMAKE_COMMAND})

# conversion of torchtitan 0.3 configurations to Titan's TOML
titan_add_tool_test(torchtitan_config TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan)

# registers, spills and shared memory of the compiled CUDA kernels; cases that need nvcc are skipped without it
titan_add_tool_test(cuda_kernels TITAN_CUDA_LOGS=${PROJECT_BINARY_DIR}/plugins/devices/cuda)

# the predicted time of a step on a GPU
titan_add_tool_test(gpu_prediction TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan)

# docs/results/gpu.md, made from the reports of GPU runs
titan_add_tool_test(gpu_report)

# bitwise comparison of two commits, with fake programs
titan_add_tool_test(same_bits)

# the slices of ./run_tests.sh --slice, the tests that the everyday suite leaves out, and that every mutation still applies
titan_add_tool_test(test_slices TITAN_BUILD=${PROJECT_BINARY_DIR})

# the cost of the tests stays within the budget
titan_add_tool_test(test_costs TITAN_BUILD=${PROJECT_BINARY_DIR})

# when .ci/run adds a slice, with fake commands
titan_add_tool_test(ci_run)

# the measurement of build costs
titan_add_tool_test(build_costs)

# the tests that .ci/run adds to the everyday suite
titan_add_tool_test(touched_tests)
