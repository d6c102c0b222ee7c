# Tests that run the real program as a user would (Python, standard library and the packages of the tests). Label end_to_end. Tests
# that build projects against an installation also have the label slow: `ctest -LE slow` leaves them out.

set(titan_prefix ${CMAKE_BINARY_DIR}/tests/prefix)

# If tests/thorough.txt names end_to_end.<name>.thorough, that test runs the cases that the file marks as thorough.
function(titan_add_end_to_end name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALLED" "TIMEOUT" "")
  set(tests end_to_end.${name})
  set(cases "")
  if("end_to_end.${name}.thorough" IN_LIST thorough_names)
    list(APPEND tests end_to_end.${name}.thorough)
    set(cases everyday)
  endif()
  foreach(test ${tests})
    add_test(NAME ${test} COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/end_to_end/${name}_test.py)
    set(labels end_to_end)
    if(arg_INSTALLED)
      list(APPEND labels slow)
      set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED titan_installation)
    endif()
    # ctest starts the most expensive tests first
    set_tests_properties(${test} PROPERTIES COST 200
      LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;TITAN_PREFIX=${titan_prefix};TITAN_WORK=${CMAKE_BINARY_DIR}/tests/work;TITAN_CMAKE=${CMAKE_COMMAND};TITAN_CASES=${cases};${titan_python_environment}")
    set(cases thorough)
  endforeach()
endfunction()

foreach(name harness docs docs_commands front assets train metrics signal bad_input hostile_text logger_failure terminal prometheus launch failing_rank flight ranks convert checkpoint branches
        checkpoint_readers checkpoint_faults checkpoint_mounts checkpoint_damage checkpoint_kills durability data
        validation loss dpo tokenize
        download download_faults pipeline context layouts_checkpoint recompute precision lora
 device_order        float8 compile estimate wandb mlflow debugging report top profiling op_profile convergence generate chat_template evaluate finetune finetune_task bench mixtral mixtral_tuning expert_parallel gpt_oss deepseek_v3 llama4 layouts)
  titan_add_end_to_end(${name} TIMEOUT 5400)
endforeach()
set_property(TEST end_to_end.float8 end_to_end.float8.thorough APPEND PROPERTY LABELS slow)  # three curves
# each of these starts several ranks, which occupy the cores
foreach(name failing_rank metrics flight ranks pipeline context layouts_checkpoint loss dpo recompute lora profiling debugging generate evaluate finetune device_order bench convergence mixtral mixtral_tuning expert_parallel gpt_oss deepseek_v3 llama4 layouts)
  foreach(test end_to_end.${name} end_to_end.${name}.thorough)
    if(TEST ${test})
      set_tests_properties(${test} PROPERTIES PROCESSORS 2 COST 500)
    endif()
  endforeach()
endforeach()

# Preloaded by durability_test.py; always built without sanitizers.
add_library(titan_file_watch MODULE tools/file_watch.cpp)
set_target_properties(titan_file_watch PROPERTIES
  CXX_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/file_watch)
target_link_libraries(titan_file_watch PRIVATE ${CMAKE_DL_LIBS})

add_test(NAME end_to_end.drawn_mistakes
  COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/end_to_end/drawn_mistakes.py --draws 60)
set_tests_properties(end_to_end.drawn_mistakes PROPERTIES LABELS end_to_end TIMEOUT 1800
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;${titan_python_environment}")

# An installation of this build, and projects built against it. Left out with a sanitizer, which the projects would need too.
if(NOT TITAN_SANITIZER)
  add_test(NAME end_to_end.install COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${titan_prefix})
  set_tests_properties(end_to_end.install PROPERTIES FIXTURES_SETUP titan_installation LABELS "end_to_end;slow" TIMEOUT 1800)
  foreach(name find_package three_moments loss_gap grpo chat sharded_embedding toy_experts step_guard attention_entropy hidden_states layers_of_ones_own olmo2 new_plugin)
    titan_add_end_to_end(${name} INSTALLED TIMEOUT 5400)
  endforeach()
  set_tests_properties(end_to_end.new_plugin end_to_end.three_moments PROPERTIES COST 800)
  set_tests_properties(end_to_end.sharded_embedding end_to_end.toy_experts end_to_end.attention_entropy end_to_end.hidden_states end_to_end.olmo2 PROPERTIES PROCESSORS 2)
  set_property(TEST end_to_end.olmo2 APPEND PROPERTY ENVIRONMENT "TITAN_MODEL_PROBE=$<TARGET_FILE:llama_probe>")
endif()

# parity: every layout compared with one rank (docs/results/parity.md). scaling: memory and traffic of simulated ranks compared with
# formulas (docs/results/scaling.md has more).
add_test(NAME parity.ladder COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/parity/ladder.py)
add_test(NAME parity.everyday COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/parity/ladder.py --everyday)
add_test(NAME parity.recompute COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/parity/recompute.py)
add_test(NAME scaling.formulas COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/scaling.py --quick)
# started first: by far the longest tests, with two layouts at a time
set_tests_properties(parity.ladder parity.everyday parity.recompute PROPERTIES COST 10000 PROCESSORS 2 RESOURCE_LOCK parity_folder)
set_tests_properties(parity.ladder parity.everyday parity.recompute scaling.formulas PROPERTIES LABELS "parity;slow" TIMEOUT 10800
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;TITAN_WORK=${CMAKE_BINARY_DIR}/tests/work;${titan_python_environment}")

# a model whose weights are stored in every form that name rules support
block(SCOPE_FOR VARIABLES)
  set(TITAN_PLUGIN_DIRECTORY ${CMAKE_BINARY_DIR}/tests/exchange_forms)
  titan_add_plugin(exchange_forms VERSION 1.0.0 PROVIDES model:test/forms flavor:test/forms/tiny
                   SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/end_to_end/exchange_forms/plugin.cpp)
endblock()
titan_add_end_to_end(exchange_forms TIMEOUT 1800)
set_property(TEST end_to_end.exchange_forms APPEND PROPERTY ENVIRONMENT "TITAN_FORMS=${CMAKE_BINARY_DIR}/tests/exchange_forms")
