// Time of one kernel on a GPU, from published times. Products follow the wave model, corrected by its residuals at
// similar shapes. Grouped products follow their FLOPs and bytes (grouped_products.hpp) and, as attention, the library's
// factor; kernels that pass through memory follow their bytes. A GPU without constants of its own uses those of the
// nearest GPU. sim/fit makes the constants from all measurements. `windtunnel validate kernels` leaves some out to
// measure the error.
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
    double low_s = 0, high_s = 0;  ///< 80 % interval, from errors on left-out points
    Evidence evidence = Evidence::published;
    std::string regime;  ///< answers with similar errors: "gemm, H100-SXM, m >= 1024"
    std::string reason;  ///< why there is no time
  };
  Answer time(const KernelTask& task) const;
  /// The answer as if nothing had been measured on this GPU or of this library, without interval. Validation shows with
  /// it how well constants transfer from other GPUs and libraries. No answer for ops that pass through memory.
  Answer carried_over(const KernelTask& task) const;

  /// Time of a library's attention over the time predicted from its shape. A library that was not measured on this
  /// generation has the factor of cuDNN, which is written for each GPU, on the nearest generation with measurements of
  /// cuDNN.
  double library_factor(const std::string& op, const std::string& library, const DataSheet& gpu) const;
  /// Seconds of a grouped product by this library; "" = unknown.
  double grouped_s(const GroupedProduct& product, const std::string& library, const DataSheet& gpu) const {
    return grouped_time_s(product, gpu, constants_.grouped, library);
  }
  /// Seconds of a kernel that passes through memory row by row, of any library. `op`: its name in tables, "" = in no
  /// table.
  double by_rows_s(const RowKernel& kernel, const std::string& op, const DataSheet& gpu) const;
  /// Number of measurements of this op on GPUs of the same generation with as many processors; "" = of all ops that
  /// pass through memory row by row.
  std::int64_t points(const std::string& op, const DataSheet& gpu) const;
  /// Factors from a product's time to the ends of its 80 % interval on a GPU whose own products were not measured:
  /// errors on measured GPUs after leaving out their own points. {1, 1} if they were measured.
  std::pair<double, double> carried_over_bounds(const DataSheet& gpu) const;

 private:
  Answer answer(const KernelTask& task) const;  ///< without interval
  Answer product(const KernelTask& task, bool another) const;
  Answer grouped(const KernelTask& task, bool as_unknown) const;
  Answer attention(const KernelTask& task, bool as_unknown) const;
  Answer row_by_row(const KernelTask& task) const;

  /// The GPU's own model, else that of the nearest generation with the most similar number of processors. `another`:
  /// never its own. Null if no products were measured.
  const ProductModel* donor(const DataSheet& gpu, bool another) const;

  struct RowFit {
    MemoryBoundConstants constants = typical_memory_bound();
    bool measured = false, own = false, same = false;  ///< at all; of this op; on this GPU
  };
  /// Constants of an op on this GPU, else on the nearest GPU with measurements of it. An op that was never measured has
  /// the constants of all ops together.
  const RowFit& row_fit(const DataSheet& gpu, const std::string& op) const;

  KernelConstants constants_;
  std::vector<ProductModel> products_;
  Libraries libraries_;
  std::map<std::string, DataSheet> sheets_;                                 ///< of the GPUs in the constants
  mutable std::map<std::pair<std::string, std::string>, RowFit> row_fits_;  ///< answers so far, by GPU and op
};

}  // namespace wt
