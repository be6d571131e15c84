// The published runs that a step is most like: what its prediction rests on.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"
#include "configs/files/stack.hpp"

namespace wt {

/// What makes two steps alike.
struct RunFeatures {
  std::string family;  ///< step_family
  std::string gpu;     ///< of the cluster's first kind, as its data sheet names it
  std::string stack;
  std::string format;          ///< of forward products
  double gpus = 1;             ///< ranks
  double flops_per_token = 1;  ///< of the model, with attention
  double sequence = 1;         ///< tokens
  double microbatch = 1;       ///< tokens of a rank
  double expert = 1;           ///< expert-parallel degree
  double split = 1;            ///< ranks that share one microbatch: tensor x pipeline x context
};
RunFeatures features_of(const RunSpec& run, const ClusterSpec& cluster, const StackSpec& stack);

/// A published run with what was predicted for it without anything that its origin published.
struct MeasuredRun {
  std::string name, origin;
  RunFeatures features;
  double measured = 0, predicted = 0;  ///< tokens/s of a GPU
  /// Measured over predicted step time.
  double ratio() const { return predicted / measured; }
};
void to_json(nlohmann::json& json, const MeasuredRun& run);
void from_json(const nlohmann::json& json, MeasuredRun& run);

/// The sum over the features of the doublings between them. Another GPU, stack or format counts as one doubling.
/// Infinite between families.
double doublings_apart(const RunFeatures& a, const RunFeatures& b);
/// Doublings beyond which a measured run is no relative.
constexpr double kFarAway = 6;

struct Relative {
  MeasuredRun run;
  double doublings = 0;
  std::vector<std::string> differences;  ///< how the asked step differs: "4 x the GPUs", "stack torchtitan"
};
/// The nearest runs, the nearest first, of each origin and model one at most.
std::vector<Relative> relatives(const RunFeatures& asked, const std::vector<MeasuredRun>& runs, std::size_t most);

/// Amounts above twice the largest of the family's runs, or below half of the smallest: "3072 GPUs, where runs like it
/// had 1024 at most". Empty if there are none.
std::vector<std::string> beyond_measured(const RunFeatures& asked, const std::vector<MeasuredRun>& runs);

}  // namespace wt
