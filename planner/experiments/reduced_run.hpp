// A planned run made small enough for one rank of it to run here: fewer layers (they are alike), narrower by a power of
// two, shorter sequences. Mesh, experts, top-k, recompute and precision stay, so the program has the plan's ops.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "configs/files/run.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// d_model, FFN widths and heads over `divisor`, the vocabulary too (rounded up). Heads are halved while queries' and
/// keys' both are even, then the head's width is. Throws Error{usage} where a width does not scale to what kernels
/// take.
ModelSpec scaled_model(const ModelSpec& model, std::int64_t divisor, Precision precision);

/// Steps `first` .. `first + steps - 1` of a routing source as one rank of the run meets them, in whole rows.
class RankRouting {
 public:
  RankRouting(const RunSpec& run, const RoutingSource& source) : run_(run), source_(source), mesh_(run.layout) {}
  /// Rows that a source rank sends to each logical expert.
  std::vector<std::int64_t> sent(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                                 std::int64_t source) const;
  /// Rows that run.rehearsal.rank receives; 0 where experts are not exchanged.
  double received(std::int64_t step, std::int64_t microbatch, std::int64_t layer) const;
  RowsBound rows(std::int64_t step) const;
  /// A recording (routing.csv) of the rank's expert group, steps 1 .. `steps`.
  std::string recording(std::int64_t steps) const;

 private:
  const RunSpec& run_;
  const RoutingSource& source_;
  Mesh mesh_;
};

/// The program of run.rehearsal.rank on the run's device.
Program rank_program(const RunSpec& run);
/// FLOPs of all work items of a step.
double step_flops(const Program& program, const RowsBound& rows);

struct RehearsalLimits {
  double memory_bytes = 0;  ///< tensors of the rank
  double step_flops = 0;
};
/// What the device has free, less what the process itself takes; and a step of a second or two. Throws Error{runtime}
/// where there is no such device.
RehearsalLimits limits_of(DeviceKind device);

/// The routing of a run of this shape (tokens differ with the sequence).
using RoutingOfRun = std::function<std::unique_ptr<RoutingSource>(const RunSpec&)>;

/// The largest run within the limits that plan.rehearsal allows: as it is where that fits; else the first layers and at
/// most two microbatches, at the largest width, with the longest sequences that still fit. Throws Error{finding} where
/// nothing fits, with what the smallest needs, and Error{usage} where plan.rehearsal asks for a width that does not
/// scale.
RunSpec reduced_run(const RunSpec& plan, const RoutingOfRun& routing, const RehearsalLimits& limits);

}  // namespace wt
