#include "sim/cost/op_times.hpp"

#include <fmt/core.h>

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/find.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "sim/cost/published_constants.hpp"
#include "sim/cost/stacks/own_steps.hpp"

namespace wt {
namespace {

MachineModel measured_machine(const TimeSources& sources, std::vector<Profile>& profiles) {
  if (!sources.machine.empty()) {
    MachineModel model(read_machine(sources.machine));
    if (sources.allow_assumed) model.allow_assumed(true);
    return model;
  }
  for (const std::string& name : sources.profiles) profiles.push_back(read_profile(find_config("profiles", name)));
  return calibrate(profiles, {sources.allow_assumed}).model;
}

/// Throws Error{usage} if the profile is of another GPU than the cluster's.
void check_device(const std::map<std::string, std::string>& fingerprint, const ClusterSpec& cluster,
                  const std::string& gpu) {
  const auto device = fingerprint.find("device");
  if (device == fingerprint.end()) return;
  const auto measured = data_sheet(device->second), wanted = data_sheet(gpu);
  if (!measured || !wanted || measured->name == wanted->name) return;
  throw_usage(
      "times: found a profile of '{}' for cluster {}, whose GPUs are {}; needs a profile of these, or none: then "
      "published times are used",
      device->second, cluster.name, gpu);
}

}  // namespace

MachineTimes make_times(const TimeSources& sources, const ClusterSpec& cluster, std::int64_t ranks) {
  MachineTimes out;
  const bool measured = !sources.machine.empty() || !sources.profiles.empty();
  if (!sources.machine.empty() && !sources.profiles.empty())
    throw_usage("times: found a machine model and profiles; needs one of them");
  std::shared_ptr<const MachineModel> machine;
  if (measured) {
    machine = std::make_shared<MachineModel>(measured_machine(sources, out.profiles));
    out.storage = machine->data().storage;
    if (machine->data().storage_only()) machine.reset();  // it has no times of steps
  }
  if (machine) {
    out.fingerprint = machine->data().fingerprint;
    out.basis = sources.machine.string();
    for (const std::string& name : sources.profiles) out.basis += (out.basis.empty() ? "" : ", ") + name;
  }
  if (cluster.shared_cores() || (machine && machine->traits().synchronous_host)) {
    if (!machine)
      throw_usage(
          "times: found neither a profile nor a machine model of the kernels of {}, needs one: windtunnel bench or a "
          "training run writes a profile",
          cluster.gpu_name);
    if (!plain_precisions(sources.compute, sources.precisions))
      throw_usage(
          "times: found number formats of GPUs on {}, whose ranks share cores; needs precision fp32 or amp_bf16",
          cluster.name);
    if (!sources.stack.empty())
      throw_usage("times: found stack {} for {}, whose ranks share cores; needs no stack: published runs are of GPUs",
                  sources.stack, cluster.name);
    out.stack = read_stack("windtunnel-train");
    out.cost = machine;
    return out;
  }
  const PublishedConstants& published = PublishedConstants::get();
  out.stack = with_factors(sources.read_stack(), published.steps, sources.factors);
  BenchmarkTimes times = published.benchmarks;
  if (machine) {
    cluster.check_one_gpu(ranks);
    check_device(out.fingerprint, cluster, cluster.one_gpu(ranks));
    times.measured = machine;
    if (!machine->data().collectives.points.empty())
      times.collectives =
          std::make_shared<CollectiveEstimator>(times.collectives->with_own(machine->data().collectives.points));
  }
  out.cost = std::make_shared<StackCost>(cluster, out.stack, published.steps, times, sources.precisions);
  out.intervals = StepIntervals(published.step_bounds, cluster, out.stack, published.steps, times);
  out.basis +=
      (out.basis.empty() ? "" : ", then ") + out.stack.name +
      (out.stack.release.empty() ? "" : " " + out.stack.release) + ", published runs" +
      (out.stack.measured_release() ? "" : fmt::format(" of other releases ({:.2f} times either way)", kReleaseDrift));
  return out;
}

}  // namespace wt
