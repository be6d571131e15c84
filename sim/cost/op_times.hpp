// Makes all times of plans, simulated steps and what-ifs. They rest on published constants (published_constants.hpp)
// and on measurements of the user's machine. Validation uses the same estimators, with constants that were fitted
// without the data to be predicted (sim/fit/published_times.hpp).
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/profile.hpp"
#include "configs/files/stack.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/cost/stacks/step_intervals.hpp"

namespace wt {

struct TimeSources {
  std::vector<std::string> profiles = {};  ///< measured on this machine: files, or names in configs/profiles
  std::filesystem::path machine = {};      ///< a machine model, instead of profiles
  std::string stack = {};                  ///< name in configs/stacks; empty = kDefaultStack
  StackSpec read_stack() const { return wt::read_stack(stack.empty() ? kDefaultStack : stack); }
  /// The stack's constants of the step are multiplied by these, by name of kStackFactors (OwnSteps::factors).
  std::map<std::string, double> factors = {};
  bool allow_assumed = false;  ///< on shared cores, use a roofline for kernels that were not measured
  Precision compute = Precision::bf16;
  Precisions precisions = {};
};

struct MachineTimes {
  std::shared_ptr<const OpCost> cost;
  StepIntervals intervals;
  StackSpec stack;                                 ///< determines how the program uses the machine
  std::string basis;                               ///< "torchtitan, published runs", after the names of profiles
  std::map<std::string, std::string> fingerprint;  ///< of the measured machine; empty = none
  std::vector<Profile> profiles;
  std::vector<StorageRates> storage;  ///< measured rates of checkpoint storage
};

/// On GPUs: measured points first, then published times, with the stack's constants. For ranks on shared cores:
/// measurements of these. Throws Error{usage} for shared cores without profile or machine model, a profile of other
/// GPUs than those of the cluster's first `ranks` ranks, and unknown names.
MachineTimes make_times(const TimeSources& sources, const ClusterSpec& cluster, std::int64_t ranks);

}  // namespace wt
