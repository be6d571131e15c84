// Finds the best layout. Every layout of the space is counted and has a lower bound. In order of their bounds, layouts
// are checked for memory and simulated, until the bounds prove that no remaining layout is better. Layouts whose ranks
// compute the same are bounded as one group, and most groups are never opened.
//
// "Proved" is about the model, not the world: no layout of the space has a smaller objective when simulated. The
// certificate says what the proof rests on, and the tests verify it from the candidates and groups alone.
#pragma once
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
#include "sim/cost/stacks/step_intervals.hpp"
#include "sim/program/memory/memory_moments.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

/// The input of a search. The objects that it refers to must outlive it.
struct SearchProblem {
  const ModelSpec& model;
  ClusterSpec cluster;
  std::reference_wrapper<const OpCost> cost;
  std::int64_t gpus = 0;
  std::int64_t seq = 0;
  std::int64_t global_batch = 0;
  Precision precision = Precision::bf16;
  SearchSpec space = {};
  StackSpec stack = {};                 ///< of the framework: the layouts that it runs, and how it uses memory
  double memory_limit_bytes = 0;        ///< of one rank's process
  const StackMemory* memory = nullptr;  ///< memory of processes; nullptr = live memory only
  /// Empty = balanced. Step times use their mean. Memory uses the p99 over layers and scenarios, and for trained loads
  /// also over microbatches.
  std::vector<LoadScenario> scenarios = {};
  double peak_flops = 0;                              ///< of one GPU, for MFU; 0 = unknown
  std::map<std::int64_t, Placement> placements = {};  ///< by expert degree; a degree without entry has experts in order
  /// By expert degree: placements with copies of experts. The search tries them in addition to the one without copies.
  std::map<std::int64_t, std::vector<Placement>> copies = {};
  StepIntervals intervals = {};          ///< 80 % intervals of steps computed with `cost`
  const Objective* objective = nullptr;  ///< nullptr = the step time
  /// Cache of the bytes that layouts need with these loads, filled by searches.
  std::shared_ptr<std::map<std::string, double>> known_memory = {};
  Precisions precisions = {};             ///< of what is sent and kept; `cost` has those of products
  std::optional<AdapterShape> lora = {};  ///< adapters that are trained; the model's weights are frozen
};

/// Peak memory of one rank.
struct StepMemory {
  LiveMemory live;
  std::vector<MemoryMoment> moments;  ///< of the same rank, in each part of the step
  MemoryForecast allocated, reserved;
  MemoryForecast process;                           ///< reserved memory, plus memory outside of the allocator
  double accepted_risk = SearchSpec{}.memory_risk;  ///< SearchSpec::memory_risk
  /// The memory that must fit. The process exceeds it only with the accepted risk.
  double needed() const { return process.quantile(1 - accepted_risk); }
};

struct Simulated {
  double step_s = 0, low_s = 0, high_s = 0;  ///< 80 % interval
  double exposed_s = 0;                      ///< communication not hidden by computation
  double slowed_s = 0;                       ///< slowdown of computation by communication
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;                        ///< flops_per_token x tokens/s / peak_flops; 0 = peak unknown
  EvidenceShares evidence{};             ///< share of the step by the root of the evidence, sums to 1
  std::vector<OpClassTotal> totals;      ///< of the critical rank
  std::optional<StepTimeline> critical;  ///< if timelines were requested
  double wall_s = 0;                     ///< wall time of the simulation
  std::int64_t work = 0;                 ///< ReplayResult::work
  std::int64_t ranks = 0;                ///< simulated ranks
};

enum class Fate { infeasible, bounded, simulated };

struct Candidate {
  Layout layout;
  std::int64_t microbatches = 0;
  Fate fate = Fate::bounded;
  std::string reason;  ///< infeasible: "memory"
  /// StepMemory::needed() at p99 routing. For infeasible layouts a lower bound. 0 = not determined.
  double memory_bytes = 0;
  double bound_s = 0;      ///< lower bound of the step time
  double computing_s = 0;  ///< lower bound of every rank's computation; 0 if the objective does not use it
  double least = 0;        ///< lower bound of the objective, from the bounds above and the group's
  double value = 0;        ///< objective of a simulated layout
  std::optional<Simulated> result;
};

/// A group whose members were not evaluated one by one.
struct UnopenedGroup {
  Layout layout;  ///< the member with the least memory
  std::int64_t members = 0;
  Fate fate = Fate::bounded;      ///< or infeasible: no member fits
  double bound_s = 0, least = 0;  ///< lower bounds of step time and objective
  double memory_bytes = 0;        ///< if infeasible: lower bound for each member
};

struct Certificate {
  std::string unit = "s";      ///< of the objective
  double bound = 0;            ///< lower bound of the objective for all layouts of the space, in this model
  double incumbent = 0;        ///< the smallest simulated objective
  double gap = 0;              ///< incumbent / bound - 1
  bool proved = false;         ///< gap is 0: the incumbent is the best of the space
  bool ties_complete = false;  ///< every layout within the tie tolerance of the incumbent was simulated
  std::int64_t enumerated = 0, bounded = 0, simulated = 0;  ///< bounded: not simulated, and not known to be infeasible
  std::map<std::string, std::int64_t> infeasible;           ///< by reason
  /// Results below their own bound (times that fall as sizes grow). If there are any, proved is false.
  std::int64_t violations = 0;
  /// The share of the incumbent by which another layout may be better: 1 - bound / incumbent.
  double could_be_better() const { return 1 - bound / incumbent; }
};

struct SearchResult {
  std::vector<Candidate> candidates;  ///< of opened groups, in the order of opening
  std::vector<UnopenedGroup> groups;  ///< groups that were not opened
  std::size_t best = 0;
  std::size_t chosen = 0;             ///< the most robust of the ties; a plan uses regret instead (planner/regret)
  std::optional<std::size_t> simple;  ///< a plan's simple alternative to `best` (planner/plan/simple_alternative.hpp)
  std::vector<std::size_t> ties;      ///< by objective, the best first
  Certificate certificate;
};

/// Reports progress: part of the work, done, total (0 = unknown), current item.
using SearchProgress =
    std::function<void(const std::string& part, std::int64_t done, std::int64_t total, const std::string& what)>;

/// Throws Error{finding} if nothing fits, naming the nearest miss; Error{usage} for an empty space and for missing
/// times.
SearchResult search_layouts(const SearchProblem& problem, const SearchProgress& progress = {});
/// How the error of search_layouts() starts where the space is empty.
inline constexpr const char* kNoLayoutDivides = "search: no layout divides";
/// Whether the space is empty, has no layout that fits in memory, or has one.
enum class SpaceFit { empty, too_large, fits };
/// Simulates nothing. Throws Error{usage} and Error{finding} as LayoutSpace does.
SpaceFit space_fit(const SearchProblem& problem);

/// The memory at p99 routing load.
StepMemory step_memory(const SearchProblem& problem, const Layout& layout, bool with_moments = false);
Simulated simulate_layout(const SearchProblem& problem, const Layout& layout, bool timeline = false);
/// Simulated seconds in which the replica that has read a checkpoint broadcasts it to the other replicas
/// (restore_programs).
double restore_broadcast_s(const SearchProblem& problem, const Layout& layout, double bytes_per_parameter);
/// Rows of the fullest expert rank over the mean rank: the mean over layers for step times, and the p99 for memory.
double mean_imbalance(const SearchProblem& problem, const Layout& layout);
double p99_imbalance(const SearchProblem& problem, const Layout& layout);

}  // namespace wt
