// Reduces a planned run so that one of its ranks can run here: fewer layers (layers are alike), widths divided by a
// power of two, shorter sequences. Mesh, experts, top-k, recompute and precision are kept, so the program has the
// plan's ops.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "configs/files/run.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// Divides d_model, FFN widths, heads and vocabulary (rounded up) by `divisor`. Heads are halved while the numbers of
/// query and key heads are both even; after that the head width is. Throws Error{usage} if a width does not scale to
/// one that kernels support.
ModelSpec scaled_model(const ModelSpec& model, std::int64_t divisor, Precision precision);

/// Steps `first` .. `first + steps - 1` of a routing source for one rank of the run, in whole rows.
class RankRouting {
 public:
  RankRouting(const RunSpec& run, const RoutingSource& source) : run_(run), source_(source), mesh_(run.layout) {}
  /// Rows that a source rank sends to each logical expert.
  std::vector<std::int64_t> sent(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                                 std::int64_t source) const;
  /// Rows that run.rehearsal.rank receives; 0 if experts are not exchanged.
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
/// The free memory of the device, less what the process needs, and the FLOPs of a step of a second or two. Throws
/// Error{runtime} if there is no such device.
RehearsalLimits limits_of(DeviceKind device);

/// The routing of a run of this shape. Tokens depend on the sequence length.
using RoutingOfRun = std::function<std::unique_ptr<RoutingSource>(const RunSpec&)>;

/// The largest run within the limits that plan.rehearsal allows. If the plan itself does not fit: its first layers and
/// at most two microbatches, at the largest width, with the longest sequences that fit. Throws Error{finding} if
/// nothing fits, with the need of the smallest run, and Error{usage} if plan.rehearsal names a width that does not
/// scale.
RunSpec reduced_run(const RunSpec& plan, const RoutingOfRun& routing, const RehearsalLimits& limits);

}  // namespace wt
