# conformance.wrong: the conformance kit finds the defects of deliberately wrong plugins (wrong/). The long check `conformance` judges each
# of them by every test, not only by those that start no runs.
add_test(NAME conformance.wrong COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/wrong_test.py)
set_tests_properties(conformance.wrong PROPERTIES COST 60 LABELS end_to_end TIMEOUT 1800
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;TITAN_WORK=${CMAKE_BINARY_DIR}/tests/work;${titan_python_environment}")
titan_build_when_tested(wrong_plugins conformance.wrong)
