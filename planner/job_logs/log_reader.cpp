#include "planner/job_logs/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "configs/base/error.hpp"

namespace wt {

std::string LogReader::where() const { return fmt::format("{}: line {}", file_.string(), line_ + 1); }

void LogReader::goes_on_in_new_file() {
  if (kind_ == Kind::unknown)
    if (const JobLog head = log(/*losses=*/true); head.steps.empty())
      places_ = head.places, head_.clear();  // nothing of a job yet
  if (!head_.empty()) decide(true);
  line_ = 0;
  steps_.goes_on_in_new_file();
}

void LogReader::line(const std::string& text) {
  if (kind_ != Kind::unknown) return read(text, false);
  head_.push_back(text);
  decide(false);
}

void LogReader::cut(const std::string& text) {
  if (kind_ == Kind::unknown && is_metric_line(text)) kind_ = Kind::metrics;
  decide(true);
  ends_within_line_ = true;
  read(text, true);
}

/// One of the first lines of a file of metrics is a JSON object with a metric of a trainer.
void LogReader::decide(bool is_last) {
  constexpr std::size_t kLooked = 20;
  if (kind_ == Kind::unknown) {
    if (!head_.empty() && is_metric_line(head_.back()))
      kind_ = Kind::metrics;
    else if (is_last || head_.size() == kLooked)
      kind_ = Kind::output;
    else
      return;
  }
  if (kind_ == Kind::metrics) steps_.expect_starts();
  for (const std::string& text : std::exchange(head_, {})) read(text, false);
}

void LogReader::read(const std::string& text, bool cut) {
  kind_ == Kind::metrics ? metric(text, cut) : output(text, cut);
  ++line_;
}

void LogReader::metric(std::string text, bool cut) {
  if (line_ == 0 && text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.find_first_not_of(" \t\r") == std::string::npos) return;
  says_cut_ = cut && !MetricSteps::is_object(text);
  if (says_cut_) return;
  ++places_;
  if (auto step = metrics_.json_line(text, where())) {
    step->place = places_;
    steps_.add(*step, where());
  }
}

/// What a progress bar wrote over is a line, too.
void LogReader::output(const std::string& text, bool cut) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\r', at), text.size());
    const bool last = cut && end == text.size();
    for (const std::string& each : steps_of_line(bare_line(text.substr(at, end - at)))) bare(each, last);
    at = end + 1;
  }
}

void LogReader::bare(const std::string& text, bool cut) {
  if (StepLines::starts(text)) steps_.starts(), ended_ = false;
  if (cut) {
    says_cut_ = says_cut_ || StepLines::looks_like_step(text);
    return;
  }
  ++places_;
  if (StepLines::ends(text)) ended_ = true;
  if (auto step = step_lines_.read(text, where(), places_)) {
    if (step->place == 0) step->place = places_;
    ended_ = false;
    steps_.add(*step, where());
  } else if (step_lines_.goes_on(places_)) {
    ended_ = false;
  } else if (StepLines::looks_like_step(text) && ++odd_ == 1) {
    first_odd_ = line_ + 1;
  }
}

JobLog LogReader::log(bool losses) const {
  LogReader all = *this;
  all.decide(true);
  if (all.kind_ == Kind::output) {
    if (losses && all.step_lines_.has_losses()) all.steps_.expect_starts();
    for (const LoggedStep& step : all.step_lines_.end(ends_within_line_, losses)) all.steps_.add(step, file_.string());
  }
  const bool metrics = all.kind_ == Kind::metrics;
  JobLog out =
      all.steps_.log(metrics ? all.metrics_.trainer() : all.step_lines_.trainer().value_or(JobTrainer::windtunnel));
  out.memory_is_reserved = metrics && all.metrics_.memory_is_reserved();
  out.peak_flops = all.step_lines_.peak_flops();
  out.places = all.places_, out.ended = all.ended_;
  if (says_cut_) out.notes.emplace_back("The log ends in the middle of a line, which is left out.");
  if (all.odd_ > 0)
    out.notes.push_back(fmt::format("{} a step and cannot be read; the first is line {}.",
                                    all.odd_ == 1 ? "One line looks like" : fmt::format("{} lines look like", all.odd_),
                                    all.first_odd_));
  if (losses && all.step_lines_.counts_losses())
    out.notes.emplace_back("Steps are counted in logged losses: the log does not say their steps.");
  if (all.step_lines_.counts_tokens()) out.notes.emplace_back("Steps are counted in tokens, as the log counts them.");
  return out;
}

}  // namespace wt
