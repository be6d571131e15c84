// What observations with normal errors say of parameters that are normal around 0 before: the posterior of a linear
// model in closed form (Bishop, Pattern Recognition and Machine Learning, 3.3).
#pragma once
#include <Eigen/Core>

namespace wt {

struct NormalPosterior {
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;
};

/// Of `spreads.size()` parameters with these standard deviations. Each row of `by` gives an observation of `values` by
/// parameter, each observation has an error of its own with standard deviation `error`. None observed: the prior.
NormalPosterior normal_posterior(const Eigen::VectorXd& spreads, const Eigen::MatrixXd& by,
                                 const Eigen::VectorXd& values, double error);

}  // namespace wt
