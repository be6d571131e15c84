// Reads the files that a study refers to.
#include <algorithm>
#include <exception>
#include <limits>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/peak_flops.hpp"
#include "configs/files/profile.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/plan/plan.hpp"
#include "planner/plan/plan_search.hpp"
#include "sim/cost/op_times.hpp"
#include "sim/cost/published_constants.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

/// Multiplies the shares' deviations from their mean by `factor`. No share gets below 0.
void scale_imbalance(LoadScenario& scenario, double factor) {
  if (scenario.trained) {
    scenario.trained->lasting *= factor;
    scenario.trained->alike_tokens *= factor * factor;
  }
  for (auto& row : scenario.counts) {
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
    for (double& count : row) count = std::max(0.0, mean + factor * (count - mean));
  }
}

/// Uses the largest copy to host memory in the profiles. It was measured with one GPU alone, but in a save all GPUs of
/// a node copy at once.
void take_measured_copies(CheckpointSpec& checkpoint, const std::vector<Profile>& profiles) {
  constexpr double kOfOneAlone = 0.5;  // the default share of a single copy's bandwidth in a study
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

/// Uses the measured rates of the storage for saves. A storage that the study sets is kept.
void take_measured_storage(CheckpointSpec& checkpoint, const ClusterSpec& cluster,
                           const std::vector<StorageRates>& measured) {
  const std::string wanted = store_words(checkpoint.store);
  std::string others;
  for (const StorageRates& rates : measured) {
    if (same_store(rates.store, checkpoint.store))
      checkpoint.rates = rates;
    else
      others += (others.empty() ? "" : ", ") + store_words(rates.store);
  }
  const auto sources = cluster.sources.find("storage");
  const bool by_hand = sources != cluster.sources.end() && std::ranges::any_of(sources->second, [](const auto& source) {
                         return source.kind == Evidence::assumed && source.source.starts_with("set by hand");
                       });
  const bool known = checkpoint.rates.write.measured() || checkpoint.rates.read.measured();
  if (known && !by_hand && !checkpoint.elsewhere) return;
  checkpoint.rates = {};
  checkpoint.rates_note =
      by_hand && known                ? "the cluster's storage is set by hand and counts in place of rows in profiles"
      : checkpoint.elsewhere && known ? "the rows in the study's profiles are of another cluster's storage"
      : others.empty() ? fmt::format("the study's profiles have no rows of {} (windtunnel bench storage)", wanted)
                       : fmt::format("the profiles measured {}, and saves go to {} (checkpoint.store)", others, wanted);
}

double peak_of(const std::map<std::string, std::string>& fingerprint, Precision precision) {
  const auto found = fingerprint.find(precision == Precision::bf16 ? "peak_bf16_flops" : "peak_fp32_flops");
  if (found == fingerprint.end()) return 0;
  try {
    return std::stod(found->second);
  } catch (const std::exception&) {
    throw_usage("profile: fingerprint.{}: found '{}', needs FLOP/s as a number", found->first, found->second);
  }
}

void read_stack_facts(PlanInputs& inputs, const StackSpec& stack) {
  inputs.stack = stack;
  if (inputs.study.lora) inputs.stack.layouts = stack.layouts.with_adapters();
  if (inputs.study.cluster.shared_cores()) return;
  const StackMemory memory = PublishedConstants::get().memory.of(stack, inputs.study.gpus);
  inputs.memory = std::make_shared<StackMemory>(inputs.own ? inputs.own->memory(memory) : memory);
}

void read_times(PlanInputs& inputs, bool allow_assumed) {
  const StudySpec& study = inputs.study;
  const bool gpus = !study.cluster.shared_cores();
  if (gpus && study.precision.compute != Precision::bf16)
    throw_usage("study {}: found precision {} on {}; published runs are of 16 bits and less: needs amp_bf16",
                study.name, study.precision.word, study.cluster.gpu_name);
  TimeSources sources{.profiles = study.profiles,
                      .machine = {},
                      .stack = study.stack,
                      .allow_assumed = allow_assumed,
                      .compute = study.precision.compute,
                      .precisions = study.precision.precisions};
  inputs.sources = sources;
  if (!study.measured.empty()) {
    inputs.own = own_runs(study.measured, sources);
    sources.factors = inputs.own->steps.factors();
  }
  MachineTimes times = make_times(sources, study.cluster, study.gpus);
  inputs.peak_flops =
      gpus ? mean_peak_flops(study.cluster, study.gpus).value() : peak_of(times.fingerprint, study.precision.compute);
  inputs.basis = times.basis + (inputs.own ? ", " + counted(std::ssize(inputs.own->runs), "measured step") : "");
  read_stack_facts(inputs, times.stack);
  if (!study.checkpoint.copy_given) take_measured_copies(inputs.study.checkpoint, times.profiles);
  take_measured_storage(inputs.study.checkpoint, study.cluster, times.storage);
  inputs.times = std::move(times.cost);
  inputs.intervals = std::move(times.intervals);
}

PlanInputs read_in_format(StudySpec study, bool allow_assumed) {
  PlanInputs inputs{.study = std::move(study)};
  inputs.scenarios = read_scenarios(inputs.study.routing, inputs.study.model);
  if (const DriftSpec& drift = inputs.study.drift; !drift.loads.empty())
    inputs.drift = read_load_windows(drift.loads, drift.every, inputs.study.model);
  inputs.failures = failures_of(inputs.study, inputs.study.failures);
  for (const std::string& name : preset_names("faults/rates"))
    inputs.other_failures.push_back(failures_of(inputs.study, name));
  for (const std::string& name : inputs.study.faults) inputs.faults.push_back(read_scenario(name));
  inputs.stragglers = read_stragglers(inputs.study.stragglers);
  inputs.silent_errors = read_silent_errors(inputs.study.silent_errors.rate);
  const std::int64_t nodes = inputs.study.cluster.nodes;
  if (const auto& errors = inputs.silent_errors; errors && !(errors->job_mean_s(nodes) < kLongest_s))
    throw_usage(
        "silent_errors: found rate {}, on {} nodes an error every {:.3g} s; needs less than {:.3g} s (70 years) "
        "between two, or rate: none",
        inputs.study.silent_errors.rate, nodes, errors->job_mean_s(nodes), kLongest_s);
  read_times(inputs, allow_assumed);
  return inputs;
}

std::vector<std::string> searched_formats(const StudySpec& study) {
  if (study.search.precisions != std::vector<std::string>{"auto"}) return study.search.precisions;
  std::vector<std::string> out = {study.precision.word};
  if (!study.stack.empty())
    for (const NumberFormat format : read_stack(study.stack).formats)
      if (const std::string word = "amp_" + to_string(format); word != out.front()) out.push_back(word);
  return out;
}

}  // namespace

