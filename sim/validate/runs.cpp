#include "sim/validate/runs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/support/error.hpp"
#include "sim/cost/fit/evenly.hpp"
#include "sim/cost/fit/fit.hpp"
#include "sim/cost/stacks/expert_loads.hpp"

namespace wt {
namespace {

constexpr std::size_t kFolds = 10;
constexpr std::size_t kMostOfStack = 24;  // samples by which it is judged how far typical constants carry
constexpr const char* kNeverMeasured = ", stack never measured";
constexpr const char* kGpuNeverMeasured = ", GPU never measured";

struct Sample {
  const RunRow* row = nullptr;
  StepWork work;
  StepTraits traits;
  std::string reason;  ///< why it cannot be predicted
  std::string loads;   ///< ExpertLoads::assumed

  bool timed() const { return reason.empty() && row->step_s > 0; }
};

/// The GPU by its data sheet, of which parts with another power limit have their own.
std::string gpu_key(const std::string& gpu) {
  const auto sheet = data_sheet(gpu);
  return sheet ? sheet->name : gpu;
}

Sample sampled(const RunRow& row, const StackSpec& stack, const GpuTimes& gpu, const RunFabric& fabric) {
  Sample s;
  s.row = &row;
  s.traits = traits_of(stack, row.gpu);
  try {
    s.work = step_work(row, gpu, fabric);
    s.loads = expert_loads(row).assumed;
  } catch (const Error& e) {
    if (e.code() != Code::usage) throw;
    s.reason = e.what();
  }
  return s;
}

std::string identity(const RunRow& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", r.source, r.framework, r.model.name,
                     r.model.layers, r.gpu, r.gpus, r.dp, r.tp, r.pp, r.cp, r.ep, r.seq, r.microbatch, r.accumulation,
                     r.zero_stage, r.recompute_text, r.precision, r.step_s);
}

/// The same run in another table: three digits of its time, and its shape.
std::string measurement_key(const RunRow& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{:.3g}", gpu_key(r.gpu), r.gpus, r.model.layers, r.model.d_model,
                     r.seq, r.tp, r.pp, r.microbatch, r.accumulation, r.step_s);
}

/// Rows that are errors of one kind.
std::string regime_of(const RunRow& r) {
  const bool meshed = r.tp > 1 || r.pp > 1;
  std::string regime = r.model.experts > 0 ? "MoE, " : "dense, ";
  regime += r.zero_stage == 3 && r.pp == 1 ? (meshed ? "FSDP with tensor groups" : "FSDP")
            : meshed                       ? "tensor and pipeline"
                                           : "data parallel";
  if (r.gpus <= r.gpus_per_node) regime += ", one node";
  if (r.precision == "fp8") regime += ", fp8";
  return regime;
}

bool fabric_assumed(const RunRow& r) { return r.gpus > nvlink_domain(r) && fabric_text(r).assumed; }

/// The same training, arranged in another way.
std::string choice_of(const RunRow& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", r.source, r.model.name, r.gpu, r.gpus, r.seq, r.global_batch, r.precision);
}

/// What is not known of who ran a row: typical constants stand in for it.
using Unknown = std::string StepTraits::*;

/// Of each stack (or GPU) as many samples: the errors of one that measured thousands of runs say no more of the next.
std::vector<const Sample*> alike_many(const std::vector<const Sample*>& samples, Unknown what) {
  std::map<std::string, std::vector<const Sample*>> parts;
  for (const Sample* s : samples) parts[s->traits.*what].push_back(s);
  std::vector<const Sample*> out;
  for (const auto& [name, members] : parts)
    for (const Sample* s : evenly(members, kMostOfStack)) out.push_back(s);
  return out;
}

class RunPredictor {
 public:
  /// Without a timer steps take what the step model says.
  RunPredictor(std::vector<const Sample*> training, RunsLeftOut left_out, RunTimer timer = {})
      : training_(std::move(training)), left_out_(left_out), timer_(std::move(timer)) {
    std::map<std::string, std::string> first;  // group that a measurement was first met in
    for (const Sample* s : training_) {
      const std::string& group = group_of(*s->row);
      const std::string& other = first.emplace(measurement_key(*s->row), group).first->second;
      if (other != group) join(group, other);
    }
    std::set<std::pair<std::string, std::string>> groups;  // those of one stack go to different folds
    for (const Sample* s : training_) groups.emplace(s->traits.stack, group_of(*s->row));
    for (const auto& [stack, group] : groups) fold_.emplace(group, fold_.size() % kFolds);
    if (!training_.empty()) whole_.emplace(timed([](const Sample&) { return false; }));
  }

