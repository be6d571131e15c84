#include "configs/machine/cuda_libraries.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

namespace wt {
namespace {

template <class Function>
Function loaded(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

std::string dotted(std::size_t major, std::size_t minor, std::size_t patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

Fingerprint cuda_library_facts() {
  Fingerprint facts;
  if (const auto property =
          loaded<int (*)(int, int*)>("cublasGetProperty")) {  // libraryPropertyType: major, minor, patch
    int major = 0, minor = 0, patch = 0;
    if (property(0, &major) == 0 && property(1, &minor) == 0 && property(2, &patch) == 0)
      facts["cublas"] = fmt::format("{}.{}.{}", major, minor, patch);
  }
  // Since cuDNN 9 the major version counts 10,000s, before that 1,000s (CUDNN_VERSION in cudnn_version.h).
  if (const auto version = loaded<std::size_t (*)()>("cudnnGetVersion")) {
    const std::size_t v = version(), major = v >= 90000 ? 10000 : 1000;
    facts["cudnn"] = dotted(v / major, v % major / 100, v % 100);
  }
  // Since NCCL 2.9 likewise (NCCL_VERSION in nccl.h).
  if (const auto version = loaded<int (*)(int*)>("ncclGetVersion")) {
    int value = 0;
    if (version(&value) == 0 && value > 0) {
      const auto v = static_cast<std::size_t>(value), major = v >= 10000 ? std::size_t{10000} : std::size_t{1000};
      facts["nccl"] = dotted(v / major, v % major / 100, v % 100);
    }
  }
  return facts;
}

}  // namespace wt
