# The kernels, compiled by nvcc where it is found: CMake's own CUDA language would try the compiler on every configure.
#
# In:  TITAN_CUDA_KERNELS (AUTO, OFF), TITAN_CUDA_ARCHS, TITAN_NVCC and the toolkit that TitanCuda.cmake found,
#      TITAN_TORCH_ROOT
# Out: TITAN_CUDA_KERNEL_LIBRARIES, TITAN_CUDA_KERNEL_ARCHS: empty and "none" without nvcc, and the plugin is then built of
#      ATen's operations alone. One status line says which and why.

set(TITAN_CUDA_KERNELS AUTO CACHE STRING "The cuda plugin's own kernels: AUTO = where nvcc is found, OFF")
set_property(CACHE TITAN_CUDA_KERNELS PROPERTY STRINGS AUTO OFF)
set(TITAN_CUDA_KERNEL_LIBRARIES "")
set(TITAN_CUDA_KERNEL_ARCHS none)

# Ampere, Hopper, Blackwell; later GPUs compile the PTX when the plugin is opened there for the first time.
set(TITAN_CUDA_ARCHS 80 90 100 CACHE STRING "GPU architectures that the kernels are compiled for, the newest last")
set(titan_kernel_archs ${TITAN_CUDA_ARCHS})
set(titan_kernel_flags -std=c++20 -O3)
# No multiply-add but where a kernel writes one: the emulator then computes what a GPU does.
list(APPEND titan_kernel_flags -fmad=false)
# The file name in an assertion of a kernel is relative to the source tree.
list(APPEND titan_kernel_flags -Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
set(titan_kernel_codes "")
foreach(arch ${titan_kernel_archs})
  list(APPEND titan_kernel_codes -gencode=arch=compute_${arch},code=sm_${arch})
endforeach()
list(TRANSFORM titan_kernel_archs PREPEND sm_ OUTPUT_VARIABLE titan_kernel_names)
list(GET titan_kernel_archs -1 newest)
if(newest MATCHES "^[0-9]+$")  # PTX of 90a and its like runs on no other GPU
  list(APPEND titan_kernel_codes -gencode=arch=compute_${newest},code=compute_${newest})
  list(APPEND titan_kernel_names PTX)
endif()
list(JOIN titan_kernel_names ", " titan_kernel_names)

if(NOT TITAN_CUDA_KERNELS STREQUAL "AUTO")
  message(STATUS "CUDA kernels: off, as TITAN_CUDA_KERNELS says; operations are put together from ATen's")
  return()
endif()
if(NOT TITAN_NVCC)
  message(STATUS "CUDA kernels: off, because no nvcc was found; operations are put together from ATen's")
  return()
endif()
string(REGEX MATCH "^[0-9]+" major ${TITAN_TORCH_CUDA})
get_filename_component(nvcc_root ${TITAN_NVCC} REALPATH)
get_filename_component(nvcc_root ${nvcc_root} DIRECTORY)
# the runtime that LibTorch itself loads
find_library(TITAN_CUDART NAMES libcudart.so.${major}
  HINTS ${TITAN_TORCH_ROOT}/../nvidia/cu${major}/lib ${TITAN_TORCH_ROOT}/../nvidia/cuda_runtime/lib
        ${nvcc_root}/../lib64 NO_DEFAULT_PATH)
mark_as_advanced(TITAN_CUDART)
if(NOT TITAN_CUDART)
  message(STATUS "CUDA kernels: off, because libcudart.so.${major} was found neither beside LibTorch nor in the toolkit")
  return()
endif()

file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.h ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cuh)
foreach(name norm layer step)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${name}_kernels.cu)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.o)
  # what ptxas says of registers and spills is kept for tools/cuda_kernels.py
  set(log ${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.ptxas)
  add_custom_command(OUTPUT ${object} BYPRODUCTS ${log}
    COMMAND ${TITAN_NVCC} ${titan_kernel_flags} ${titan_kernel_codes} -ccbin ${CMAKE_CXX_COMPILER} -Xptxas=-v
            -Xcompiler=-fPIC,-fvisibility=hidden -c ${source} -o ${object} > ${log} 2>&1 || (cat ${log} && false)
    DEPENDS ${source} ${headers}
    COMMENT "Compiling CUDA kernels ${name} for ${titan_kernel_names}")
  list(APPEND TITAN_CUDA_KERNEL_LIBRARIES ${object})
endforeach()
add_custom_target(titan_cuda_kernels DEPENDS ${TITAN_CUDA_KERNEL_LIBRARIES})
list(APPEND TITAN_CUDA_KERNEL_LIBRARIES ${TITAN_CUDART})
list(JOIN titan_kernel_archs " " TITAN_CUDA_KERNEL_ARCHS)
message(STATUS "CUDA kernels: on, by ${TITAN_NVCC} for ${titan_kernel_names}")
