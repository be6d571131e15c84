#include "planner/cadence/recovery_formulas.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "configs/base/number.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

double two_level_goodput(const TwoLevels& l) {
  const double p = std::exp(-(l.local_interval + l.blocking) / l.mtbf), n = as_double(l.locals_a_save);
  const double d = 1 - (1 - p) * l.survival, b = p / d;
  const double a = (1 - p) * (l.mtbf + l.downtime + l.survival * l.local_reload + (1 - l.survival) * l.reload) / d;
  const double expected = l.survival >= 1 ? n * a : a * (std::pow(b, -n) - 1) / (1 - b);
  return n * l.local_interval / expected;
}

double replica_availability(std::int64_t replicas, double mtbf, double recover) {
  return 1 / (1 + recover / (as_double(replicas) * mtbf));
}

double replica_goodput(std::int64_t replicas, double mtbf, double recover, double stall, std::int64_t microbatches) {
  const double a = replica_availability(replicas, mtbf, recover);
  const boost::math::binomial_distribution<double> alive(as_double(replicas), a);
  double speed = 0;
  for (std::int64_t k = 1; k <= replicas; ++k)
    speed += boost::math::pdf(alive, as_double(k)) / replica_step_factor(replicas, k, microbatches);
  return speed / (1 + a * stall / mtbf);
}

double no_clean_save(double interval, double latency, std::int64_t kept) {
  const double x = interval / latency;
  return (std::exp(-as_double(kept - 1) * x) - std::exp(-as_double(kept) * x)) / x;
}

double survival_that_pays(double interval, double persist, double reload, double mtbf, double local_interval,
                          double local_blocking, double local_reload) {
  const double saved = interval / 2 + persist + reload - local_interval / 2 - local_reload;
  return saved > 0 ? local_blocking * (1 / local_interval - 1 / interval) * mtbf / saved : INFINITY;
}

double replica_loss_that_pays(double downtime, double reload, double interval, double overhead, double mtbf) {
  return downtime + reload + interval / 2 - overhead * mtbf;
}

double activation_that_pays(double cold, double mtbf, std::int64_t nodes, std::int64_t standbys) {
  return cold - as_double(standbys) * mtbf / as_double(nodes);
}

double silent_mtbf_that_pays(double interval, double latency, double verify) {
  return interval * (latency - interval / 2) / verify;
}

double latency_that_pays(double interval, double silent, double verify) {
  return silent * verify / interval + interval / 2;
}

double unchecked_goodput(double goodput, double interval, double latency, double silent, double down) {
  return std::max(0.0, silent - interval / 2) / ((silent + latency) / goodput + down);
}

}  // namespace wt
