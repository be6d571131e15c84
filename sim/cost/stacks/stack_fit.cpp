#include "sim/cost/stacks/stack_fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/support/error.hpp"

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
                     r.zero_stage, r.recompute_text, r.precision, r.step_s);
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
          .separate_reduce_group = stack.separate_reduce_group};
}

StackFit::StackFit(const std::vector<RunRow>& runs, const std::vector<StackSpec>& stacks, const ItemTimes& items,
                   const CollectiveEstimator& collectives) {
  std::set<std::string> seen;
  for (const RunRow& row : runs) {
    if (!row.unusable.empty() || !(row.step_s > 0) || !seen.insert(identity(row)).second) continue;
    const StackSpec stack = stack_of(row.framework, stacks);
    try {
      steps_.push_back({&row, step_work(row, items, collectives, stack.attention), traits_of(stack, row.gpu)});
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;  // what has no work to fit on is left out
    }
  }
  for (const Step& s : steps_) {
    const std::string& group = same_as(s.row->group);
    const std::string& other = group_of_measurement_.emplace(measurement_key(*s.row), group).first->second;
    if (other != group) join(group, other);
  }
  std::set<std::pair<std::string, std::string>> groups;  // those of one stack go to different folds
  for (const Step& s : steps_) groups.emplace(s.traits.stack, group_of(*s.row));
  for (const auto& [stack, group] : groups) fold_.emplace(group, fold_.size() % kFolds);
}

template <typename Skip>
std::unique_ptr<StepModel> StackFit::fitted(Skip skip) const {
  std::vector<TimedStep> timed;
  for (const Step& s : steps_)
    if (!skip(s)) timed.push_back({&s.work, s.traits, group_of(*s.row), s.row->step_s});
  return timed.empty() ? nullptr : std::make_unique<StepModel>(timed);
}

const StepModel& StackFit::model() const {
  if (!all_) all_ = fitted([](const Step&) { return false; });
  if (!all_) throw_error(Code::usage, "fit of stacks: found no published step, needs one; see configs/measurements");
  return *all_;
}

const StepModel* StackFit::without(const RunRow& row, const StepTraits& traits, StepsLeftOut left_out) const {
  if (left_out == StepsLeftOut::nothing) return &model();
  const std::string& group = group_of(row);
  if (left_out == StepsLeftOut::group) {
    const auto fold = fold_.find(group);
    if (fold == fold_.end()) return steps_.empty() ? nullptr : &model();
    auto& model = folds_[fold->second];
    if (!model) model = fitted([&](const Step& s) { return fold_.at(group_of(*s.row)) == fold->second; });
    return model.get();
  }
  // Nearly always the stack has all of the group.
  const bool elsewhere = std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) {
    return s.traits.stack != traits.stack && group_of(*s.row) == group;
  });
  auto& model = stackless_[{traits.stack, elsewhere ? group : ""}];
  if (!model)
    model = fitted([&](const Step& s) { return s.traits.stack == traits.stack || group_of(*s.row) == group; });
  return model.get();
}

bool StackFit::knows(const RunRow& row, const StepTraits& traits, std::string StepTraits::*what) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) {
    return s.traits.*what == traits.*what && group_of(*s.row) != group_of(row);
  });
}

const std::string& StackFit::group_of(const RunRow& row) const {
  // A run that is asked about may be known by another name.
  const auto known = group_of_measurement_.find(measurement_key(row));
  return same_as(known == group_of_measurement_.end() ? row.group : known->second);
}

const std::string& StackFit::same_as(const std::string& name) const {
  const std::string* group = &name;
  for (auto found = same_.find(*group); found != same_.end(); found = same_.find(*group)) group = &found->second;
  return *group;
}

void StackFit::join(std::string group, const std::string& other) {
  std::string root = other;
  for (auto found = same_.find(root); found != same_.end(); found = same_.find(root)) root = found->second;
  if (root != group) same_[std::move(group)] = root;
}

}  // namespace wt
