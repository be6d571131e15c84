// Typical unevenness of expert loads during training, for models without a recording. An expert's share differs from
// the balanced one for two reasons:
//
// - Lasting: the router prefers some experts over the whole batch. How much depends on the method of balancing.
// - Passing: the tokens of a document choose alike, and a microbatch is a sample of few documents. This part shrinks
//   with the number of tokens that the ranks of an expert group route together.
//
// Both vanish where every token uses every expert. The constants come from recordings of other models
// (configs/routing/README.md); for any single model they are assumed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/model.hpp"

namespace wt {

/// The method that balances a router: a loss, a bias added to scores for the choice, or none.
enum class Balancing { loss, bias, none };
std::string to_string(Balancing balancing);
Balancing balancing_of(const RouterSpec& router);

struct TrainedLoads {
  /// Standard deviation of a rarely chosen expert's share of all tokens, relative to the balanced share.
  double lasting = 0;
  /// Variance of the same inside a document, times the tokens of a document.
  double alike_tokens = 0;
  /// Rows that an expert accepts from one rank, relative to the balanced number; more are dropped. 0 = no limit.
  double capacity = 0;
};
TrainedLoads trained_loads(Balancing balancing);

/// Standard deviation of an expert's share relative to the balanced share, in a microbatch of `tokens`.
double unevenness(const TrainedLoads& loads, const ModelSpec& model, double tokens);

/// Shares of each layer's choices: a log-normal distribution of that unevenness, sampled at evenly spaced probabilities
/// and assigned to the experts in a random order per layer, the same in every run. Rows sum to 1 minus the dropped
/// share; no expert gets more than all tokens.
std::vector<std::vector<double>> trained_shares(const TrainedLoads& loads, const ModelSpec& model, double tokens);

/// Rows of the fullest of `ranks` with equally many experts each, over those of the mean rank, before any are dropped:
/// the quantile `probability` over microbatches and layers. The sum of a rank's experts is taken as log-normal.
double fullest_rank(const TrainedLoads& loads, const ModelSpec& model, std::int64_t ranks, double tokens,
                    double probability);

}  // namespace wt
