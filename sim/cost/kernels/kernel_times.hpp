// What one kernel takes on a GPU, from published times: products by the wave model and what it leaves over at similar
// shapes, grouped ones group by group, attention by its shape and the library's factor, what passes through memory by
// its bytes. Points of
// this GPU count first, then those of the nearest one. `windtunnel validate kernels` asks it without a group of points
// and compares; prices of steps ask it with all of them.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/cost/fit/conformal.hpp"
#include "sim/cost/kernels/kernel_points.hpp"
#include "sim/cost/kernels/libraries.hpp"
#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/products.hpp"

namespace wt {

class KernelTimes {
 public:
  /// Fits the products of every GPU with enough of them: a second for thousands of points.
  explicit KernelTimes(std::vector<KernelPoint> points);
  explicit KernelTimes(const std::vector<KernelRow>& rows) : KernelTimes(usable_points(rows)) {}
  KernelTimes(const KernelTimes&) = delete;
  KernelTimes& operator=(const KernelTimes&) = delete;

  struct Answer {
    std::optional<double> seconds;
    double low_s = 0, high_s = 0;  ///< 80 % interval, from errors on points that were left out
    Evidence evidence = Evidence::published;
    std::string regime;  ///< answers that were found alike, whose errors are alike: "gemm, H100-SXM, m >= 1024"
    std::string reason;  ///< why there is none
  };
  /// `without`: a group of points (KernelPoint::group) that has no part in the answer.
  Answer time(const KernelTask& task, const std::string& without = "") const;

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
  Answer answer(const KernelTask& task, const std::string& without) const;  ///< without its interval
  /// As if nothing had been measured on this GPU or of this library: shows how far what is known of others carries.
  Answer carried_over(const KernelTask& task, const std::string& without) const;
  Answer product(const KernelTask& task, const std::string& without, bool another) const;
  Answer attention(const KernelTask& task, const std::string& without, bool as_unknown) const;
  Answer row_by_row(const KernelTask& task, const std::string& without) const;

  /// The GPU itself, else the nearest generation with the most similar number of processors; null without products.
  const std::pair<const std::string, ProductModel>* donor(const DataSheet& gpu, bool another) const;
  LibraryRow library_row(const KernelTask& task) const;

  struct RowFit {
    MemoryBoundConstants constants = typical_memory_bound();
    bool measured = false, own = false, same = false;  ///< at all; of this very op; on this very GPU
  };
  /// What an op took on this GPU, else on the nearest that has it; of an op that nobody measured, what all took.
  const RowFit& row_fit(const DataSheet& gpu, const std::string& op, const std::string& without) const;
  const LeftOutErrors& errors() const;

  std::vector<KernelPoint> points_;
  std::map<std::string, std::vector<const KernelPoint*>> row_by_row_;  ///< by GPU
  std::map<std::string, DataSheet> sheets_;                            ///< of GPUs with products
  std::map<std::string, ProductModel> models_;                         ///< by GPU
  std::optional<Libraries> libraries_;
  mutable std::map<std::array<std::string, 3>, RowFit> row_fits_;  ///< by GPU, op and group left out
  mutable std::optional<LeftOutErrors> errors_;
};

}  // namespace wt
