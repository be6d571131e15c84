#include "sim/cost/stacks/stack_fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

/// Parts of one design that differ in their memory alone (H100, H200, GH200) compute alike.
std::string chip_of(const std::string& gpu) {
  const auto sheet = data_sheet(gpu);
  return sheet ? fmt::format("generation {}, {} processors, {:.0f} TFLOP/s", sheet->generation, sheet->processors,
                             sheet->flops * 1e-12)
               : gpu;
}

std::string identity(const RunRow& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", r.source, r.framework, r.model.name,
                     r.model.layers, r.gpu, r.gpus, r.dp, r.tp, r.pp, r.cp, r.ep, r.seq, r.microbatch, r.accumulation,
                     r.zero_stage, r.recompute_text, r.precision.word, r.step_s);
}

/// The same run in another table: three digits of its time, and its shape.
std::string measurement_key(const RunRow& r) {
  const auto sheet = data_sheet(r.gpu);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{:.3g}", sheet ? sheet->name : r.gpu, r.gpus, r.model.layers,
                     r.model.d_model, r.seq, r.tp, r.pp, r.microbatch, r.accumulation, r.step_s);
}

}  // namespace

StepTraits traits_of(const StackSpec& stack, const std::string& gpu) {
  return {.stack = stack.name,
          .chip = chip_of(gpu),
          .balanced_stages = stack.balanced_stages,
          .attention = stack.attention,
          .factors = stack.step,
          .separate_reduce_group = stack.separate_reduce_group,
          .sync_points = stack.sync_points};
}

StackFit::StackFit(const std::vector<RunRow>& runs, const std::vector<StackSpec>& stacks, const ItemTimes& items,
                   const CollectiveEstimator& collectives) {
  std::set<std::string> seen;
  for (const RunRow& row : runs) {
    if (!row.unusable.empty() || !(row.step_s > 0) || !seen.insert(identity(row)).second) continue;
    const StackSpec stack = stack_of(row.framework, stacks);
    try {
      steps_.push_back({&row, step_work(row, items, collectives, stack), traits_of(stack, row.gpu)});
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;  // what has no work to fit on is left out
    }
  }
  for (const Step& s : steps_) {
    const std::string& source = same_as(s.row->origin);
    const std::string& other = source_of_measurement_.emplace(measurement_key(*s.row), source).first->second;
    if (other != source) join(source, other);
  }
}

template <typename Skip>
std::unique_ptr<StepModel> StackFit::fitted(Skip skip) const {
  std::vector<TimedStep> timed;
  for (const Step& s : steps_)
    if (!skip(s)) timed.push_back({&s.work, s.traits, s.row->group, s.row->step_s});
  return timed.empty() ? nullptr : std::make_unique<StepModel>(timed);
}

const StepModel& StackFit::model() const {
  if (!all_) all_ = fitted([](const Step&) { return false; });
  if (!all_) throw_error(Code::usage, "fit of stacks: found no published step, needs one; see configs/measurements");
  return *all_;
}

const StepModel* StackFit::without(const RunRow& row, const StepTraits& traits, StepsLeftOut left_out) const {
  if (left_out == StepsLeftOut::nothing) return &model();
  const std::string& source = source_of(row);
  const bool whole_stack = left_out == StepsLeftOut::stack;
  const auto skipped = [&](const Step& s) {
    return source_of(*s.row) == source || (whole_stack && s.traits.stack == traits.stack);
  };
  if (std::none_of(steps_.begin(), steps_.end(), skipped)) return steps_.empty() ? nullptr : &model();
  auto& model = without_[{source, whole_stack ? traits.stack : ""}];
  if (!model) model = fitted(skipped);
  return model.get();
}

bool StackFit::knows(const RunRow& row, const StepTraits& traits, std::string StepTraits::*what) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) {
    return s.traits.*what == traits.*what && source_of(*s.row) != source_of(row);
  });
}

const std::string& StackFit::source_of(const RunRow& row) const {
  // A run that is asked about may be known by another name.
  const auto known = source_of_measurement_.find(measurement_key(row));
  return same_as(known == source_of_measurement_.end() ? row.origin : known->second);
}

const std::string& StackFit::same_as(const std::string& name) const {
  const std::string* source = &name;
  for (auto found = same_.find(*source); found != same_.end(); found = same_.find(*source)) source = &found->second;
  return *source;
}

void StackFit::join(std::string source, const std::string& other) {
  std::string root = other;
  for (auto found = same_.find(root); found != same_.end(); found = same_.find(root)) root = found->second;
  if (root != source) same_[std::move(source)] = root;
}

}  // namespace wt
