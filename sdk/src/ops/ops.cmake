# How the inner loops of titan/ops are compiled; included by sdk/CMakeLists.txt. They take no precompiled header: its inline
# functions, compiled with AVX2, could be the ones that the linker keeps for every CPU.
set(titan_kernels ${CMAKE_CURRENT_LIST_DIR}/kernels)
set_source_files_properties(${titan_kernels}/baseline.cpp ${titan_kernels}/avx2.cpp PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-O3;-ffp-contract=fast")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set_property(SOURCE ${titan_kernels}/avx2.cpp APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma)
endif()
