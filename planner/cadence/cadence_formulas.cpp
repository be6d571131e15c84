#include "planner/cadence/cadence_formulas.hpp"

#include <algorithm>
#include <boost/math/distributions/poisson.hpp>
#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "configs/base/error.hpp"

namespace wt {

double exact_interval(double blocking, double mtbf) {
  if (blocking <= 0) return 0;  // the branch point of W0, where rounding could leave its domain
  return mtbf * (1 + boost::math::lambert_w0(-std::exp(-blocking / mtbf - 1)));
}

double longest_interval(double blocking, double mtbf, double best, double share) {
  const auto goodput = [&](double tau) {  // up to a constant factor
    return tau + blocking > 0 ? tau / std::expm1((tau + blocking) / mtbf) : mtbf;
  };
  const double least = (1 - share) * goodput(best);
  double low = best, high = std::max(2 * best, 1e-9 * mtbf);
  while (goodput(high) >= least) low = high, high *= 2;
  for (int i = 0; i < 50; ++i) (goodput((low + high) / 2) >= least ? low : high) = (low + high) / 2;
  return low;
}

double persisted_goodput(double mtbf, double interval, double blocking, double persist, double downtime,
                         double reload) {
  return interval * std::exp(-(reload + persist) / mtbf) /
         ((mtbf + downtime) * std::expm1((interval + blocking) / mtbf));
}

double replicas_lost_mtbf(std::int64_t replicas, double mtbf, double away) {
  constexpr double kAsGoodAsNever_s = 1e15;
  if (!(away > 0)) return kAsGoodAsNever_s;
  if (away / mtbf >= static_cast<double>(replicas) / 2) return mtbf;  // half of them are away on average
  const boost::math::poisson_distribution<double> number_away(away / mtbf);
  return std::min(kAsGoodAsNever_s, mtbf / boost::math::pdf(number_away, static_cast<double>(replicas / 2)));
}

std::int64_t spares_needed(std::int64_t nodes, double failures_per_node_s, double repair_s, double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw_usage("spares: found confidence {}, needs a probability between 0 and 1 such as 0.99", confidence);
  const double mean = static_cast<double>(nodes) * failures_per_node_s * repair_s;
  if (!(mean >= 0 && std::isfinite(mean)))
    throw_usage("spares: found {} nodes in repair on average, needs a finite number >= 0", mean);
  if (mean == 0) return 0;
  namespace math = boost::math;
  using WholeUp = math::policies::policy<math::policies::discrete_quantile<math::policies::integer_round_up>>;
  return static_cast<std::int64_t>(math::quantile(math::poisson_distribution<double, WholeUp>(mean), confidence));
}

}  // namespace wt
