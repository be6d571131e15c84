// Prices of a step program's work from published times, on a GPU whose products have been measured: matrix products by
// the wave model and its neighbours (products.hpp), attention by the share of peak that FlashAttention-2 reaches,
// everything else by bytes (memory_bound.hpp), all-to-alls inside a node by collective_model.hpp. Nothing in here has
// seen a training step.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/program/work_item.hpp"
#include "sim/validate/collective_model.hpp"
#include "sim/validate/kernel_rows.hpp"
#include "sim/validate/memory_bound.hpp"
#include "sim/validate/products.hpp"

namespace wt {

class KernelPrices {
 public:
  /// GPUs with enough products among `kernels` can be asked for. Throws Error{usage} without all-to-alls inside a node.
  KernelPrices(const std::vector<KernelRow>& kernels, const std::vector<CollectiveRow>& collectives);

  /// By a free-form name; nothing where it was not measured.
  bool knows(const std::string& gpu) const;

  /// Seconds of an item with `rows` bound. Both, and the next: `gpu` is one that it knows.
  double item_s(const std::string& gpu, const WorkItem& item, double rows) const;
  /// Seconds of an all-to-all among `ranks` GPUs of a node, of which the busiest sends or receives `bytes`.
  double exchange_s(const std::string& gpu, double bytes, std::int64_t ranks) const;

 private:
  struct Gpu {
    DataSheet sheet;
    ProductModel products;
    MemoryBoundConstants memory;
  };
  const Gpu& at(const std::string& gpu) const;
  static double product_s(const Gpu& gpu, const WorkItem& item, double m, double groups);

  std::map<std::string, Gpu> gpus_;  ///< by the data sheet's name
  std::vector<CollectiveSample> exchanges_;
  std::optional<CollectiveFit> exchange_;
};

}  // namespace wt
