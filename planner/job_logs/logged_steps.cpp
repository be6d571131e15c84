#include "planner/job_logs/logged_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"

namespace wt {
namespace {

/// Lines of two jobs, written one between the other, go back and forth more often than jobs start again.
constexpr int kMostUnexplainedReturns = 2;

bool says_loss(const LoggedStep& step) { return step.loss && *step.loss >= 0; }

/// Another rank's or node's line of the same step. Stages of a pipeline before the last one have no loss, or -1.
bool is_copy(const LoggedStep& a, const LoggedStep& b) { return !says_loss(a) || !says_loss(b) || *a.loss == *b.loss; }

void merge(LoggedStep& known, const LoggedStep& copy) {
  if (says_loss(copy)) known.loss = copy.loss;
  for (const auto field : {&LoggedStep::step_s, &LoggedStep::tokens_per_s_per_gpu, &LoggedStep::tokens_per_s,
                           &LoggedStep::grad_norm, &LoggedStep::flops_per_gpu, &LoggedStep::mfu, &LoggedStep::tokens})
    if (!(known.*field)) known.*field = copy.*field;
  if (copy.memory_bytes) known.memory_bytes = std::max(known.memory_bytes.value_or(0), *copy.memory_bytes);
}

/// A clock that goes back is that of a new start.
void time_by_clock(JobLog& log) {
  for (std::size_t i = 1; i < log.steps.size(); ++i) {
    const LoggedStep& before = log.steps[i - 1];
    LoggedStep& now = log.steps[i];
    if (now.timed() || !now.clock_s || !before.clock_s || std::ranges::binary_search(log.starts, now.step)) continue;
    if (*now.clock_s > *before.clock_s) {
      now.step_s = (*now.clock_s - *before.clock_s) / as_double(now.step - before.step);
    } else if (*now.clock_s < *before.clock_s) {
      log.starts.insert(std::ranges::upper_bound(log.starts, now.step), now.step);
      log.notes.push_back(fmt::format("At step {} the log's clock begins again: the job started again.", now.step));
    }
  }
}

void shorten(std::vector<std::string>& notes) {
  constexpr std::size_t kMost = 20;
  if (notes.size() <= kMost) return;
  const std::size_t more = notes.size() - kMost;
  notes.resize(kMost);
  notes.push_back(fmt::format("And {} more.", more));
}

}  // namespace

void LoggedSteps::add(const LoggedStep& step, const std::string& where) {
  const auto known = by_step_.find(step.step);
  const bool again = known != by_step_.end();
  const bool back = !by_step_.empty() && step.step <= last_;
  announced_ = announced_ || (new_file_ && step.step < last_);
  new_file_ = new_file_ && !announced_ && back;  // the last step's copies may follow in the new file
  const bool returns = returns_are_starts_ && step.step < last_;
  if (again && !announced_ && !returns && is_copy(known->second, step)) return merge(known->second, step);
  while (!starts_.empty() && starts_.back() > step.step) starts_.pop_back();
  if (by_step_.empty() || back || announced_) starts_.push_back(step.step);
  if (back || announced_) started_again(where, step.step, back);
  // What came after this step was lost.
  by_step_.erase(by_step_.lower_bound(step.step), by_step_.end());
  by_step_[step.step] = step;
  last_ = step.step;
  announced_ = false;
}

JobLog LoggedSteps::log(JobTrainer trainer) const {
  JobLog out;
  out.trainer = trainer;
  for (const auto& [number, step] : by_step_) out.steps.push_back(step);
  out.starts = starts_;
  out.notes = notes_;
  if (trainer == JobTrainer::hugging_face) time_by_clock(out);
  shorten(out.notes);
  return out;
}

void LoggedSteps::started_again(const std::string& where, std::int64_t step, bool back) {
  if (!announced_ && !returns_are_starts_ && ++unexplained_ > kMostUnexplainedReturns)
    throw_usage(
        "{}: found the steps going back and forth, without a line that says that the job started again; "
        "needs the log of one job, not those of two",
        where);
  notes_.push_back(fmt::format("After step {} the log goes on at step {}: {}.{}", last_, step,
                               announced_            ? "the job started again"
                               : returns_are_starts_ ? "the job started again, or this is a second run"
                                                     : "no line says why",
                               back ? " Of steps that were done again, the last copy counts." : ""));
}

}  // namespace wt