  Judged judge(const Sample& s) {
    const RunRow& row = *s.row;
    Judged j;
    j.line = row.line;
    j.name = row.name;
    j.group = row.group;
    j.measured = row.step_s;
    j.regime = row.unusable.empty() ? regime_of(row) : "unusable rows";
    j.forecast.reason = s.reason;
    if (s.reason.empty() && row.step_s <= 0) j.forecast.reason = "no step time measured";
    const bool known = left_out_ == RunsLeftOut::group && knows(s, &StepTraits::stack);
    const StepModel* model = !j.forecast.reason.empty() ? nullptr
                             : known                    ? without(row.group)
                                                        : without_all(s, &StepTraits::stack, group_of(row));
    if (j.forecast.reason.empty() && model == nullptr)
      j.forecast.reason = "no measurement of another source or model to fit on";
    j.baseline.reason = j.forecast.reason;
    if (!j.forecast.reason.empty()) return j;
    j.choice = choice_of(row);
    j.assumed = row.assumed;
    if (!s.loads.empty()) j.assumed.push_back(s.loads);
    if (fabric_assumed(row)) j.assumed.push_back("fabric of " + fabric_text(row).fabric);
    predict(j, s, *model, known);
    if (timer_) retime(j, s, *model);
    if (left_out_ == RunsLeftOut::stack) j.regime = regime_of(row);
    return j;
  }

  /// As if nothing of its stack (or GPU) had been measured: shows how far the typical constants carry. Empty where
  /// nothing else was.
  std::optional<Judged> as_unknown(const Sample& s, Unknown what) {
    const StepModel* model = s.timed() ? without_all(s, what) : nullptr;
    if (model == nullptr) return std::nullopt;
    Judged j;
    j.group = s.traits.*what;
    j.measured = s.row->step_s;
    Sample typical = s;
    if (what == &StepTraits::stack) typical.traits.factors.clear();
    predict(j, typical, *model, false);
    j.regime = regime_of_unknown(*s.row, what);
    return j;
  }

 private:
  // One regime whatever the layout: how a stack never measured errs is known from a dozen stacks.
  static std::string regime_of_unknown(const RunRow& row, Unknown what) {
    return fmt::format("{}{}", row.model.experts > 0 ? "MoE" : "dense",
                       what == &StepTraits::gpu ? kGpuNeverMeasured : kNeverMeasured);
  }

  void predict(Judged& j, const Sample& s, const StepModel& model, bool known) const {
    j.forecast.value = model.seconds(s.work, s.traits);
    j.baseline.value = s.work.model_flops_s / typical_share(*s.row);
    const bool known_gpu = knows(s, &StepTraits::gpu);
    const bool said = s.row->assumed.empty() && s.loads.empty() && !fabric_assumed(*s.row);
    j.forecast.evidence = j.baseline.evidence =
        only(known && known_gpu && said ? Evidence::published : Evidence::derived);
    if (!known)
      j.regime = regime_of_unknown(*s.row, &StepTraits::stack);
    else if (!known_gpu)
      j.regime = regime_of_unknown(*s.row, &StepTraits::gpu);
  }

  void retime(Judged& j, const Sample& s, const StepModel& model) const {
    try {
      j.forecast.value = timer_(*s.row, s.traits, model.constants(s.traits));
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      j.forecast.value.reset();
      j.baseline.value.reset();
      j.forecast.reason = j.baseline.reason = e.what();
    }
  }

  /// Whether another group has the row's stack (or GPU).
  bool knows(const Sample& s, Unknown what) const {
    return std::any_of(training_.begin(), training_.end(), [&](const Sample* each) {
      return each->traits.*what == s.traits.*what && group_of(*each->row) != group_of(*s.row);
    });
  }

