# Fuzzers of the files that chat templates, tokenizers, data sets and pipeline schedules read. Included by CMakeLists.txt.
#
#   ctest -R '^fuzz\.'                              5 seconds each, the same inputs in each run
#   data_fuzz tiktoken --seconds 3600 --seed 7      longer, and other inputs
#   data_fuzz tiktoken FILE...                      these input files
#   data_hostile tests/fuzz/hostile                 checks that each file there is rejected for the expected reason

file(GLOB data_fuzz_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/plugins/tokenizers/common/*.cpp ${PROJECT_SOURCE_DIR}/plugins/tokenizers/huggingface/*.cpp
  ${PROJECT_SOURCE_DIR}/plugins/tokenizers/sentencepiece/*.cpp ${PROJECT_SOURCE_DIR}/plugins/tokenizers/tiktoken/*.cpp)
set(jinja ${PROJECT_SOURCE_DIR}/plugins/chat_templates/jinja)
file(GLOB chat_template_sources CONFIGURE_DEPENDS ${jinja}/template.cpp ${jinja}/engine/*.cpp ${jinja}/parser/*.cpp)
list(APPEND data_fuzz_sources ${chat_template_sources})
list(FILTER data_fuzz_sources EXCLUDE REGEX "/plugin\\.cpp$")
foreach(source byte_reader gzip_reader input_file json_scanner line_reader text_field utf8 zstd_reader)
  list(APPEND data_fuzz_sources ${PROJECT_SOURCE_DIR}/plugins/datasets/common/${source}.cpp)
endforeach()
list(APPEND data_fuzz_sources ${PROJECT_SOURCE_DIR}/plugins/datasets/megatron/megatron_index.cpp
  ${PROJECT_SOURCE_DIR}/plugins/datasets/tokens/token_type.cpp)
list(APPEND data_fuzz_sources ${PROJECT_SOURCE_DIR}/plugins/pipeline_schedules/csv/csv_table.cpp)
foreach(source lowering plan)
  list(APPEND data_fuzz_sources ${PROJECT_SOURCE_DIR}/core/pipeline/${source}.cpp)
endforeach()
foreach(source progress table_csv validation)
  list(APPEND data_fuzz_sources ${PROJECT_SOURCE_DIR}/sdk/src/pipelines/${source}.cpp)
endforeach()
foreach(source key_functions pipeline_action)
  list(APPEND data_fuzz_sources ${PROJECT_SOURCE_DIR}/sdk/src/base/${source}.cpp)
endforeach()

find_package(ZLIB REQUIRED)
add_library(data_fuzz_entries OBJECT EXCLUDE_FROM_ALL data_entries.cpp data_tokenizer_entries.cpp data_dataset_entries.cpp
  pipeline_csv_entry.cpp chat_template_entry.cpp quiet_log.cpp
  ${data_fuzz_sources})
target_link_libraries(data_fuzz_entries PUBLIC fuzzed pcre2-8 utf8proc ZLIB::ZLIB zstd)
target_precompile_headers(data_fuzz_entries PRIVATE ${PROJECT_SOURCE_DIR}/sdk/src/base_pch.h)
titan_unity(data_fuzz_entries KIB 70)  # with sanitizers a batch costs more

add_executable(data_fuzz EXCLUDE_FROM_ALL)
target_link_libraries(data_fuzz PRIVATE data_fuzz_entries fuzz_driver fuzz_base)
add_executable(data_hostile EXCLUDE_FROM_ALL data_hostile.cpp)
target_link_libraries(data_hostile PRIVATE data_fuzz_entries fuzz_base)

foreach(entry tokenizer_json tiktoken sentencepiece megatron_index jsonl pipeline_csv chat_template)
  add_test(NAME fuzz.${entry} COMMAND data_fuzz ${entry} --seconds 5 --seed 1)
  set_tests_properties(fuzz.${entry} PROPERTIES LABELS fuzz TIMEOUT 1800)
endforeach()
add_test(NAME fuzz.hostile_files COMMAND data_hostile ${CMAKE_CURRENT_SOURCE_DIR}/hostile)
set_tests_properties(fuzz.hostile_files PROPERTIES LABELS fuzz TIMEOUT 1800)
