// Reads what a study refers to.
#include <algorithm>
#include <numeric>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/find.hpp"
#include "configs/spec/profile.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/quantity.hpp"
#include "planner/plan/plan.hpp"
#include "sim/cost/fit/calibrate.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

/// Shares around their mean times `factor`, none below 0.
void scale_imbalance(LoadScenario& scenario, double factor) {
  for (auto& row : scenario.counts) {
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
    for (double& count : row) count = std::max(0.0, mean + factor * (count - mean));
  }
}

double peak_of(const MachineModel& machine, Precision precision) {
  const auto& facts = machine.data().fingerprint;
  const auto found = facts.find(precision == Precision::bf16 ? "peak_bf16_flops" : "peak_fp32_flops");
  if (found == facts.end()) return 0;
  try {
    return std::stod(found->second);
  } catch (const std::exception&) {
    throw_error(Code::usage, "profile: fingerprint.{}: found '{}', needs FLOP/s as a number", found->first,
                found->second);
  }
}

double mean_peak(const ClusterSpec& cluster, std::int64_t gpus) {
  double sum = 0;
  for (std::int64_t rank = 0; rank < gpus; ++rank)
    sum += data_sheet(cluster.of_kind(cluster.kind_of(cluster.node_of(rank))).gpu_name)->flops;
  return sum / static_cast<double>(gpus);
}

/// The largest copy to host memory that the profiles measured, one GPU alone; all GPUs of a node copy at once.
void take_measured_copies(CheckpointSpec& checkpoint, const std::vector<Profile>& profiles) {
  constexpr double kOfOneAlone = 0.5;  // as the bandwidth of a study that says nothing
  std::int64_t largest = 0;
  for (const Profile& profile : profiles)
    for (const Measurement& m : profile.measurements) {
      if (m.kernel != "device_to_host" || m.unit != "s" || m.shape.count("bytes") == 0 ||
          m.shape.at("bytes") <= largest || !(m.median() > 0))
        continue;
      largest = m.shape.at("bytes");
      const double alone_Bps = static_cast<double>(largest) / m.median();
      checkpoint.copy_Bps = kOfOneAlone * alone_Bps;
      checkpoint.evidence = {
          Evidence::assumed,
          fmt::format("half of the {:.1f} GB/s at which one GPU alone copied {} ({}), as all of a node copy at once",
                      alone_Bps / 1e9, format_bytes(static_cast<double>(largest)), to_string(m.evidence.kind))};
    }
}

void read_memory(PlanInputs& inputs) {
  const StudySpec& study = inputs.study;
  if (!study.stack.empty()) inputs.memory_facts = read_stack(study.stack).memory;
  if (study.cluster.shared_cores()) return;
  inputs.memory = std::make_shared<MemoryModel>(published_memory(configs_folder() / "measurements"));
}

void read_prices(PlanInputs& inputs, bool allow_assumed) {
  const StudySpec& study = inputs.study;
  if (!study.stack.empty()) {
    if (study.precision != Precision::bf16)
      throw_error(
          Code::usage,
          "study {}: found precision fp32 with stack {}; published runs are of bf16: needs amp_bf16, or profiles",
          study.name, study.stack);
    const RunReference reference = run_reference(configs_folder() / "measurements", read_stacks());
    inputs.prices = std::make_shared<StackCost>(study.cluster, read_stack(study.stack), reference);
    inputs.profile_names = {study.stack + ", published runs"};
    inputs.peak_flops = mean_peak(study.cluster, study.gpus);
    return;
  }
  study.cluster.check_one_gpu(study.gpus);
  std::vector<Profile> profiles;
  for (const std::string& name : study.profiles) profiles.push_back(read_profile(find_config("profiles", name)));
  const auto machine = std::make_shared<MachineModel>(calibrate(profiles, {allow_assumed}).model);
  inputs.peak_flops = peak_of(*machine, study.precision);
  inputs.profile_names = study.profiles;
  if (!study.checkpoint.copy_given) take_measured_copies(inputs.study.checkpoint, profiles);
  inputs.prices = machine;
}

}  // namespace

PlanInputs read_plan_inputs(StudySpec study, bool allow_assumed) {
  PlanInputs inputs{std::move(study), nullptr, {}, {}, {}, {}, {}, 0};
  read_prices(inputs, allow_assumed);
  read_memory(inputs);
  inputs.scenarios = read_scenarios(inputs.study.routing, inputs.study.model);
  inputs.failures = read_failures(inputs.study.failures);
  inputs.stragglers = read_stragglers(inputs.study.stragglers);
  inputs.silent_errors = read_silent_errors(inputs.study.silent_errors.rate);
  const std::int64_t nodes = inputs.study.cluster.nodes;
  if (const auto& errors = inputs.silent_errors; errors && !(errors->job_mean_s(nodes) < kLongest_s))
    throw_error(
        Code::usage,
        "silent_errors: found rate {}, on {} nodes an error every {:.3g} s; needs less than {:.3g} s (70 years) "
        "between two, or rate: none",
        inputs.study.silent_errors.rate, nodes, errors->job_mean_s(nodes), kLongest_s);
  return inputs;
}

SearchProblem search_problem(const PlanInputs& inputs, const OpCost& cost) {
  const StudySpec& s = inputs.study;
  check_same_machine(s.cluster, cost);
  SearchProblem p{s.model, s.cluster, cost, s.gpus, s.seq, s.global_batch, s.precision, s.search, 0, {}, 0, {}, {}};
  p.cluster.nic_Bps *= s.scale.network_bandwidth;
  for (OtherNodes& other : p.cluster.others) other.nic_Bps *= s.scale.network_bandwidth;
  p.memory_limit_bytes = s.cluster.usable_by_all_bytes(s.gpus);
  p.memory_facts = inputs.memory_facts;
  p.memory = inputs.memory.get();
  p.scenarios = inputs.scenarios;
  if (s.scale.imbalance != 1)
    for (LoadScenario& scenario : p.scenarios) scale_imbalance(scenario, s.scale.imbalance);
  p.peak_flops = inputs.peak_flops;
  return p;
}

}  // namespace wt