  template <typename LeftOut>
  std::vector<TimedStep> timed(LeftOut left_out) const {
    std::vector<TimedStep> out;
    for (const Sample* s : training_)
      if (!left_out(*s)) out.push_back({&s->work, s->traits, group_of(*s->row), s->row->step_s});
    return out;
  }

  /// Groups whose measurements are partly the same count as one, whatever tables call them.
  const std::string& group_of(const RunRow& row) const {
    const std::string* group = &row.group;
    for (auto found = same_.find(*group); found != same_.end(); found = same_.find(*group)) group = &found->second;
    return *group;
  }

  void join(std::string group, const std::string& other) {
    std::string root = other;
    for (auto found = same_.find(root); found != same_.end(); found = same_.find(root)) root = found->second;
    if (root != group) same_[std::move(group)] = root;
  }

  /// Without everything of the sample's stack (or GPU), and without a group.
  const StepModel* without_all(const Sample& of, Unknown what, const std::string& group = "") {
    const std::string& name = of.traits.*what;
    const auto outside = [&](const Sample& s) { return s.traits.*what != name && group_of(*s.row) == group; };
    // Nearly always the stack has all of the group.
    const bool elsewhere =
        std::any_of(training_.begin(), training_.end(), [&](const Sample* s) { return outside(*s); });
    const std::string key = (what == &StepTraits::gpu ? "GPU " : "stack ") + name;
    auto& model = stackless_[{key, elsewhere ? group : ""}];
    if (model) return model.get();
    const auto steps = timed([&](const Sample& s) { return s.traits.*what == name || group_of(*s.row) == group; });
    if (!steps.empty()) model = std::make_unique<StepModel>(steps);
    return model.get();
  }

  const StepModel* without(const std::string& group) {
    const auto fold = fold_.find(group);
    if (fold == fold_.end()) return whole_ ? &*whole_ : nullptr;
    auto& model = folds_[fold->second];
    if (!model) {
      const auto steps = timed([&](const Sample& s) { return fold_.at(group_of(*s.row)) == fold->second; });
      if (steps.empty()) return nullptr;
      model = std::make_unique<StepModel>(steps);
    }
    return model.get();
  }

  double typical_share(const RunRow& row) const {
    std::vector<double> alike, all;
    for (const Sample* s : training_) {
      if (group_of(*s->row) == group_of(row)) continue;
      const double share = s->work.model_flops_s / s->row->step_s;
      all.push_back(share);
      if (s->row->gpu == row.gpu && regime_of(*s->row) == regime_of(row)) alike.push_back(share);
    }
    return quantile(alike.empty() ? all : alike, 0.5);
  }

  std::vector<const Sample*> training_;
  RunsLeftOut left_out_;
  RunTimer timer_;
  std::map<std::string, std::size_t> fold_;  ///< of a group
  std::optional<StepModel> whole_;
  std::array<std::unique_ptr<StepModel>, kFolds> folds_;
  std::map<std::string, std::string> same_;  ///< of a group the one that it counts as
  std::map<std::pair<std::string, std::string>, std::unique_ptr<StepModel>>
      stackless_;  ///< by stack or GPU, and group, left out
};

/// Stacks (or GPUs) never measured are off by as much as those are whose measurements are left out, whatever the
/// layout.
void add_intervals_of_unknown(std::vector<Judged>& judged, const std::vector<const Sample*>& samples,
                              const std::vector<const Sample*>& training, RunPredictor& predictor, Unknown what,
                              const char* regime) {
  std::map<std::string, std::vector<std::size_t>> unknown;  // rows by stack
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (judged[i].regime.ends_with(regime)) unknown[samples[i]->traits.*what].push_back(i);
  if (unknown.empty()) return;
  std::vector<Judged> left_out;
  for (const Sample* s : alike_many(training, what))
    if (auto row = predictor.as_unknown(*s, what)) left_out.push_back(std::move(*row));
  for (const auto& [name, rows] : unknown) {
    std::vector<Judged> both;
    for (std::size_t i : rows) both.push_back(judged[i]), both.back().group = name;
    for (const Judged& row : left_out)
      if (row.group != name) both.push_back(row);
    add_intervals(both, &Judged::forecast);
    for (std::size_t i = 0; i < rows.size(); ++i) judged[rows[i]].forecast = both[i].forecast;
  }
}

}  // namespace

