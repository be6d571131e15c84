// A rehearsal laid beside the plan: what one rank of the planned layout took here, op by op, against what the machine
// model predicts for the same shapes and what the memory replay says; the plan's own figures stand in their own column.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "sim/cost/kernels/machine_data.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/timeline.hpp"

namespace wt {

/// What plan.json says of the plan.
struct PlanFigures {
  std::string cluster;
  double step_s = 0;
  double peak_bytes = 0, limit_bytes = 0;  ///< of a rank, at p99 routing
  std::vector<std::string> routing;
  std::map<std::string, double> op_s;  ///< mean seconds of one op, by to_string(OpKey)
};
/// plan.json beside the run file; none where there is none or it is of another layout. Throws Error{usage} on a damaged
/// one.
std::optional<PlanFigures> read_plan_figures(const std::filesystem::path& run_file, const RunSpec& run);

/// Ops of one kind of work on the compute lane.
struct RehearsedOp {
  OpKey key;
  std::int64_t planned = 0;        ///< in a step of the plan
  std::int64_t rehearsed = 0;      ///< in a step that was run
  double measured_s = 0;           ///< one op: the median step's sum over those that were run
  std::optional<Price> predicted;  ///< one op, at the rows it had; none without a machine model
};

struct Rehearsal {
  RunSpec plan, run;  ///< as planned, and as run
  std::optional<PlanFigures> figures;
  std::string device, routing, tokens;
  std::int64_t steps = 0;           ///< measured
  double cores_used_by_others = 0;  ///< meanwhile
  std::vector<RehearsedOp> ops;
  std::map<OpKind, std::pair<std::int64_t, double>> collectives;  ///< number and bytes in a step that was run
  double loss = 0;
  double measured_peak_bytes = 0, replayed_peak_bytes = 0;  ///< of the run, highest step
  std::string measured_peak_op, replayed_peak_op;           ///< where
  double plan_replay_bytes =
      0;  ///< of the plan's own program with this rank's routing, without a CPU transport's scratch

  bool reduced() const;
  double measured_s() const;                  ///< all ops of a step that was run
  double extrapolated_s() const;              ///< the same with as many ops as the plan has
  std::optional<double> predicted_s() const;  ///< of what was run
  /// |measured - replayed| <= max(2 %, 4 MiB).
  bool peak_holds() const;
};

/// `folder` holds what windtunnel-train wrote for `run` (rehearsal.json); `source` is the run's routing; `prices` may
/// be null. Throws Error{usage} on a damaged file and on prices that are missing.
Rehearsal read_rehearsal_result(const RunSpec& plan, const RunSpec& run, const std::filesystem::path& folder,
                                const RoutingSource& source, const RoutingSource& plan_source, const OpCost* prices);

nlohmann::json to_json(const Rehearsal& rehearsal);

}  // namespace wt
