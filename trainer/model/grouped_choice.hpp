// Which grouped GEMM the experts' products take on a GPU: LibTorch's _grouped_mm, unless a profile of that GPU measured
// our kernel (kernels.h) to be faster at such a shape. From stored measurements and not from timing at start, so that
// all ranks and a second run choose alike.
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
  /// The library for everything.
  GroupedChoice() = default;
  /// From rows of `grouped_gemm_library` and `grouped_gemm_own` (bf16, clock device), which bench kernels writes on a
  /// GPU.
  explicit GroupedChoice(const std::vector<Profile>& profiles);
  /// From the profiles in configs/profiles of the device that calls itself so ("NVIDIA H200": those named h200-...).
  static GroupedChoice of_device(const std::string& name);

  /// Our kernel where it took less than 0.97 of the library's time at the nearest measured shape of that pass; only
  /// shapes within a factor of two in rows of a group, n and k count, and without any the library is chosen.
  GroupedBy operator()(const GroupedQuery& query) const;

 private:
  struct Point {
    GroupedQuery shape;
    double own_over_library;
  };
  std::vector<Point> points_;
};

}  // namespace wt
