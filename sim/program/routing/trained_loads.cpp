#include "sim/program/routing/trained_loads.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>
#include <utility>

#include "configs/base/hash.hpp"
#include "sim/program/routing/shares.hpp"

namespace wt {
namespace {

/// Tokens of a web page, as a mean weighted by tokens. Assumed; a corpus of long documents has more (LAER's wikitext:
/// 4,900 / kInDocument^2 = 7,700).
constexpr double kDocumentTokens = 2048;
/// Standard deviation of an expert's share inside a document. Derived: our trainer 0.65 to 0.88; LAER 0.77 if a
/// document fills its sequence; OLMoE 0.6 to 1.2 between whole domains.
constexpr double kInDocument = 0.8;

/// Quantile of the standard normal distribution.
double at_probability(double p) { return boost::math::quantile(boost::math::normal(), p); }

/// Sigma of the log-normal distribution with mean 1 and this standard deviation.
double log_sigma(double deviation) { return std::sqrt(std::log1p(deviation * deviation)); }

/// A random order of a layer's experts: Fisher and Yates, with numbers of SplitMix64.
std::vector<std::size_t> drawn_order(std::size_t experts, std::size_t layer) {
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t state = splitmix64(layer + 1);
  for (std::size_t left = experts; left > 1; --left) {
    state = splitmix64(state);
    std::swap(order[left - 1], order[state % left]);
  }
  return order;
}

}  // namespace

std::string to_string(Balancing balancing) {
  switch (balancing) {
    case Balancing::loss:
      return "loss";
    case Balancing::bias:
      return "bias";
    default:
      return "none";
  }
}

Balancing balancing_of(const RouterSpec& router) {
  if (router.bias_update_rate > 0) return Balancing::bias;
  return router.aux_loss_weight > 0 ? Balancing::loss : Balancing::none;
}

TrainedLoads trained_loads(Balancing balancing) {
  const double alike = kInDocument * kInDocument * kDocumentTokens;
  switch (balancing) {
    case Balancing::loss:
      return {0.3, alike};
    case Balancing::bias:
      return {0.05, alike};
    default:
      return {1.1, alike};
  }
}

double unevenness(const TrainedLoads& loads, const ModelSpec& model, double tokens) {
  // A change of score changes the odds. An expert chosen by most tokens gains less: its share changes by the factor 1 -
  // share.
  const double chosen = static_cast<double>(model.top_k) / static_cast<double>(model.experts), rarely = 1 - chosen;
  const double sampling = rarely / chosen / tokens;  // variance if tokens choose independently
  return std::sqrt(rarely * rarely * (loads.lasting * loads.lasting + loads.alike_tokens / tokens) + sampling);
}

std::vector<std::vector<double>> trained_shares(const TrainedLoads& loads, const ModelSpec& model, double tokens) {
  const auto experts = static_cast<std::size_t>(model.experts);
  const double sigma = log_sigma(unevenness(loads, model, tokens)), even = 1.0 / static_cast<double>(experts);
  std::vector<double> sorted;
  for (std::size_t e = 0; e < experts; ++e)
    sorted.push_back(std::exp(sigma * at_probability((static_cast<double>(e) + 0.5) * even)));
  sorted = capped_shares(std::move(sorted), 1.0 / static_cast<double>(model.top_k));
  if (loads.capacity > 0)
    for (double& share : sorted) share = std::min(share, loads.capacity * even);
  std::vector<std::vector<double>> layers;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::vector<std::size_t> order = drawn_order(experts, static_cast<std::size_t>(layer));
    std::vector<double>& dealt = layers.emplace_back(experts);
    for (std::size_t e = 0; e < experts; ++e) dealt[order[e]] = sorted[e];
  }
  return layers;
}

double fullest_rank(const TrainedLoads& loads, const ModelSpec& model, std::int64_t ranks, double tokens,
                    double probability) {
  const double n = static_cast<double>(ranks), experts = static_cast<double>(model.experts), held = experts / n;
  if (ranks == 1) return 1;
  // The sum of `held` out of a finite number of shares varies less: rows that one rank has, the other ranks lack.
  const double of_sum = unevenness(loads, model, tokens) * std::sqrt((experts - held) / (experts - 1) / held);
  const double sigma = log_sigma(of_sum);
  double rows = std::exp(sigma * at_probability(std::pow(probability, 1 / n)) - sigma * sigma / 2);
  rows = std::clamp(rows, 1.0, n * std::min(held, static_cast<double>(model.top_k)) / static_cast<double>(model.top_k));
  return loads.capacity > 0 ? std::min(rows, loads.capacity) : rows;
}

}  // namespace wt
