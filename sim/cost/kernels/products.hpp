// Predictions of matrix products on one GPU, each from constants and neighbours that have not seen its shape family.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/kernels/kernel_points.hpp"

namespace wt {

class ProductModel {
 public:
  /// `training`: products of one GPU. Their groups are dealt to kFolds folds; each fold's constants are fitted on the
  /// others (a few seconds for thousands of rows).
  ProductModel(const std::vector<KernelPoint>& training, const DataSheet& gpu);

  /// Enough to fit ten constants without one group and one fold.
  static bool enough(const std::vector<KernelPoint>& training);
  static constexpr std::size_t kFolds = 10, kFewestGroups = 5, kFewestRows = 60;

  /// Seconds on `gpu`, whose data sheet scales the constants; rows of `group` have no part in it. `near`: corrected by
  /// what the constants leave over at similar shapes, which says something only for GPUs with as many processors.
  double predict(const Product& product, const DataSheet& gpu, const std::string& group, bool near) const;
  /// Constants fitted on everything.
  const WaveConstants& constants() const { return folds_.back().constants; }

 private:
  struct Fold {
    WaveConstants constants;
    std::vector<double> log_left;  ///< of each neighbour: log(measured / predicted)
  };
  struct Neighbour {
    double ln_m, ln_n, ln_k, ln_waves, relative_rate;
    std::size_t group;
  };
  std::size_t fold_of(const std::string& group) const;

  DataSheet gpu_;
  std::vector<std::string> groups_;    ///< sorted
  std::vector<Neighbour> neighbours_;  ///< by ln_m
  std::vector<Fold> folds_;            ///< kFolds, then one fitted on everything
};

}  // namespace wt
