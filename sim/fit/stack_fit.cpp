#include "sim/fit/stack_fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

std::string identity(const RunRow& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", r.source, r.framework, r.model.name,
                     r.model.layers, r.gpu, r.gpus, r.dp, r.tp, r.pp, r.cp, r.ep, r.seq, r.microbatch, r.accumulation,
                     r.zero_stage, r.recompute_text, r.precision.word, r.step_s);
}

/// Equal for the same run in two tables: its shape, and three digits of its time.
std::string measurement_key(const RunRow& r) {
  const auto sheet = data_sheet(r.gpu);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{:.3g}", sheet ? sheet->name : r.gpu, r.gpus, r.model.layers,
                     r.model.d_model, r.seq, r.tp, r.pp, r.microbatch, r.accumulation, r.step_s);
}

}  // namespace

StackFit::StackFit(const std::vector<RunRow>& runs, const std::vector<StackSpec>& stacks, BenchmarkTimes benchmarks)
    : stacks_(stacks), benchmarks_(std::move(benchmarks)) {
  std::set<std::string> seen;
  for (const RunRow& row : runs)
    if (row.unusable.empty() && row.step_s > 0 && seen.insert(identity(row)).second) add(row);
  for (const Step& s : steps_) {
    const std::string& origin = same_as(s.row->origin);
    const std::string& other = origin_of_measurement_.emplace(measurement_key(*s.row), origin).first->second;
    if (other != origin) join(origin, other);
  }
}

StackFit::StackFit(const StackFit& whole, const std::string& origin, BenchmarkTimes benchmarks)
    : stacks_(whole.stacks_),
      benchmarks_(std::move(benchmarks)),
      same_(whole.same_),
      origin_of_measurement_(whole.origin_of_measurement_) {
  const bool same_times = benchmarks_ == whole.benchmarks_;
  for (const Step& s : whole.steps_) {
    if (origin_of(*s.row) == origin) continue;
    if (same_times)
      steps_.push_back(s);
    else
      add(*s.row);
  }
}

void StackFit::add(const RunRow& row) {
  const StackSpec stack = stack_of(row.framework, stacks_);
  try {
    steps_.push_back({&row, std::make_shared<StepWork>(step_work(row, benchmarks_, stack)), traits_of(stack, row.gpu)});
  } catch (const Error& e) {
    if (e.code() != Code::usage) throw;
  }
}

template <typename Skip>
std::unique_ptr<StepModel> StackFit::fitted(Skip skip) const {
  std::vector<TimedStep> timed;
  for (const Step& s : steps_)
    if (!skip(s)) timed.push_back({s.work.get(), s.traits, origin_of(*s.row), s.row->step_s});
  if (timed.empty())
    throw_usage("fit of stacks: found no published step that is not left out, needs one; see configs/measurements");
  return std::make_unique<StepModel>(fit_steps(timed));
}

const StepModel& StackFit::model() const {
  if (!all_) all_ = fitted([](const Step&) { return false; });
  return *all_;
}

const StepModel& StackFit::without_stack(const std::string& stack) const {
  if (!knows_stack(stack)) return model();
  auto& model = without_stack_[stack];
  if (!model) model = fitted([&](const Step& s) { return s.traits.stack == stack; });
  return *model;
}

bool StackFit::knows(const std::string& name, std::string StepTraits::*what) const {
  return std::ranges::any_of(steps_, [&](const Step& s) { return s.traits.*what == name; });
}

bool StackFit::knows_origin(const std::string& origin) const {
  return std::ranges::any_of(steps_, [&](const Step& s) { return origin_of(*s.row) == origin; });
}

const std::string& StackFit::origin_of(const RunRow& row) const {
  const auto known = origin_of_measurement_.find(measurement_key(row));
  return same_as(known == origin_of_measurement_.end() ? row.origin : known->second);
}

const std::string& StackFit::same_as(const std::string& name) const {
  const std::string* origin = &name;
  for (auto found = same_.find(*origin); found != same_.end(); found = same_.find(*origin)) origin = &found->second;
  return *origin;
}

void StackFit::join(std::string origin, const std::string& other) {
  std::string root = other;
  for (auto found = same_.find(root); found != same_.end(); found = same_.find(root)) root = found->second;
  if (root != origin) same_[std::move(origin)] = root;
}

}  // namespace wt
