#include "sim/statistics/normal_posterior.hpp"

#include <Eigen/Cholesky>

namespace wt {

NormalPosterior normal_posterior(const Eigen::VectorXd& spreads, const Eigen::MatrixXd& by,
                                 const Eigen::VectorXd& values, double error) {
  const Eigen::VectorXd variances = spreads.cwiseAbs2();
  if (values.size() == 0) return {Eigen::VectorXd::Zero(spreads.size()), variances.asDiagonal()};
  const double own = error * error;
  const Eigen::MatrixXd precision = Eigen::MatrixXd(variances.cwiseInverse().asDiagonal()) + by.transpose() * by / own;
  NormalPosterior out;
  out.covariance = precision.ldlt().solve(Eigen::MatrixXd::Identity(spreads.size(), spreads.size()));
  out.mean = out.covariance * (by.transpose() * values) / own;
  return out;
}

}  // namespace wt
