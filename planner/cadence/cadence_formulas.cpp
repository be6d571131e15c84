#include "planner/cadence/cadence_formulas.hpp"

#include <algorithm>
#include <boost/math/distributions/poisson.hpp>
#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "configs/base/error.hpp"

namespace wt {

double young_interval(double blocking, double mtbf) { return std::sqrt(2 * blocking * mtbf); }

double daly_interval(double blocking, double mtbf) {
  if (blocking >= 2 * mtbf) return mtbf;
  const double x = blocking / (2 * mtbf);
  return std::sqrt(2 * blocking * mtbf) * (1 + std::sqrt(x) / 3 + x / 9) - blocking;
}

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

double expected_time(double work, double interval, double blocking, double downtime, double reload, double mtbf) {
  return work / interval * std::exp(reload / mtbf) * (mtbf + downtime) * std::expm1((interval + blocking) / mtbf);
}

double expected_lost(double span, double mtbf) { return mtbf - span / std::expm1(span / mtbf); }

double persisted_goodput(const std::function<double(double)>& survival, double mean, double interval, double blocking,
                         double persist, double downtime, double reload) {
  double sum = 0;
  for (std::int64_t k = 1;; ++k) {
    const double term = survival(reload + static_cast<double>(k) * (interval + blocking) + persist);
    sum += term;
    if (term <= 1e-14 * sum || term == 0) break;
  }
  return interval * sum / (mean + downtime);
}

double persisted_goodput(double mtbf, double interval, double blocking, double persist, double downtime,
                         double reload) {
  return interval * std::exp(-(reload + persist) / mtbf) /
         ((mtbf + downtime) * std::expm1((interval + blocking) / mtbf));
}

double multilevel_overhead(const std::vector<CheckpointLevel>& levels) {
  double sum = 0;
  for (const CheckpointLevel& level : levels) sum += std::sqrt(2 * level.blocking / level.mtbf);
  return sum;
}

double verified_segment(double interval, double verify, double blocking, double reload, double silent) {
  return (interval + verify) * std::exp(interval / silent) + blocking + reload * std::expm1(interval / silent);
}

double verified_interval(double verify, double blocking, double silent, double mtbf) {
  return std::sqrt((verify + blocking) / (1 / silent + 0.5 / mtbf));
}

double replicas_lost_mtbf(std::int64_t replicas, double mtbf, double away) {
  constexpr double kAsGoodAsNever_s = 1e15;
  if (!(away > 0)) return kAsGoodAsNever_s;
  if (away / mtbf >= static_cast<double>(replicas) / 2) return mtbf;  // half of them are away on average
  const boost::math::poisson_distribution<double> number_away(away / mtbf);
  return std::min(kAsGoodAsNever_s, mtbf / boost::math::pdf(number_away, static_cast<double>(replicas / 2)));
}

double meta_ettr(double mtbf, double restart, double save, double interval) {
  return (1 - (restart + interval / 2) / mtbf) / (1 + save / interval);
}

double meta_interval(double mtbf, double save) { return std::sqrt(2 * save * mtbf); }

std::int64_t spares_needed(std::int64_t nodes, double failures_per_node_s, double repair_s, double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw_error(Code::usage, "spares: found confidence {}, needs a probability between 0 and 1 such as 0.99",
                confidence);
  const double mean = static_cast<double>(nodes) * failures_per_node_s * repair_s;
  if (!(mean >= 0 && std::isfinite(mean)))
    throw_error(Code::usage, "spares: found {} nodes in repair on average, needs a finite number >= 0", mean);
  if (mean == 0) return 0;
  namespace math = boost::math;
  using WholeUp = math::policies::policy<math::policies::discrete_quantile<math::policies::integer_round_up>>;
  return static_cast<std::int64_t>(math::quantile(math::poisson_distribution<double, WholeUp>(mean), confidence));
}

std::function<double(double)> weibull_survival(double mean, double shape) {
  const double scale = mean / std::tgamma(1 + 1 / shape);
  return [=](double t) { return t <= 0 ? 1.0 : std::exp(-std::pow(t / scale, shape)); };
}

}  // namespace wt
