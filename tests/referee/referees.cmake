# Referees: each script compares what a probe prints with software that is not Titan's. Labels: referee.

set(TITAN_TEST_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python with requirements-test.txt")

# titan_add_probe(<name> LIBRARIES...): tests/tools/<name>.cpp
function(titan_add_probe name)
  add_executable(${name} ${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}.cpp)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE ${TITAN_TEST_DEFINITIONS})
  target_link_libraries(${name} PRIVATE ${ARGN})
  titan_compile_options(${name})
endfunction()

# titan_add_referee(<script> ARGUMENTS...)
function(titan_add_referee script)
  add_test(NAME referee.${script}
           COMMAND ${TITAN_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/referee/${script}.py ${ARGN})
  set_tests_properties(referee.${script} PROPERTIES COST 100 LABELS referee TIMEOUT 3600
    ENVIRONMENT "PYTHONOPTIMIZE=;OMP_NUM_THREADS=1;HF_HUB_OFFLINE=1;TOKENIZERS_PARALLELISM=false")
endfunction()

foreach(probe tokenize_probe tensorboard_probe lr_schedule_probe)
  titan_add_probe(${probe} titan_tested_plugins titan::base ${titan_plugin_libraries} xxhash)
endforeach()
# goes through the real schema, which the registering file declares
target_sources(lr_schedule_probe PRIVATE ${PROJECT_SOURCE_DIR}/plugins/lr_schedulers/warmup_stable_decay/plugin.cpp)
titan_add_probe(safetensors_probe titan_core_config)
titan_add_probe(dataset_probe titan_core_config)
add_dependencies(dataset_probe plugins)
titan_add_probe(pipeline_schedule_probe titan_core_config)
add_dependencies(pipeline_schedule_probe plugins)
titan_add_probe(llama_probe titan_core)
titan_use_torch(llama_probe)

titan_add_referee(tokenizer_referee --probe $<TARGET_FILE:tokenize_probe> --fuzz 150 --every 3)
titan_add_referee(tiktoken_referee --probe $<TARGET_FILE:tokenize_probe> --fuzz 100)
titan_add_referee(sentencepiece_referee --probe $<TARGET_FILE:tokenize_probe> --fuzz 150)
foreach(referee text_files_referee token_files_referee)
  titan_add_referee(${referee} --probe $<TARGET_FILE:dataset_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})
endforeach()
if(TARGET parquet_dataset.plugin)
  titan_add_referee(parquet_referee --probe $<TARGET_FILE:dataset_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})
endif()
titan_add_referee(tensorboard_referee --probe $<TARGET_FILE:tensorboard_probe>)
titan_add_referee(tensorboard_server_referee --probe $<TARGET_FILE:tensorboard_probe>)
titan_add_referee(safetensors_referee --probe $<TARGET_FILE:safetensors_probe>)
titan_add_referee(lr_schedule_referee --probe $<TARGET_FILE:lr_schedule_probe>)
titan_add_referee(pipeline_schedule_referee --probe $<TARGET_FILE:pipeline_schedule_probe>
  --plugins ${TITAN_PLUGIN_DIRECTORY} --titan $<TARGET_FILE:titan>)
titan_add_referee(llama_referee --probe $<TARGET_FILE:llama_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})
titan_add_referee(hf_flavors_referee --probe $<TARGET_FILE:llama_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})
titan_add_referee(mixtral_referee --probe $<TARGET_FILE:llama_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})
titan_add_referee(adamw_referee --probe $<TARGET_FILE:llama_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})

titan_add_probe(optimizer_probe titan_core_config titan::sdk)
titan_use_torch(optimizer_probe)
add_dependencies(optimizer_probe plugins)
titan_add_referee(optimizer_referee --probe $<TARGET_FILE:optimizer_probe> --plugins ${TITAN_PLUGIN_DIRECTORY})
titan_add_probe(sampling_probe titan_core_models)
titan_use_torch(sampling_probe)
titan_add_referee(sampling_referee --probe $<TARGET_FILE:sampling_probe>)
titan_add_probe(float8_probe titan_float8 titan_mx)
titan_use_torch(float8_probe)
titan_add_referee(float8_referee --probe $<TARGET_FILE:float8_probe>)
