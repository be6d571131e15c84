#include "sim/fit/published_times.hpp"

#include <fmt/core.h>

#include <cmath>

#include "configs/base/hash.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/fitted_constants.hpp"
#include "sim/fit/collective_fit.hpp"
#include "sim/fit/collective_rows_as_points.hpp"
#include "sim/fit/kernel_fit.hpp"
#include "sim/fit/memory_fit.hpp"
#include "sim/fit/row_message_fit.hpp"
#include "sim/statistics/evenly.hpp"

namespace wt {
namespace {

std::shared_ptr<const ItemTimes> items_of(const KernelConstants& constants) {
  return std::make_shared<ItemTimes>(std::make_shared<KernelTimes>(constants));
}

}  // namespace

PublishedTimes::PublishedTimes(PublishedTables tables) : tables_(std::move(tables)), stacks_(read_stacks()) {
  kernels_ = PublishedKernelFit(usable_points(tables_.kernels)).constants();
  collectives_ = CollectiveFit(points_of(tables_.collectives)).constants();
  fit({items_of(kernels_), std::make_shared<CollectiveEstimator>(collectives_),
       std::make_shared<RowMessages>(row_messages(tables_.row_exchanges))});
}

PublishedTimes::PublishedTimes(const PublishedTimes& other, std::vector<RunRow> runs)
    : tables_(other.tables_), stacks_(other.stacks_), kernels_(other.kernels_), collectives_(other.collectives_) {
  tables_.runs = std::move(runs);
  fit(other.all_.benchmarks);
}

void PublishedTimes::fit(const BenchmarkTimes& benchmarks) {
  // Limits each origin, so that one with many measurements does not hide the errors of the others.
  constexpr std::size_t kMostOfOrigin = 12;
  std::map<std::pair<std::string, std::string>, std::vector<const MeasuredRun*>> origins;
  for (const MeasuredRun& run : tables_.step_errors) origins[{run.features.family, run.origin}].push_back(&run);
  for (const auto& [key, members] : origins)
    for (const MeasuredRun* run : evenly(members, kMostOfOrigin))
      errors_.add(key.first, key.second, std::log(run->ratio()));
  all_ = {benchmarks, std::make_shared<StackFit>(tables_.runs, stacks_, benchmarks)};
}

BenchmarkTimes PublishedTimes::benchmarks_without(const std::string& origin) const {
  const auto others = [&](const auto& rows) {
    auto out = rows;
    std::erase_if(out, [&](const auto& row) { return stack_fit().same_as(row.origin) == origin; });
    return out;
  };
  BenchmarkTimes out = all_.benchmarks;
  if (auto rows = others(tables_.kernels); rows.size() < tables_.kernels.size())
    out.items = items_of(PublishedKernelFit(usable_points(rows)).constants());
  if (auto rows = others(tables_.collectives); rows.size() < tables_.collectives.size())
    out.collectives = std::make_shared<CollectiveEstimator>(CollectiveFit(points_of(rows)).constants());
  if (auto rows = others(tables_.row_exchanges); rows.size() < tables_.row_exchanges.size())
    out.row_messages = std::make_shared<RowMessages>(row_messages(rows));
  return out;
}

const StepTimes& PublishedTimes::without(const std::string& origin) const {
  const auto [found, is_new] = without_.try_emplace(origin, all_);
  StepTimes& times = found->second;
  if (!is_new) return times;
  times.benchmarks = benchmarks_without(origin);
  if (stack_fit().knows_origin(origin) || !(times.benchmarks == all_.benchmarks))
    times.stacks = std::make_shared<StackFit>(stack_fit(), origin, times.benchmarks);
  return times;
}

const ErrorBounds& PublishedTimes::step_bounds(const std::string& without) const {
  const auto [found, is_new] = step_bounds_.try_emplace(without);
  if (is_new) found->second = errors_.bounds(without);
  return found->second;
}

StackMemories PublishedTimes::memory(const std::string& without) const {
  return stack_memories(tables_, stacks_, without);
}

std::map<std::string, nlohmann::json> PublishedTimes::documents() const {
  const auto made_of = [](nlohmann::json constants, const std::vector<std::string>& names) {
    nlohmann::json tables = nlohmann::json::object();
    for (const std::string& name : names)
      tables[name] = fmt::format(
          "xxh3:{:016x}", hash_of(read_file(configs_folder() / "measurements" / name, "a table of measurements")));
    return fitted_document(std::move(constants), tables);
  };
  std::vector<std::string> kernels = {"kernel_times.csv", "kernel_rates.csv", "grouped_products.csv"};
  for (const char* profile : kGroupedProfiles) kernels.push_back(std::string("../") + profile);
  const std::vector<std::string> collectives = {"collectives.csv"}, rows = {"row_exchanges.csv"};
  std::vector<std::string> steps = {"training_runs.csv",  "torchtitan_runs.csv", "later_runs.csv",      "runs_2026.csv",
                                    "runs_late_2026.csv", "own_runs.csv",        "simulator_tables.csv"};
  std::map<std::string, nlohmann::json> out;
  out["memory"] =
      made_of(memory(), {"training_runs.csv", "simulator_tables.csv", "torchtitan_runs.csv", "outside_allocator.csv"});
  out["kernels"] = made_of(kernels_, kernels);
  out["collectives"] = made_of(collectives_, collectives);
  out["row_messages"] = made_of(*all_.benchmarks.row_messages, rows);
  out["step_bounds"] = made_of(step_bounds(), {"left_out_steps.csv"});
  out["measured_runs"] = made_of(tables_.step_errors, {"left_out_steps.csv"});
  for (const auto& names : {kernels, collectives, rows}) steps.insert(steps.end(), names.begin(), names.end());
  out["steps"] = made_of(all_.stacks->model(), steps);
  return out;
}

const PublishedTimes& PublishedTimes::get() {
  static const PublishedTimes times(read_published_tables(configs_folder() / "measurements"));
  return times;
}

}  // namespace wt
