// The one place where times are made: plans, simulated steps and what-ifs ask here. They rest on published constants
// (published_constants.hpp) and on what was measured on the user's machine. Judges ask the same estimators with
// constants that were fitted without what they judge (sim/fit/published_times.hpp).
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
  std::vector<std::string> profiles;  ///< measured on this machine: files, or names in configs/profiles
  std::filesystem::path machine;      ///< a machine model made of some, instead
  std::string stack;                  ///< of configs/stacks; empty = kDefaultStack
  bool allow_assumed = false;         ///< answer what nobody measured on shared cores by a roofline
  Precision compute = Precision::bf16;
  Precisions precisions = {};
};

struct MachineTimes {
  std::shared_ptr<const OpCost> cost;
  StepIntervals intervals;
  StackSpec stack;                                 ///< how the program uses the machine
  std::string basis;                               ///< "torchtitan, published runs", or the names of profiles before it
  std::map<std::string, std::string> fingerprint;  ///< of the machine that was measured; empty = none was
  std::vector<Profile> profiles;
  std::vector<StorageRates> storage;  ///< what profiles or machine say of the places that hold checkpoints
};

/// Of GPUs: measured points first, published ones next, as the stack uses the machine. Of ranks on shared cores: what
/// was measured there. Throws Error{usage}: neither profile nor machine of shared cores, a profile of another machine
/// than the cluster's first `ranks` ranks have, unknown names.
MachineTimes make_times(const TimeSources& sources, const ClusterSpec& cluster, std::int64_t ranks);

}  // namespace wt
