// How uneven the loads of experts are while a model trains, where nobody recorded its own. The share of an expert
// differs from the balanced one for two reasons:
//
// - Lasting: the router prefers some experts over the whole batch. How much depends on what balances it.
// - Passing: the tokens of a document choose alike, so that a microbatch is a sample of few documents. This part
// shrinks
//   with the tokens that the ranks of an expert group route together.
//
// Both vanish where every token takes every expert. The constants follow from recordings of other models
// (configs/routing/README.md); for any one model they are assumed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/model.hpp"

namespace wt {

/// What keeps a router balanced: a loss, a bias that choosing adds to scores, or nothing.
enum class Balancing { loss, bias, none };
std::string to_string(Balancing balancing);
Balancing balancing_of(const RouterSpec& router);

struct TrainedLoads {
  /// Standard deviation of a rarely chosen expert's share of all tokens, over the balanced share.
  double lasting = 0;
  /// Variance of the same inside a document, times the tokens of a document.
  double alike_tokens = 0;
  /// Rows that an expert takes of one rank, over the balanced number; more are dropped. 0 = none are.
  double capacity = 0;
};
TrainedLoads trained_loads(Balancing balancing);

/// Standard deviation of an expert's share over the balanced share, of a microbatch of `tokens`.
double unevenness(const TrainedLoads& loads, const ModelSpec& model, double tokens);

/// Shares of each layer's choices: a log-normal distribution of that unevenness, taken at evenly spaced probabilities
/// and dealt to the experts in an order drawn for the layer, the same in every run. Rows sum to 1 less the dropped
/// share; no expert gets more than all tokens.
std::vector<std::vector<double>> trained_shares(const TrainedLoads& loads, const ModelSpec& model, double tokens);

/// Rows of the fullest of `ranks`, which hold as many experts each, over those of the mean rank before any are dropped:
/// so many that this share of microbatches and layers have no more. The sum of a rank's experts counts as log-normal.
double fullest_rank(const TrainedLoads& loads, const ModelSpec& model, std::int64_t ranks, double tokens,
                    double probability);

}  // namespace wt
