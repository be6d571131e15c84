// The choice of grouped GEMM for experts on a GPU: LibTorch's _grouped_mm, unless a profile of that GPU measured our
// kernel (kernels.h) to be faster at such a shape. It uses stored measurements instead of timing at start, so that all
// ranks and all runs choose the same.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"

namespace wt {

enum class GroupedBy { library, own };

struct GroupedQuery {
  std::string pass;  ///< forward | backward
  std::int64_t rows, n, k, groups;
};

class GroupedChoice {
 public:
  /// Always the library.
  GroupedChoice() = default;
  /// From rows `grouped_gemm_library` and `grouped_gemm_own` (bf16, clock device), which bench kernels writes on a GPU.
  explicit GroupedChoice(const std::vector<Profile>& profiles);
  /// From the profiles in configs/profiles for the device with this name ("NVIDIA H200": those named h200-...).
  static GroupedChoice of_device(const std::string& name);

  /// Our kernel if it took less than 0.97 of the library's time at the nearest measured shape of that pass. Only shapes
  /// within a factor of two in rows of a group, n and k count; without any, the library.
  GroupedBy operator()(const GroupedQuery& query) const;

 private:
  struct Point {
    GroupedQuery shape;
    double own_over_library;
  };
  std::vector<Point> points_;
};

}  // namespace wt
