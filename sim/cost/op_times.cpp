#include "sim/cost/op_times.hpp"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/find.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "sim/cost/fit/evenly.hpp"

namespace wt {
namespace {

MachineModel measured_machine(const PriceSources& sources, std::vector<Profile>& profiles) {
  if (!sources.machine.empty()) {
    MachineModel model(read_machine(sources.machine));
    if (sources.allow_assumed) model.allow_assumed(true);
    return model;
  }
  for (const std::string& name : sources.profiles) profiles.push_back(read_profile(find_config("profiles", name)));
  return calibrate(profiles, {sources.allow_assumed}).model;
}

/// A profile of GPUs says which; its prices are no other GPU's.
void check_device(const std::map<std::string, std::string>& fingerprint, const ClusterSpec& cluster,
                  const std::string& gpu) {
  const auto device = fingerprint.find("device");
  if (device == fingerprint.end()) return;
  const auto measured = data_sheet(device->second), wanted = data_sheet(gpu);
  if (!measured || !wanted || measured->name == wanted->name) return;
  throw_error(Code::usage,
              "prices: found a profile of '{}' for cluster {}, whose GPUs are {}; needs a profile of these, or none: "
              "published times price them",
              device->second, cluster.name, gpu);
}

}  // namespace

PublishedTimes::PublishedTimes(PublishedTables tables) : tables_(std::move(tables)), stacks_(read_stacks()) {
  fit({std::make_shared<ItemTimes>(tables_.kernels),
       std::make_shared<CollectiveEstimator>(points_of(tables_.collectives)),
       std::make_shared<RowMessages>(tables_.row_exchanges)});
}

PublishedTimes::PublishedTimes(const PublishedTimes& other, std::vector<RunRow> runs)
    : tables_(other.tables_), stacks_(other.stacks_) {
  tables_.runs = std::move(runs);
  fit(other.all_.benchmarks);
}

void PublishedTimes::fit(const BenchmarkTimes& benchmarks) {
  // Sources that measured much would hide how far off the others are.
  constexpr std::size_t kMostOfOrigin = 12;
  std::map<std::pair<std::string, std::string>, std::vector<const StepError*>> origins;
  for (const StepError& e : tables_.step_errors) origins[{e.family, e.origin}].push_back(&e);
  for (const auto& [key, members] : origins)
    for (const StepError* e : evenly(members, kMostOfOrigin)) errors_.add(e->family, e->origin, std::log(e->ratio));
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
    out.items = std::make_shared<ItemTimes>(rows);
  if (auto rows = others(tables_.collectives); rows.size() < tables_.collectives.size())
    out.collectives = std::make_shared<CollectiveEstimator>(points_of(rows));
  if (auto rows = others(tables_.row_exchanges); rows.size() < tables_.row_exchanges.size())
    out.row_messages = std::make_shared<RowMessages>(rows);
  return out;
}

const StepPrices& PublishedTimes::without(const std::string& origin) const {
  const auto [found, is_new] = without_.try_emplace(origin, all_);
  StepPrices& prices = found->second;
  if (!is_new) return prices;
  prices.benchmarks = benchmarks_without(origin);
  if (stack_fit().knows_origin(origin) || !(prices.benchmarks == all_.benchmarks))
    prices.stacks = std::make_shared<StackFit>(stack_fit(), origin, prices.benchmarks);
  return prices;
}

const PublishedTimes& PublishedTimes::get() {
  static const PublishedTimes times(read_published_tables(configs_folder() / "measurements"));
  return times;
}

Prices make_prices(const PriceSources& sources, const ClusterSpec& cluster, std::int64_t ranks) {
  Prices out;
  const bool measured = !sources.machine.empty() || !sources.profiles.empty();
  if (!sources.machine.empty() && !sources.profiles.empty())
    throw_error(Code::usage, "prices: found a machine model beside profiles; needs one of them");
  std::shared_ptr<const MachineModel> machine;
  if (measured) {
    machine = std::make_shared<MachineModel>(measured_machine(sources, out.profiles));
    out.storage = machine->data().storage;
    if (machine->data().storage_only()) machine.reset();  // which prices no step
  }
  if (machine) {
    out.fingerprint = machine->data().fingerprint;
    out.basis = sources.machine.string();
    for (const std::string& name : sources.profiles) out.basis += (out.basis.empty() ? "" : ", ") + name;
  }
  if (cluster.shared_cores() || (machine && machine->synchronous_host())) {
    if (!machine)
      throw_error(Code::usage,
                  "prices: found neither a profile nor a machine model of the kernels of {}, needs one: windtunnel "
                  "bench or a training "
                  "run writes a profile",
                  cluster.gpu_name);
    if (!plain_precisions(sources.compute, sources.precisions))
      throw_error(
          Code::usage,
          "prices: found number formats of GPUs on {}, whose ranks share cores; needs precision fp32 or amp_bf16",
          cluster.name);
    if (!sources.stack.empty())
      throw_error(Code::usage,
                  "prices: found stack {} for {}, whose ranks share cores; needs no stack: published runs "
                  "are of GPUs",
                  sources.stack, cluster.name);
    out.stack = read_stack("windtunnel-train");
    out.cost = machine;
    return out;
  }
  const PublishedTimes& published = PublishedTimes::get();
  out.stack = read_stack(sources.stack.empty() ? kDefaultStack : sources.stack);
  BenchmarkTimes times = published.benchmarks();
  if (machine) {
    cluster.check_one_gpu(ranks);
    check_device(out.fingerprint, cluster, cluster.one_gpu(ranks));
    times.measured = machine;
    if (!machine->data().collectives.points.empty())
      times.collectives =
          std::make_shared<CollectiveEstimator>(times.collectives->with_own(machine->data().collectives.points));
  }
  out.cost = std::make_shared<StackCost>(cluster, out.stack, published.stack_fit().model(), times,
                                         published.off_by(sources.family), sources.precisions);
  out.basis +=
      (out.basis.empty() ? "" : ", then ") + out.stack.name +
      (out.stack.release.empty() ? "" : " " + out.stack.release) + ", published runs" +
      (out.stack.measured_release() ? "" : fmt::format(" of other releases ({:.2f} times either way)", kReleaseDrift));
  return out;
}

}  // namespace wt
