# LibTorch from the PyPI wheel torch 2.11.0, unpacked by ./windtunnel into WT_LIBTORCH (see that script). An imported target
# of our own: the wheel's Caffe2Config.cmake stops where no CUDA toolkit is found, even for CPU-only programs.
# Debian's libgloo-dev gives the gloo declarations that the wheel lacks; no Debian gloo is linked.
if(DEFINED ENV{WINDTUNNEL_CACHE})
  set(_wt_cache $ENV{WINDTUNNEL_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(_wt_cache $ENV{XDG_CACHE_HOME}/windtunnel)
else()
  set(_wt_cache $ENV{HOME}/.cache/windtunnel)
endif()
set(WT_LIBTORCH ${_wt_cache}/torch-2.11.0 CACHE PATH "Unpacked torch wheel: the folder that holds torch/ and nvidia/")

find_path(WT_GLOO_INCLUDE gloo/context.h)
if(NOT EXISTS ${WT_LIBTORCH}/torch/lib/libtorch_cpu.so OR NOT WT_GLOO_INCLUDE)
  message(STATUS "LibTorch not found in ${WT_LIBTORCH} (or libgloo-dev missing): windtunnel-train is not built. "
                 "./windtunnel setup installs both; -DWT_LIBTORCH=DIR points elsewhere.")
  return()
endif()

set(_torch ${WT_LIBTORCH}/torch)
set(_cuda_lib ${WT_LIBTORCH}/nvidia/cu13/lib)
# The wheel carries headers of another fmt (and no library of it); ours must be found first.
find_path(WT_FMT_INCLUDE fmt/core.h PATHS /usr/include NO_DEFAULT_PATH)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/debian_first)
file(CREATE_LINK ${WT_FMT_INCLUDE}/fmt ${CMAKE_BINARY_DIR}/debian_first/fmt SYMBOLIC)

add_library(wt_libtorch INTERFACE)
target_include_directories(wt_libtorch SYSTEM BEFORE INTERFACE ${CMAKE_BINARY_DIR}/debian_first)
target_include_directories(wt_libtorch SYSTEM INTERFACE ${_torch}/include ${_torch}/include/torch/csrc/api/include ${WT_GLOO_INCLUDE})
target_compile_definitions(wt_libtorch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED)
target_link_options(wt_libtorch INTERFACE
  -Wl,-rpath,${_torch}/lib:${_cuda_lib} -Wl,-rpath-link,${_torch}/lib:${_cuda_lib} -Wl,--allow-shlib-undefined)
target_link_libraries(wt_libtorch INTERFACE ${_torch}/lib/libtorch_cpu.so ${_torch}/lib/libc10.so ${CMAKE_DL_LIBS})
if(WT_CUDA)
  # libtorch_cuda.so is loaded when a device is asked for (trainer/device/device.cpp), not linked: it needs cuBLAS, cuDNN,
  # NCCL, cuFile, cuSPARSELt and NVSHMEM, and a program linked to it does not start where one of them is missing.
  find_package(CUDAToolkit REQUIRED)
  find_path(WT_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${WT_LIBTORCH}/nvidia/nccl/include REQUIRED)  # libnccl itself is loaded, too
  target_include_directories(wt_libtorch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS} ${WT_NCCL_INCLUDE})
  target_compile_definitions(wt_libtorch INTERFACE WT_CUDA)
  target_link_libraries(wt_libtorch INTERFACE ${_torch}/lib/libc10_cuda.so)
endif()
