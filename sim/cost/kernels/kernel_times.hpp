// What one kernel takes on a GPU, from published times: products by the wave model and what it leaves over at similar
// shapes, grouped ones group by group, attention by its shape and the library's factor, what passes through memory by
// its bytes. Constants of this GPU count first, then those of the nearest one. sim/fit makes them, of all measurements
// or without some, which is how `windtunnel validate kernels` judges them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/cost/kernels/kernel_constants.hpp"
#include "sim/cost/kernels/kernel_task.hpp"
#include "sim/cost/kernels/libraries.hpp"
#include "sim/cost/kernels/products.hpp"

namespace wt {

class KernelTimes {
 public:
  explicit KernelTimes(KernelConstants constants);

  struct Answer {
    std::optional<double> seconds;
    double low_s = 0, high_s = 0;  ///< 80 % interval, from errors on points that were left out
    Evidence evidence = Evidence::published;
    std::string regime;  ///< answers that were found alike, whose errors are alike: "gemm, H100-SXM, m >= 1024"
    std::string reason;  ///< why there is none
  };
  Answer time(const KernelTask& task) const;
  /// Without its interval, and as if nothing had been measured on this GPU or of this library: shows how far what is
  /// known of others carries. Nothing of ops that pass through memory.
  Answer carried_over(const KernelTask& task) const;

  /// What a library's attention takes over what its shape says. Where nobody measured it on this generation, it is
  /// taken for one that was written for the GPU, as cuDNN is for the nearest generation on which that was measured.
  double library_factor(const std::string& op, const std::string& library, const DataSheet& gpu) const;
  /// A kernel that passes through memory row by row, whoever wrote it; `op` as tables name it, "" = one of no table.
  double by_rows_s(const RowKernel& kernel, const std::string& op, const DataSheet& gpu) const;
  /// Points of this op on GPUs of the same generation with as many processors; "" = of all that pass through memory row
  /// by row.
  std::int64_t points(const std::string& op, const DataSheet& gpu) const;
  /// What products of a GPU are multiplied by for the ends of their 80 % interval where none of its own were
  /// measured: errors on measured GPUs whose own points were left out.
  std::pair<double, double> carried_over_bounds(const DataSheet& gpu) const;

 private:
  Answer answer(const KernelTask& task) const;  ///< without its interval
  Answer product(const KernelTask& task, bool another) const;
  Answer attention(const KernelTask& task, bool as_unknown) const;
  Answer row_by_row(const KernelTask& task) const;

  /// Of the GPU itself, else of the nearest generation with the most similar number of processors; null without
  /// products.
  const ProductModel* donor(const DataSheet& gpu, bool another) const;

  struct RowFit {
    MemoryBoundConstants constants = typical_memory_bound();
    bool measured = false, own = false, same = false;  ///< at all; of this very op; on this very GPU
  };
  /// What an op took on this GPU, else on the nearest that has it; of an op that nobody measured, what all took.
  const RowFit& row_fit(const DataSheet& gpu, const std::string& op) const;

  KernelConstants constants_;
  std::vector<ProductModel> products_;
  Libraries libraries_;
  std::map<std::string, DataSheet> sheets_;                                 ///< of the GPUs that constants name
  mutable std::map<std::pair<std::string, std::string>, RowFit> row_fits_;  ///< asked for before, by GPU and op
};

}  // namespace wt
