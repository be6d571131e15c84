#include "sim/statistics/least_squares.hpp"

#include <cmath>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr int kMostEvaluations = 2000;  // of all residuals; fits in this project take 100-600
constexpr double kTolerance = 1e-6;     // relative, of sum and parameters: far below the resolution of the data

struct Functor {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const Residuals* residuals;
  Eigen::Index parameters, count;

  int inputs() const { return static_cast<int>(parameters); }
  int values() const { return static_cast<int>(count); }
  int operator()(const Eigen::VectorXd& x, Eigen::VectorXd& out) const {
    (*residuals)(x, out);
    return 0;
  }
};

}  // namespace

Eigen::VectorXd least_squares(const Residuals& residuals, Eigen::Index count, Eigen::VectorXd start) {
  if (count < start.size())
    throw_usage("least squares: found {} residuals for {} parameters, needs at least as many", count, start.size());
  const Functor functor{&residuals, start.size(), count};
  Eigen::NumericalDiff<Functor> differentiated(functor, 1e-12);  // step 1e-6; sums have rounding errors of 1e-13
  Eigen::LevenbergMarquardt<Eigen::NumericalDiff<Functor>> solver(differentiated);
  solver.parameters.maxfev = kMostEvaluations;
  solver.parameters.ftol = solver.parameters.xtol = kTolerance;
  solver.minimize(start);
  return start;
}

double robust(double r) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + r * r) - 1)), r); }

}  // namespace wt
