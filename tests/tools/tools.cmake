# Tests of the scripts in tools/, and what these scripts hold the tree to.

add_test(NAME tools.check_floors COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/check_floors_test.py)
set_tests_properties(tools.check_floors PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${titan_python_environment}")

# includes of the tree go down only
add_test(NAME tools.floors COMMAND ${TITAN_TEST_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_floors.py)
set_tests_properties(tools.floors PROPERTIES LABELS tools TIMEOUT 600)

# the core names no plugin
add_test(NAME tools.plugin_names COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/plugin_names_test.py)
set_tests_properties(tools.plugin_names PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${titan_python_environment}")

add_test(NAME tools.sdk_abi COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/sdk_abi_test.py)
set_tests_properties(tools.sdk_abi PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_CMAKE=${CMAKE_COMMAND};${titan_python_environment}")

# registers, spills and shared memory of the compiled CUDA kernels; what needs nvcc says so where it is skipped
add_test(NAME tools.cuda_kernels COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/cuda_kernels_test.py)
set_tests_properties(tools.cuda_kernels PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_CUDA_LOGS=${PROJECT_BINARY_DIR}/plugins/devices/cuda;${titan_python_environment}")

# bytes and operations that predict the time of a step on a GPU
add_test(NAME tools.gpu_prediction COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/gpu_prediction_test.py)
set_tests_properties(tools.gpu_prediction PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;${titan_python_environment}")

# docs/gpu.md from the reports of GPU runs
add_test(NAME tools.gpu_report COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/gpu_report_test.py)
set_tests_properties(tools.gpu_report PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${titan_python_environment}")

# two commits, bit for bit; the programs are stand-ins here
add_test(NAME tools.same_bits COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/same_bits_test.py)
set_tests_properties(tools.same_bits PROPERTIES LABELS tools TIMEOUT 600
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};${titan_python_environment}")
