// Compares a rehearsal with the plan: one rank of the planned layout as measured here, op by op, the machine model's
// prediction for the same shapes, and the memory replay. The plan's own figures are separate.
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

/// Figures of plan.json.
struct PlanFigures {
  std::string cluster;
  double step_s = 0;
  double peak_bytes = 0, limit_bytes = 0;  ///< of a rank, at p99 routing
  std::vector<std::string> routing;
  std::map<std::string, double> op_s;  ///< mean seconds of one op, by to_string(OpKey)
};
/// Reads plan.json next to the run file; empty if there is none or it is for another layout. Throws Error{usage} for a
/// damaged one.
std::optional<PlanFigures> read_plan_figures(const std::filesystem::path& run_file, const RunSpec& run);

/// Ops of one kind of work on the compute lane.
struct RehearsedOp {
  OpKey key;
  std::int64_t planned = 0;               ///< in a step of the plan
  std::int64_t rehearsed = 0;             ///< in a measured step
  double measured_s = 0;                  ///< one op: the median step's sum over the number of ops
  std::optional<TimeEstimate> predicted;  ///< one op, with its rows; empty without a machine model
};

struct Rehearsal {
  RunSpec plan, run;  ///< the planned run, and the rehearsed one
  std::optional<PlanFigures> figures;
  std::string device, routing, tokens;
  std::int64_t steps = 0;           ///< measured steps
  double cores_used_by_others = 0;  ///< during the measurement
  std::vector<RehearsedOp> ops;
  std::map<OpKind, std::pair<std::int64_t, double>> collectives;  ///< number and bytes in a measured step
  double loss = 0;
  double measured_peak_bytes = 0, replayed_peak_bytes = 0;  ///< of the rehearsed run, the highest step
  std::string measured_peak_op, replayed_peak_op;           ///< the ops of these peaks
  /// Of the plan's own program with this rank's routing, without the buffers of a CPU transport.
  double plan_replay_bytes = 0;

  bool reduced() const;
  double measured_s() const;                  ///< all ops of a measured step
  double extrapolated_s() const;              ///< scaled to the number of ops in the plan
  std::optional<double> predicted_s() const;  ///< for the rehearsed ops
  /// |measured - replayed| <= max(2 %, 4 MiB).
  bool peak_holds() const;
};

/// `folder`: output of windtunnel-train for `run` (rehearsal.json). `source`: the run's routing. `times` may be
/// nullptr. Throws Error{usage} for a damaged file and for missing times.
Rehearsal read_rehearsal_result(const RunSpec& plan, const RunSpec& run, const std::filesystem::path& folder,
                                const RoutingSource& source, const RoutingSource& plan_source, const OpCost* times);

nlohmann::json to_json(const Rehearsal& rehearsal);

}  // namespace wt
