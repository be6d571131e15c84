// Non-linear least squares for a handful of constants: Eigen's Levenberg-Marquardt (a port of MINPACK) with a
// forward-difference Jacobian and residuals that outliers cannot pull far.
#pragma once
#include <Eigen/Core>
#include <functional>

namespace wt {

/// Writes all residuals for the parameters. Their count is fixed.
using Residuals = std::function<void(const Eigen::VectorXd& parameters, Eigen::VectorXd& residuals)>;

/// The parameters that minimise the sum of squares, searched from `start`. Throws Error{usage} if there are fewer
/// residuals than parameters: give each parameter a prior, which is one residual.
Eigen::VectorXd least_squares(const Residuals& residuals, Eigen::Index count, Eigen::VectorXd start);

/// Residuals are divided by this: the relative error beyond which a measured time or size counts as an outlier.
inline constexpr double kResidualScale = 0.1;

/// Residual whose square is Charbonnier's loss 2 (sqrt(1 + r^2) - 1): quadratic below 1, linear above.
double robust(double r);

}  // namespace wt
