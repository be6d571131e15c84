#include "planner/cadence/recovery_formulas.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "configs/base/number.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

double capacity_goodput(const std::vector<CapacityState>& states, double repair) {
  double weight = 1, all = 0, kept = 0;
  for (std::size_t k = 0; k < states.size(); ++k) {
    const CapacityState& s = states[k];
    if (k > 0) weight *= states[k - 1].rate * repair / static_cast<double>(k);
    all += weight;
    kept += weight * (s.speed - s.rate * s.stall);
  }
  return kept / all;
}

double erlang_b(std::int64_t servers, double load) {
  double b = 1;
  for (std::int64_t s = 1; s <= servers; ++s) b = load * b / (static_cast<double>(s) + load * b);
  return b;
}

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

double elastic_goodput(std::int64_t units, double mtbf, double repair, double change) {
  const double a = replica_availability(units, mtbf, repair);
  return a / (1 + 2 * a * change / mtbf);
}

double peer_copies_survive(std::int64_t nodes, std::int64_t group, std::int64_t lost) {
  if (lost < group) return 1;
  // (N/m) C(N-m, k-m) / C(N, k) = (N/m) prod_{i<m} (k-i)/(N-i), without the large numbers
  double all_of_a_group = as_double(nodes) / as_double(group);
  for (std::int64_t i = 0; i < group; ++i) all_of_a_group *= as_double(lost - i) / as_double(nodes - i);
  return 1 - all_of_a_group;
}

double ring_copies_survive(std::int64_t nodes) { return 1 - 2 / as_double(nodes - 1); }

double no_clean_save(double interval, double latency, std::int64_t kept) {
  const double x = interval / latency;
  return (std::exp(-as_double(kept - 1) * x) - std::exp(-as_double(kept) * x)) / x;
}

double replicas_hit(std::int64_t replicas, std::int64_t nodes) {
  const double g = as_double(replicas);
  return g * (1 - std::pow(1 - 1 / g, as_double(nodes)));
}

double failures_masked(std::int64_t nodes, std::int64_t copies) {
  const double r = as_double(copies);
  return std::tgamma(1 / r) * std::pow(as_double(nodes), 1 - 1 / r) / r;
}

std::int64_t best_copies(std::int64_t nodes) {
  return static_cast<std::int64_t>(std::floor(std::log2(as_double(nodes)) + 0.833));
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

double repair_that_pays(double speed, double down, double up) { return (down + up) / speed; }

}  // namespace wt