RunReference run_reference(const std::filesystem::path& measurements, std::vector<StackSpec> stacks) {
  RunReference out{.kernels = read_kernel_rows(measurements / "kernel_times.csv"),
                   .collectives = read_collective_rows(measurements / "collectives.csv"),
                   .runs = published_runs(measurements),
                   .stacks = std::move(stacks)};
  return out;
}

StepTraits traits_of(const StackSpec& stack, const std::string& gpu) {
  const auto sheet = data_sheet(gpu);
  const bool later = sheet && sheet->generation >= 9;
  return {stack.name,
          gpu_key(gpu),
          stack.balanced_stages,
          later && stack.attention == FusedAttention::flash2,
          stack.step,
          stack.separate_reduce_group};
}

StepModel reference_model(const RunReference& reference, const GpuTimes& gpu, const RunFabric& fabric) {
  std::vector<Sample> samples;
  samples.reserve(reference.runs.size());
  for (const RunRow& row : reference.runs)
    samples.push_back(sampled(row, stack_of(row.framework, reference.stacks), gpu, fabric));
  std::vector<TimedStep> steps;
  for (const Sample& s : samples)
    if (s.timed()) steps.push_back({&s.work, s.traits, s.row->group, s.row->step_s});
  return StepModel(steps);
}

namespace {

/// Rows and reference as the model sees them.
struct Samples {
  std::vector<Sample> rows, others;
  std::vector<const Sample*> training;  ///< every measurement once

  Samples(const std::vector<RunRow>& asked, const RunReference& reference, const std::string& stack) {
    const GpuTimes gpu(reference.kernels);
    const RunFabric fabric(reference.collectives);
    const auto sample = [&](const RunRow& row, const std::string& named) {
      return sampled(row, named.empty() ? stack_of(row.framework, reference.stacks) : read_stack(named), gpu, fabric);
    };
    rows.reserve(asked.size());
    std::set<std::string> seen;
    for (const RunRow& row : asked) rows.push_back(sample(row, stack));
    for (const RunRow& row : asked) seen.insert(identity(row));
    for (const RunRow& row : reference.runs)
      if (seen.insert(identity(row)).second) others.push_back(sample(row, ""));
    seen.clear();
    for (const std::vector<Sample>* set : {&rows, &others})
      for (const Sample& s : *set)
        if (s.timed() && seen.insert(identity(*s.row)).second) training.push_back(&s);
  }
  Samples(const Samples&) = delete;
  Samples& operator=(const Samples&) = delete;
};

}  // namespace

std::vector<Judged> judge_runs(const std::vector<RunRow>& rows, const RunReference& reference, const std::string& stack,
                               RunsLeftOut left_out) {
  const Samples samples(rows, reference, stack);
  RunPredictor predictor(samples.training, left_out);
  std::vector<Judged> judged;
  for (const std::vector<Sample>* set : {&samples.rows, &samples.others})
    for (const Sample& s : *set) judged.push_back(predictor.judge(s));
  add_intervals(judged, &Judged::forecast);
  std::vector<const Sample*> asked;
  asked.reserve(samples.rows.size());
  for (const Sample& s : samples.rows) asked.push_back(&s);
  add_intervals_of_unknown(judged, asked, samples.training, predictor, &StepTraits::stack, kNeverMeasured);
  add_intervals_of_unknown(judged, asked, samples.training, predictor, &StepTraits::gpu, kGpuNeverMeasured);
  add_intervals(judged, &Judged::baseline);
  judged.resize(samples.rows.size());
  return judged;
}

std::vector<Judged> judge_runs_by(const RunTimer& timer, const std::vector<RunRow>& rows, const RunReference& reference,
                                  const std::string& stack) {
  const Samples samples(rows, reference, stack);
  RunPredictor predictor(samples.training, RunsLeftOut::group, timer);
  std::vector<Judged> judged;
  for (const Sample& s : samples.rows) judged.push_back(predictor.judge(s));
  add_intervals(judged, &Judged::forecast);
  add_intervals(judged, &Judged::baseline);
  return judged;
}

}  // namespace wt
