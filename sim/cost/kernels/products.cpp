#include "sim/cost/kernels/products.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/cost/fit/fit.hpp"

namespace wt {
namespace {

// How far a shape may lie off to say something: a tenth in rows, as cuBLAS changes tiles with them, a twentieth in
// waves, as their rounding does, and about 1.35 and 2 times in n and k. Chosen on A100 and H100 together; half or twice
// each changes the mean error by less than 0.2 points.
constexpr double kReach_m = 0.1, kReach_n = 0.3, kReach_k = 0.7, kReach_waves = 0.05;
constexpr double kDoubt = 0.3;             // weight of "no correction", in neighbours
constexpr double kFarthest = 4;            // in reaches; beyond, a neighbour weighs < 4e-4
constexpr std::size_t kMostFitted = 1600;  // rows a fit; more only cost time

double ln_waves(const Product& p, const DataSheet& gpu) {
  return std::log(std::ceil(p.m / 128) * std::ceil(p.n / 128) / static_cast<double>(gpu.processors));
}

std::vector<std::string> groups_of(const std::vector<KernelPoint>& training) {
  std::set<std::string> groups;
  for (const KernelPoint& s : training) groups.insert(s.group);
  return {groups.begin(), groups.end()};
}

}  // namespace

bool ProductModel::enough(const std::vector<KernelPoint>& training) {
  return training.size() >= kFewestRows && groups_of(training).size() >= kFewestGroups;
}

std::size_t ProductModel::fold_of(const std::string& group) const {
  const auto at = std::lower_bound(groups_.begin(), groups_.end(), group);
  if (at == groups_.end() || *at != group) return kFolds;
  return static_cast<std::size_t>(at - groups_.begin()) % kFolds;
}

ProductModel::ProductModel(const std::vector<KernelPoint>& training, const DataSheet& gpu)
    : gpu_(gpu), groups_(groups_of(training)) {
  std::vector<KernelPoint> sorted = training;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const KernelPoint& a, const KernelPoint& b) { return a.shape.m < b.shape.m; });
  for (const KernelPoint& s : sorted) {
    const auto group =
        static_cast<std::size_t>(std::lower_bound(groups_.begin(), groups_.end(), s.group) - groups_.begin());
    neighbours_.push_back({std::log(s.shape.m), std::log(s.shape.n), std::log(s.shape.k), ln_waves(s.product(), gpu),
                           s.relative_rate, group});
  }
  for (std::size_t fold = 0; fold <= kFolds; ++fold) {
    std::vector<TimedProduct> products;
    for (std::size_t i = 0; i < sorted.size(); ++i)
      if (neighbours_[i].group % kFolds != fold || fold == kFolds) {
        products.push_back({sorted[i].product(), sorted[i].seconds});
      }
    Fold out;
    if (!products.empty()) {
      std::vector<TimedProduct> fitted;
      const std::size_t stride = (products.size() + kMostFitted - 1) / kMostFitted;
      for (std::size_t i = 0; i < products.size(); i += stride) fitted.push_back(products[i]);
      out.constants = fit_wave(fitted, gpu, typical_wave());
    }
    for (const KernelPoint& s : sorted)
      out.log_left.push_back(std::log(s.seconds / wave_time_s(s.product(), gpu, out.constants)));
    folds_.push_back(std::move(out));
  }
}

double ProductModel::predict(const Product& product, const DataSheet& gpu, const std::string& group, bool near) const {
  const Fold& fold = folds_[fold_of(group)];
  const double seconds = wave_time_s(product, gpu, fold.constants);
  if (!near) return seconds;
  const Neighbour at{std::log(product.m),    std::log(product.n),   std::log(product.k),
                     ln_waves(product, gpu), product.relative_rate, 0};
  const auto own = static_cast<std::size_t>(std::lower_bound(groups_.begin(), groups_.end(), group) - groups_.begin());
  const bool known = own < groups_.size() && groups_[own] == group;
  const auto square = [](double x) { return x * x; };
  double weights = kDoubt, sum = 0;
  const auto first = std::lower_bound(neighbours_.begin(), neighbours_.end(), at.ln_m - kFarthest * kReach_m,
                                      [](const Neighbour& n, double ln_m) { return n.ln_m < ln_m; });
  for (auto n = first; n != neighbours_.end() && n->ln_m <= at.ln_m + kFarthest * kReach_m; ++n) {
    if ((known && n->group == own) || n->relative_rate != at.relative_rate) continue;
    const double distance = square((n->ln_m - at.ln_m) / kReach_m) + square((n->ln_n - at.ln_n) / kReach_n) +
                            square((n->ln_k - at.ln_k) / kReach_k) + square((n->ln_waves - at.ln_waves) / kReach_waves);
    const double weight = std::exp(-0.5 * distance);
    weights += weight;
    sum += weight * fold.log_left[static_cast<std::size_t>(n - neighbours_.begin())];
  }
  return seconds * std::exp(sum / weights);
}

}  // namespace wt
