// A published run's step on the simulator: its step program replayed with the prices of its stack, on a cluster of its
// GPUs and adapters. Where the step model (step_model.hpp) blends computation with what runs beside it, here the replay
// decides what overlaps, as it does in plans.
#pragma once
#include <memory>

#include "configs/spec/cluster.hpp"
#include "sim/validate/runs.hpp"

namespace wt {

/// As many nodes as the run has, each with the adapters that its source names or that are usual for its GPU; nothing is
/// oversubscribed. Throws Error{usage} without a data sheet of the GPU, and where adapters are wanted and not known.
ClusterSpec cluster_of(const RunRow& run);

class ReplayedRuns {
 public:
  /// `every_microbatch`: no step is continued from its first microbatches; what that is worth is a test's question.
  explicit ReplayedRuns(const RunReference& reference, bool every_microbatch = false);
  /// Seconds of the run's step. Of more than kReplayed microbatches, of a pipeline twice its stages, the further ones
  /// take as long as the last of these; stages have equally many layers. Throws Error{usage} for what is not replayed
  /// here: more than kMostGpus, stages of unlike numbers of layers, interleaved ones without whole rounds of
  /// microbatches, tensor ranks with experts of their own, rows that travel beside another microbatch, and what
  /// step_work() refuses.
  double seconds(const RunRow& run, const StepTraits& traits, const StepConstants& constants) const;
  static constexpr std::int64_t kReplayed = 3, kMostGpus = 16384;

 private:
  bool every_microbatch_;
  std::shared_ptr<const GpuTimes> gpu_;
  std::shared_ptr<const CollectiveEstimator> fabric_;
};

}  // namespace wt
