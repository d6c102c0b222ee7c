# Compiles the kernels by nvcc if it is found. CMake's own CUDA language would test the compiler at every configure.
#
# Compiling takes some 30 CPU seconds at reference speed (tools/cost_unit.py). So kernels are compiled only on a machine with an
# NVIDIA GPU, or on request: tools/setup.sh --cuda, or the preset cuda.
#
# In:  TITAN_CUDA_KERNELS (AUTO, ON, OFF), TITAN_CUDA_ARCHS, TITAN_NVCC (TitanCuda.cmake)
# Out: TITAN_CUDA_KERNEL_LIBRARIES, TITAN_CUDA_KERNEL_ARCHS: empty and "none" without nvcc; the plugin then uses ATen operations
#      only. One status line says which and why.

set(TITAN_CUDA_KERNELS AUTO CACHE STRING "The cuda plugin's own kernels: AUTO = on a machine with a GPU and nvcc, ON, OFF")
set_property(CACHE TITAN_CUDA_KERNELS PROPERTY STRINGS AUTO ON OFF)
if(NOT TITAN_CUDA_KERNELS MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TITAN_CUDA_KERNELS must be AUTO, ON or OFF, got '${TITAN_CUDA_KERNELS}'")
endif()
set(TITAN_CUDA_KERNEL_LIBRARIES "")
set(TITAN_CUDA_KERNEL_ARCHS none)

# Ampere, Hopper, Blackwell; later GPUs compile the PTX when the plugin is first loaded there.
set(TITAN_CUDA_ARCHS 80 90 100 CACHE STRING "GPU architectures that the kernels are compiled for, the newest last")
set(titan_kernel_archs ${TITAN_CUDA_ARCHS})
set(titan_kernel_flags -std=c++20 -O3)
# No multiply-add unless a kernel writes one, so that the emulator computes the same as a GPU.
list(APPEND titan_kernel_flags -fmad=false)
# The file name in an assertion of a kernel is relative to the source tree.
list(APPEND titan_kernel_flags -Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
set(titan_kernel_codes "")
foreach(arch ${titan_kernel_archs})
  list(APPEND titan_kernel_codes -gencode=arch=compute_${arch},code=sm_${arch})
endforeach()
list(TRANSFORM titan_kernel_archs PREPEND sm_ OUTPUT_VARIABLE titan_kernel_names)
list(GET titan_kernel_archs -1 newest)
if(newest MATCHES "^[0-9]+$")  # PTX of 90a and similar runs on no other GPU
  list(APPEND titan_kernel_codes -gencode=arch=compute_${newest},code=compute_${newest})
  list(APPEND titan_kernel_names PTX)
endif()
list(JOIN titan_kernel_names ", " titan_kernel_names)

# titan_no_kernels(<why>): reports why kernels are off; an error if they were requested.
function(titan_no_kernels why)
  if(TITAN_CUDA_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "TITAN_CUDA_KERNELS=ON, but ${why}")
  endif()
  message(STATUS "CUDA kernels: off, because ${why}; the cuda plugin composes these operations from ATen operations")
endfunction()

if(TITAN_CUDA_KERNELS STREQUAL "OFF")
  titan_no_kernels("TITAN_CUDA_KERNELS is OFF")
  return()
endif()
if(TITAN_CUDA_KERNELS STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl)
  titan_no_kernels("this machine has no NVIDIA GPU (tools/setup.sh --cuda compiles them anyway)")
  return()
endif()
if(NOT TITAN_NVCC)
  titan_no_kernels("no nvcc was found")
  return()
endif()
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.h ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cuh)
foreach(name norm layer step)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${name}_kernels.cu)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.o)
  # the report of ptxas on registers and spills is kept for tools/cuda_kernels.py
  set(log ${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.ptxas)
  add_custom_command(OUTPUT ${object} BYPRODUCTS ${log}
    COMMAND ${TITAN_NVCC} ${titan_kernel_flags} ${titan_kernel_codes} -ccbin ${CMAKE_CXX_COMPILER} -Xptxas=-v
            -Xcompiler=-fPIC,-fvisibility=hidden -c ${source} -o ${object} > ${log} 2>&1 || (cat ${log} && false)
    DEPENDS ${source} ${headers}
    COMMENT "Compiling CUDA kernels ${name} for ${titan_kernel_names}")
  list(APPEND TITAN_CUDA_KERNEL_LIBRARIES ${object})
endforeach()
add_custom_target(titan_cuda_kernels DEPENDS ${TITAN_CUDA_KERNEL_LIBRARIES})
list(JOIN titan_kernel_archs " " TITAN_CUDA_KERNEL_ARCHS)
message(STATUS "CUDA kernels: on, by ${TITAN_NVCC} for ${titan_kernel_names}")