PlanInputs read_plan_inputs(StudySpec study, bool allow_assumed) {
  if (study.search.precisions.empty()) return read_in_format(std::move(study), allow_assumed);
  std::optional<PlanInputs> best, misfit;  // misfit: of the first format in which nothing fits
  std::vector<FormatRow> rows;
  std::exception_ptr refused;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& word : searched_formats(study)) {
    StudySpec one = study;
    one.search.precisions.clear();
    one.precision = precision_recipe(word, "search.precision");
    // Whoever reads the study's text plans in this format.
    for (const char* key : {"precision", "search.precision"}) one.text = set_study_key(one.text, key, word, one.name);
    FormatRow& row = rows.emplace_back();
    row.precision = word;
    std::optional<PlanInputs> inputs;
    try {
      inputs = read_in_format(std::move(one), allow_assumed);
      SearchResult found;
      {
        const PlanSearch asked(*inputs);
        found = search_layouts(asked.problem);
      }
      const Candidate& fastest = found.candidates[found.best];
      row.value = fastest.value, row.layout = fastest.layout, row.step = *fastest.result;
      if (row.value < least) least = row.value, best = std::move(inputs);
    } catch (const Error& error) {
      if (error.code() != Code::finding && error.code() != Code::usage) throw;
      row.unplanned = error.what();
      refused = std::current_exception();
      if (error.code() == Code::finding && !misfit) misfit = std::move(inputs);
    }
  }
  if (!best && !misfit) std::rethrow_exception(refused);
  PlanInputs out = std::move(best ? *best : *misfit);
  out.formats = std::move(rows);
  return out;
}

SearchProblem search_problem(const PlanInputs& inputs, const OpCost& cost) {
  const StudySpec& s = inputs.study;
  check_same_machine(s.cluster, cost);
  SearchProblem p{.model = s.model,
                  .cluster = s.cluster,
                  .cost = cost,
                  .gpus = s.gpus,
                  .seq = s.seq,
                  .global_batch = s.global_batch,
                  .precision = s.precision.compute,
                  .space = s.search};
  p.cluster.nic_Bps *= s.scale.network_bandwidth;
  for (OtherNodes& other : p.cluster.others) other.nic_Bps *= s.scale.network_bandwidth;
  p.memory_limit_bytes = s.cluster.usable_by_all_bytes(s.gpus);
  p.stack = inputs.stack;
  p.lora = s.adapters();
  p.precisions = s.precision.precisions;
  p.memory = inputs.memory.get();
  p.scenarios = inputs.scenarios;
  if (s.scale.imbalance != 1)
    for (LoadScenario& scenario : p.scenarios) scale_imbalance(scenario, s.scale.imbalance);
  p.peak_flops = inputs.peak_flops;
  p.intervals = inputs.intervals;
  return p;
}

}  // namespace wt
