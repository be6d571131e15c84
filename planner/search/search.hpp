// Which layout is best: every layout of the space is counted, bounded from below and, best first, asked whether it fits
// and simulated, until the bound proves that none of the rest is better. Layouts whose ranks compute the same are
// bounded as one group; most groups are never opened.
//
// "Proved" is about the model, not the world: no layout of the space has less of the objective when simulated. The
// certificate says what that rests on, and the tests verify it from the candidates and groups alone.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/precisions.hpp"
#include "configs/files/stack.hpp"
#include "configs/files/study.hpp"
#include "planner/placement/placement.hpp"
#include "planner/search/objective.hpp"
#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

/// What the search works on. Referred objects must outlive it.
struct SearchProblem {
  const ModelSpec& model;
  ClusterSpec cluster;
  std::reference_wrapper<const OpCost> cost;
  std::int64_t gpus = 0;
  std::int64_t seq = 0;
  std::int64_t global_batch = 0;
  Precision precision = Precision::bf16;
  SearchSpec space = {};
  StackSpec stack = {};                 ///< that runs it: which layouts, how they use memory
  double memory_limit_bytes = 0;        ///< of one rank's process
  const StackMemory* memory = nullptr;  ///< what processes take; none: what is live
  /// Step times: their mean; memory: p99 over layers and scenarios, of trained ones over microbatches, too. None =
  /// balanced.
  std::vector<LoadScenario> scenarios = {};
  double peak_flops = 0;                              ///< of one GPU, for MFU; 0 = unknown
  std::map<std::int64_t, Placement> placements = {};  ///< by expert degree; a degree without one keeps the identity
  /// By expert degree: placements with copies of experts, each an option beside the one without.
  std::map<std::int64_t, std::vector<Placement>> copies = {};
  /// Prices of layouts with tensor groups or a pipeline where their intervals are others than `cost` has.
  const OpCost* staged_cost = nullptr;
  const Objective* objective = nullptr;  ///< none: the step
  /// Bytes needed by layouts that were asked before, with these loads; filled by searches.
  std::shared_ptr<std::map<std::string, double>> known_memory = {};
  Precisions precisions = {};             ///< of what is sent and kept; `cost` has those of products
  std::optional<AdapterShape> lora = {};  ///< that are trained beside the frozen model
};

/// Of one rank, at its peak.
struct StepMemory {
  LiveMemory live;
  std::map<std::string, double> parts;  ///< live, by buffer
  MemoryForecast allocated, reserved;
  MemoryForecast process;                           ///< reserved, and what is outside of the allocator
  double accepted_risk = SearchSpec{}.memory_risk;  ///< SearchSpec::memory_risk
  /// Has to fit: the process takes no more, but for the accepted risk.
  double needed() const { return process.quantile(1 - accepted_risk); }
};

struct Simulated {
  double step_s = 0, low_s = 0, high_s = 0;  ///< 80 % interval of the prices
  double exposed_s = 0;                      ///< communication that computation does not hide
  double slowed_s = 0;                       ///< by which computation takes longer beside communication
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;                        ///< flops_per_token x tokens/s / peak_flops; 0 = peak unknown
  EvidenceShares evidence{};             ///< share of the step by the root of the evidence, sums to 1
  std::vector<OpClassTotal> totals;      ///< of the critical rank
  std::optional<StepTimeline> critical;  ///< of the critical rank, where timelines were asked for
  double wall_s = 0;                     ///< what the simulation took
  std::int64_t work = 0;                 ///< ReplayResult::work
  std::int64_t ranks = 0;                ///< that were simulated
};

enum class Fate { infeasible, bounded, simulated };

struct Candidate {
  Layout layout;
  std::int64_t microbatches = 0;
  Fate fate = Fate::bounded;
  std::string reason;       ///< infeasible: "memory"
  double memory_bytes = 0;  ///< StepMemory::needed() at p99 routing, of infeasible ones at least so much; 0 = not asked
  double bound_s = 0;       ///< its step takes no less
  double computing_s = 0;   ///< no rank computes less of it; 0 where the objective does not ask
  double least = 0;         ///< of the objective, from that and its group's bound
  double value = 0;         ///< of the objective, of a simulated one
  std::optional<Simulated> result;
};

/// Layouts whose ranks compute the same and that were not looked at one by one.
struct UnopenedGroup {
  Layout layout;  ///< the member that needs the least memory
  std::int64_t members = 0;
  Fate fate = Fate::bounded;      ///< or infeasible: none of them fits
  double bound_s = 0, least = 0;  ///< of the step; of the objective
  double memory_bytes = 0;        ///< of infeasible ones: each member needs at least so much
};

struct Certificate {
  std::string unit = "s";      ///< of the objective
  double bound = 0;            ///< no layout of the space has less of the objective, in this model
  double incumbent = 0;        ///< the smallest simulated
  double gap = 0;              ///< incumbent / bound - 1
  bool proved = false;         ///< gap 0: the incumbent is the best of the space
  bool ties_complete = false;  ///< every layout within the tie of the incumbent was simulated
  std::int64_t enumerated = 0, bounded = 0, simulated = 0;  ///< bounded: not simulated and not known to be too large
  std::map<std::string, std::int64_t> infeasible;           ///< by reason
  std::int64_t violations =
      0;  ///< simulated below their own bound (prices that fall as sizes grow); proved is false then
};

struct SearchResult {
  std::vector<Candidate> candidates;  ///< of opened groups, in the order in which they were opened
  std::vector<UnopenedGroup> groups;  ///< the others
  std::size_t best = 0;
  std::size_t chosen = 0;         ///< the most robust of the ties; a plan weighs regret instead (planner/regret)
  std::vector<std::size_t> ties;  ///< by the objective, the best first
  Certificate certificate;
};

/// What is being worked at, how much of how much is done (total 0 = not known), and on what.
using SearchProgress =
    std::function<void(const std::string& part, std::int64_t done, std::int64_t total, const std::string& what)>;

/// Throws Error{finding} when nothing fits, naming the nearest miss; Error{usage} on an empty space and what prices
/// lack.
SearchResult search_layouts(const SearchProblem& problem, const SearchProgress& progress = {});

/// At p99 routing load.
StepMemory step_memory(const SearchProblem& problem, const Layout& layout);
Simulated simulate_layout(const SearchProblem& problem, const Layout& layout, bool timeline = false);
/// Seconds in which the replica that has read a checkpoint broadcasts it to the others (restore_programs), simulated.
double restore_broadcast_s(const SearchProblem& problem, const Layout& layout, double bytes_per_parameter);
/// Max/mean of expert ranks' loads: of the step times' routing, mean over layers; and the p99 that memory is sized for.
double mean_imbalance(const SearchProblem& problem, const Layout& layout);
double p99_imbalance(const SearchProblem& problem, const Layout& layout);

}  // namespace wt
