# Tests that run the real program as a user would (Python, standard library and the packages of the tests). Label end_to_end. Tests
# that build projects against an installation also have the label slow: `ctest -LE slow` leaves them out.

set(titan_prefix ${CMAKE_BINARY_DIR}/tests/prefix)

# If tests/thorough.txt names end_to_end.<name>.thorough, that test runs the cases that the file marks as thorough.
function(titan_add_end_to_end name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALLED" "TIMEOUT" "")
  set(tests end_to_end.${name})
  set(cases "")
  set(torch "")  # an installation names no LibTorch
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
      set(torch ";TITAN_TORCH_ROOT=${TITAN_TORCH_ROOT}")
    endif()
    # ctest starts the most expensive tests first
    set_tests_properties(${test} PROPERTIES COST 200
      LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;TITAN_PREFIX=${titan_prefix};TITAN_WORK=${CMAKE_BINARY_DIR}/tests/work;TITAN_CMAKE=${CMAKE_COMMAND};TITAN_CASES=${cases}${torch};${titan_python_environment}")
    set(cases thorough)
  endforeach()
endfunction()

foreach(name
    assets bad_input bad_steps bench branches chat_template checkpoint checkpoint_damage checkpoint_faults checkpoint_kills
    checkpoint_mounts checkpoint_readers cluster_templates compile completion completion_shells conformance context convergence convert data
    debugging deepseek_v3 device_order docs docs_commands doctor doctor_mounts download download_faults dpo durability estimate evaluate
    expert_parallel failing_rank finetune finetune_task flight float8 front generate gpt_oss hangs harness hostile_text in_process launch
    layouts layouts_checkpoint llama4 local_checkpoints local_hosts logger_failure lora loss man_pages membership membership_agent metrics
    mixtral mixtral_tuning mlflow name_server network_drill op_profile pipeline plugin_index precision profiling prometheus ranks recompute
    replica_checkpoints replica_hosts replicas report restarts schema semi_sync signal submit sweep terminal tokenize top torchft_manager
    train validation wandb)
  titan_add_end_to_end(${name} TIMEOUT 5400)
endforeach()
set_property(TEST end_to_end.float8 end_to_end.float8.thorough APPEND PROPERTY LABELS slow)  # three curves
# these copy the program out of the build tree, where it looks for LibTorch as an installation does
set_property(TEST end_to_end.failing_rank end_to_end.failing_rank.thorough end_to_end.submit end_to_end.submit.thorough
  APPEND PROPERTY ENVIRONMENT "TITAN_TORCH_ROOT=${TITAN_TORCH_ROOT}")
# each of these starts several ranks, which occupy the cores
foreach(name
    bad_steps bench context convergence debugging deepseek_v3 device_order dpo evaluate expert_parallel failing_rank finetune flight
    generate gpt_oss hangs in_process layouts layouts_checkpoint llama4 local_checkpoints local_hosts lora loss metrics mixtral
    mixtral_tuning network_drill pipeline profiling ranks recompute replica_checkpoints replica_hosts replicas restarts semi_sync
    torchft_manager)
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

# Preloaded by replicas_test.py.
add_library(titan_clock_skew MODULE tools/clock_skew.cpp)
set_target_properties(titan_clock_skew PROPERTIES
  CXX_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/clock_skew)
set_property(TEST end_to_end.replicas end_to_end.replicas.thorough APPEND PROPERTY ENVIRONMENT "TITAN_CLOCK_SKEW_LIBRARY=$<TARGET_FILE:titan_clock_skew>")

add_test(NAME end_to_end.drawn_mistakes
  COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/end_to_end/drawn_mistakes.py --draws 60)
set_tests_properties(end_to_end.drawn_mistakes PROPERTIES LABELS end_to_end TIMEOUT 1800
  ENVIRONMENT "TITAN_SOURCE_DIR=${PROJECT_SOURCE_DIR};TITAN_PROGRAM=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/titan;${titan_python_environment}")

# An installation of this build, and projects built against it. Left out with a sanitizer, which the projects would need too.
if(NOT TITAN_SANITIZER)
  add_test(NAME end_to_end.install COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${titan_prefix})
  set_tests_properties(end_to_end.install PROPERTIES FIXTURES_SETUP titan_installation LABELS "end_to_end;slow" TIMEOUT 1800)
  foreach(name find_package three_moments loss_gap grpo chat sharded_embedding toy_experts step_guard attention_entropy hidden_states layers_of_ones_own olmo2 soap ternary mup curriculum ulysses differential multi_token new_plugin)
    titan_add_end_to_end(${name} INSTALLED TIMEOUT 5400)
  endforeach()
  titan_add_end_to_end(relocated TIMEOUT 1800)  # makes an installation of its own
  set_property(TEST end_to_end.relocated APPEND PROPERTY ENVIRONMENT "TITAN_PREFIX=${titan_prefix};TITAN_TORCH_ROOT=${TITAN_TORCH_ROOT}")
  set_tests_properties(end_to_end.relocated PROPERTIES PROCESSORS 2)
  set_tests_properties(end_to_end.new_plugin.thorough end_to_end.three_moments PROPERTIES COST 800)
  set_tests_properties(end_to_end.sharded_embedding end_to_end.toy_experts end_to_end.attention_entropy end_to_end.hidden_states end_to_end.olmo2 end_to_end.soap end_to_end.ternary end_to_end.mup end_to_end.ulysses end_to_end.differential end_to_end.multi_token PROPERTIES PROCESSORS 2)
  set_property(TEST end_to_end.olmo2 end_to_end.differential APPEND PROPERTY ENVIRONMENT "TITAN_MODEL_PROBE=$<TARGET_FILE:llama_probe>")
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

# a command of a third party
block(SCOPE_FOR VARIABLES)
  set(TITAN_PLUGIN_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stranger)
  titan_add_plugin(stranger VERSION 1.0.0 PROVIDES command:acme/greet SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/end_to_end/stranger/plugin.cpp TORCH_FREE)
endblock()

# rank 0 of a replica group
foreach(test end_to_end.membership end_to_end.membership.thorough end_to_end.membership_agent)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "TITAN_MEMBERSHIP_PROBE=$<TARGET_FILE:membership_probe>")
endforeach()

# Preloaded by doctor_test.py.
add_library(titan_doctor_faults MODULE tools/doctor_faults.cpp)
set_target_properties(titan_doctor_faults PROPERTIES
  CXX_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/doctor_faults)
target_link_libraries(titan_doctor_faults PRIVATE ${CMAKE_DL_LIBS})
foreach(test end_to_end.doctor end_to_end.doctor.thorough)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "TITAN_DOCTOR_FAULTS=$<TARGET_FILE:titan_doctor_faults>" "TITAN_STRANGER=${CMAKE_BINARY_DIR}/tests/stranger")
endforeach()
set_property(TEST end_to_end.completion end_to_end.completion.thorough end_to_end.man_pages APPEND PROPERTY ENVIRONMENT "TITAN_STRANGER=${CMAKE_BINARY_DIR}/tests/stranger")
