# Compile options of the inner loops of titan/ops; included by sdk/CMakeLists.txt. They use no precompiled header: the linker could
# keep its inline functions compiled with wider vectors, and use them on every CPU.
set(titan_kernels ${CMAKE_CURRENT_LIST_DIR}/kernels)
set(titan_kernel_flags_avx2 -mavx2 -mfma)
set(titan_kernel_flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)
set(titan_kernel_flags_avx512_bf16 ${titan_kernel_flags_avx512} -mavx512bf16)
foreach(build baseline avx2 avx512 avx512_bf16)
  set_source_files_properties(${titan_kernels}/${build}.cpp PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-O3;-ffp-contract=fast;-Wno-maybe-uninitialized")  # GCC 12 warns about its own intrinsics
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND DEFINED titan_kernel_flags_${build})
    set_property(SOURCE ${titan_kernels}/${build}.cpp APPEND PROPERTY COMPILE_OPTIONS ${titan_kernel_flags_${build}})
  endif()
endforeach()
