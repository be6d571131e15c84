#include "sim/statistics/non_negative_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <bit>

#include "configs/base/error.hpp"

namespace wt {

std::vector<double> fit_relative(const std::vector<std::vector<double>>& features, const std::vector<double>& seconds) {
  return fit_non_negative(features, seconds, seconds);
}

std::vector<double> fit_non_negative(const std::vector<std::vector<double>>& features,
                                     const std::vector<double>& target, const std::vector<double>& scale) {
  if (features.empty()) throw_usage("fit: found no measurement, allowed at least one");
  const std::size_t count = features.front().size();
  const auto n = static_cast<Eigen::Index>(features.size());

  // Columns are scaled to unit length: FLOPs and launches differ by twelve orders of magnitude.
  Eigen::MatrixXd scaled(n, static_cast<Eigen::Index>(count));
  Eigen::VectorXd wanted(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    wanted[i] = target[at] / scale[at];
    for (std::size_t j = 0; j < count; ++j) scaled(i, static_cast<Eigen::Index>(j)) = features[at][j] / scale[at];
  }
  const Eigen::VectorXd length = scaled.colwise().norm();

  std::vector<unsigned> subsets;
  for (unsigned subset = 1; subset < (1u << count); ++subset) subsets.push_back(subset);
  std::stable_sort(subsets.begin(), subsets.end(),
                   [](unsigned a, unsigned b) { return std::popcount(a) < std::popcount(b); });

  std::vector<double> best(count, 0.0);
  double best_residual = wanted.squaredNorm();  // with all coefficients zero
  for (unsigned subset : subsets) {
    std::vector<Eigen::Index> columns;
    for (std::size_t j = 0; j < count; ++j)
      if (subset >> j & 1u) columns.push_back(static_cast<Eigen::Index>(j));
    if (static_cast<Eigen::Index>(columns.size()) > n) continue;
    if (std::any_of(columns.begin(), columns.end(), [&](Eigen::Index j) { return !(length[j] > 0); })) continue;
    Eigen::MatrixXd part(n, static_cast<Eigen::Index>(columns.size()));
    for (std::size_t j = 0; j < columns.size(); ++j)
      part.col(static_cast<Eigen::Index>(j)) = scaled.col(columns[j]) / length[columns[j]];
    const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> solver(part);
    if (solver.rank() < part.cols()) continue;
    const Eigen::VectorXd solution = solver.solve(wanted);
    if ((solution.array() < 0).any()) continue;
    const double residual = (part * solution - wanted).squaredNorm();
    if (residual >= best_residual * (1 - 1e-9) - 1e-18 * static_cast<double>(n)) continue;
    best_residual = residual;
    std::fill(best.begin(), best.end(), 0.0);
    for (std::size_t j = 0; j < columns.size(); ++j)
      best[static_cast<std::size_t>(columns[j])] = solution[static_cast<Eigen::Index>(j)] / length[columns[j]];
  }
  return best;
}

}  // namespace wt
