#include "planner/job_logs/job_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/text.hpp"
#include "planner/job_logs/event_file.hpp"
#include "planner/job_logs/metric_files.hpp"
#include "planner/job_logs/step_lines.hpp"
#include "planner/job_logs/trainer_state.hpp"
#include "planner/job_logs/wandb_run.hpp"

namespace wt {
namespace {

/// Lines of two jobs, written one between the other, go back and forth more often than jobs start again.
constexpr int kMostUnexplainedReturns = 2;

/// Puts logged steps in order, and finds out where the job started again.
class Steps {
 public:
  /// `returns_are_starts`: a file of metrics, to which a job that starts again appends without a word.
  void expect_starts() { returns_are_starts_ = true; }
  void starts() { announced_ = !by_step_.empty(); }

  void add(const LoggedStep& step, const std::string& where) {
    const auto known = by_step_.find(step.step);
    const bool again = known != by_step_.end();
    if (again && !announced_ && is_copy(known->second, step)) return merge(known->second, step);
    const bool back = !by_step_.empty() && step.step <= last_;
    if (by_step_.empty() || back || announced_) starts_.push_back(step.step);
    if (back || announced_) started_again(where, step.step, back);
    // What came after this step was lost.
    by_step_.erase(by_step_.lower_bound(step.step), by_step_.end());
    std::erase_if(starts_, [&](std::int64_t start) { return start > step.step; });
    by_step_[step.step] = step;
    last_ = step.step;
    announced_ = false;
  }

  JobLog log() && {
    JobLog out;
    for (const auto& [number, step] : by_step_) out.steps.push_back(step);
    std::ranges::sort(starts_);
    out.starts = starts_;
    out.notes = notes_;
    return out;
  }

 private:
  static bool says_loss(const LoggedStep& step) { return step.loss && *step.loss >= 0; }
  /// Another rank's or node's line of the same step. Stages of a pipeline before the last one have no loss, or -1.
  static bool is_copy(const LoggedStep& a, const LoggedStep& b) {
    return !says_loss(a) || !says_loss(b) || *a.loss == *b.loss;
  }
  static void merge(LoggedStep& known, const LoggedStep& copy) {
    if (says_loss(copy)) known.loss = copy.loss;
    for (const auto field : {&LoggedStep::step_s, &LoggedStep::tokens_per_s_per_gpu, &LoggedStep::tokens_per_s,
                             &LoggedStep::flops_per_gpu, &LoggedStep::mfu, &LoggedStep::tokens})
      if (!(known.*field)) known.*field = copy.*field;
    if (copy.memory_bytes) known.memory_bytes = std::max(known.memory_bytes.value_or(0), *copy.memory_bytes);
  }

  void started_again(const std::string& where, std::int64_t step, bool back) {
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

  std::map<std::int64_t, LoggedStep> by_step_;
  std::vector<std::int64_t> starts_;
  std::vector<std::string> notes_;
  std::int64_t last_ = 0;
  int unexplained_ = 0;
  bool announced_ = false, returns_are_starts_ = false;
};

void add_notes_on_values(JobLog& log) {
  const auto bad = std::ranges::find_if(log.steps, [](const LoggedStep& s) { return s.loss && std::isnan(*s.loss); });
  if (bad != log.steps.end())
    log.notes.push_back(fmt::format("The loss is not a number from step {} on, or for a while.", bad->step));
  const bool by_clock = log.trainer == JobTrainer::hugging_face;  // then the first step of a start has no time
  if (const auto untimed =
          std::ranges::count_if(log.steps, [&](const LoggedStep& s) { return !s.timed() && !(by_clock && s.clock_s); });
      untimed > 0)
    log.notes.push_back(fmt::format("{} without a usable time or rate, and left out.",
                                    untimed == 1 ? "One logged step is" : fmt::format("{} logged steps are", untimed)));
}

/// What a log says, in the order of its lines.
struct ReadLog {
  Steps steps = {};
  JobTrainer trainer = JobTrainer::windtunnel;
  std::optional<double> peak_flops = {};
  bool memory_is_reserved = false;
  std::vector<std::string> notes = {};
};

/// Hugging Face's Trainer says when it wrote a step, not how long the step took. A clock that goes back is that of a
/// new start.
void time_by_clock(JobLog& log) {
  for (std::size_t i = 1; i < log.steps.size(); ++i) {
    const LoggedStep& before = log.steps[i - 1];
    LoggedStep& now = log.steps[i];
    if (now.timed() || !now.clock_s || !before.clock_s || std::ranges::binary_search(log.starts, now.step)) continue;
    if (*now.clock_s > *before.clock_s) {
      now.step_s = (*now.clock_s - *before.clock_s) / as_double(now.step - before.step);
    } else {
      log.starts.insert(std::ranges::upper_bound(log.starts, now.step), now.step);
      log.notes.push_back(fmt::format("At step {} the log's clock begins again: the job started again.", now.step));
    }
  }
}

/// For formats that are not read line by line.
std::string read_whole(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMost = std::uintmax_t{1} << 30;
  if (const auto size = std::filesystem::file_size(file); size > kMost)
    throw_usage("{}: found {} bytes, needs {} at most", file.string(), size, kMost);
  return read_file(file, "a log of a job");
}

std::string at_line(const std::filesystem::path& file, std::int64_t line) {
  return fmt::format("{}: line {}", file.string(), line);
}

/// The steps of a reader of records, for example of event files.
void read_records(ReadLog& out, const std::vector<std::filesystem::path>& files,
                  MetricRecords (*read)(std::string_view, const std::string&, MetricSteps&)) {
  MetricSteps metrics;
  out.steps.expect_starts();
  for (const std::filesystem::path& file : files) {
    const MetricRecords recorded = read(read_whole(file), file.string(), metrics);
    for (const auto& [record, step] : recorded.steps)
      out.steps.add(step, fmt::format("{}: record {}", file.string(), record));
    if (recorded.cut)
      out.notes.push_back(fmt::format("{} ends in the middle of a record, which is left out.",
                                      &file == &files.back() ? "The log" : "A file of the log"));
  }
  out.trainer = metrics.trainer();
  out.memory_is_reserved = metrics.memory_is_reserved();
}

/// A trainer that starts again writes another event file, and Composer one for every 100 batches. Their names have the
/// time in them.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  constexpr std::size_t kMost = 10'000;
  std::vector<std::filesystem::path> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.is_regular_file(none) && entry.path().filename().string().starts_with("events.out.tfevents."))
      out.push_back(entry.path());
  if (out.empty() || out.size() > kMost)
    throw_usage("{}: found a folder of {} event files, needs 1 to {} of TensorBoard, or a file", folder.string(),
                out.size(), kMost);
  std::ranges::sort(out);
  return out;
}

void read_state(ReadLog& out, const std::filesystem::path& file) {
  MetricSteps metrics;
  out.steps.expect_starts();
  for (const auto& [entry, step] : trainer_state_steps(read_whole(file), file.string(), metrics))
    out.steps.add(step, fmt::format("{}: entry {} of log_history", file.string(), entry));
  out.trainer = JobTrainer::hugging_face;
}

void read_table(ReadLog& out, const std::filesystem::path& file) {
  MetricSteps metrics;
  out.steps.expect_starts();
  const MetricSteps::Table table = metrics.csv(file);
  for (const auto& [line, step] : table.steps) out.steps.add(step, at_line(file, line));
  if (table.broken > 0)
    out.notes.push_back(fmt::format("{} of the table cannot be read, and left out.", counted(table.broken, "row")));
  out.trainer = metrics.trainer();
  out.memory_is_reserved = metrics.memory_is_reserved();
}

constexpr const char* kCut = "The log ends in the middle of a line, which is left out.";

void read_metrics(ReadLog& out, std::istream& in, const std::filesystem::path& file) {
  MetricSteps metrics;
  out.steps.expect_starts();
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (in.eof() && !MetricSteps::is_object(line)) {
      out.notes.emplace_back(kCut);
      break;
    }
    if (const auto step = metrics.json_line(line, at_line(file, number))) out.steps.add(*step, at_line(file, number));
  }
  out.trainer = metrics.trainer();
  out.memory_is_reserved = metrics.memory_is_reserved();
}

/// One line at a time. What a progress bar wrote over is a line, too.
class OutputReader {
 public:
  OutputReader(ReadLog& out, const std::filesystem::path& file) : out_(out), file_(file) {}

  void line(const std::string& text, std::int64_t number, bool cut) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\r', at), text.size());
      const bool last = cut && end == text.size();
      for (const std::string& bare : steps_of_line(bare_line(text.substr(at, end - at)))) take(bare, number, last);
      at = end + 1;
    }
  }

  void end(bool cut) {
    for (const LoggedStep& step : lines_.end(cut)) out_.steps.add(step, file_.string());
    if (odd_ > 0)
      out_.notes.push_back(fmt::format("{} a step and cannot be read; the first is line {}.",
                                       odd_ == 1 ? "One line looks like" : fmt::format("{} lines look like", odd_),
                                       first_odd_));
    if (lines_.counts_tokens()) out_.notes.emplace_back("Steps are counted in tokens, as the log counts them.");
    out_.trainer = lines_.trainer().value_or(JobTrainer::windtunnel);
    out_.peak_flops = lines_.peak_flops();
  }

 private:
  void take(const std::string& bare, std::int64_t number, bool cut) {
    if (StepLines::starts(bare)) out_.steps.starts();
    if (cut) {  // the last line, without an end: what it says may be half of it
      if (StepLines::looks_like_step(bare)) out_.notes.emplace_back(kCut);
      return;
    }
    if (const auto step = lines_.read(bare, at_line(file_, number)))
      out_.steps.add(*step, at_line(file_, number));
    else if (StepLines::looks_like_step(bare) && ++odd_ == 1)
      first_odd_ = number;
  }

  ReadLog& out_;
  const std::filesystem::path& file_;
  StepLines lines_;
  std::int64_t odd_ = 0, first_odd_ = 0;
};

void read_output(ReadLog& out, std::istream& in, const std::filesystem::path& file) {
  OutputReader reader(out, file);
  std::string line;
  bool cut = false;
  for (std::int64_t number = 1; std::getline(in, line); ++number) reader.line(line, number, cut = in.eof());
  reader.end(cut);
}

/// Whether one of the first lines is such a one.
bool begins_with(std::istream& in, bool (*is_such)(const std::string& line)) {
  constexpr int kLooked = 20;
  std::string line;
  bool found = false;
  for (int i = 0; i < kLooked && !found && std::getline(in, line); ++i) found = is_such(line);
  in.clear(), in.seekg(0);
  return found;
}

}  // namespace

std::string to_string(JobTrainer trainer) {
  switch (trainer) {
    case JobTrainer::torchtitan:
      return "torchtitan";
    case JobTrainer::megatron:
      return "Megatron";
    case JobTrainer::automodel:
      return "NeMo Automodel";
    case JobTrainer::composer:
      return "Composer";
    case JobTrainer::hugging_face:
      return "Hugging Face";
    case JobTrainer::windtunnel:
      break;
  }
  return "windtunnel";
}

namespace {

ReadLog read_file_of_log(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none))  // a pipe without a writer would be waited for
    throw_usage("{}: found no regular file, needs a log of a job", file.string());
  std::ifstream in(file, std::ios::binary);
  if (!in) throw_usage("{}: cannot be read; needs a log of a job", file.string());
  std::string begin(16, '\0');
  in.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  in.clear(), in.seekg(0);
  ReadLog read;
  if (is_event_file(begin))
    read_records(read, {file}, event_file_steps);
  else if (is_wandb_run(begin))
    read_records(read, {file}, wandb_run_steps);
  else if (lower(file.extension().string()) == ".csv")
    read_table(read, file);
  else if (begins_with(in, is_trainer_state_line))
    read_state(read, file);
  else if (begins_with(in, is_metric_line))
    read_metrics(read, in, file);
  else
    read_output(read, in, file);
  return read;
}

}  // namespace

JobLog read_job_log(const std::filesystem::path& file) {
  ReadLog read;
  if (std::error_code none; std::filesystem::is_directory(file, none))
    read_records(read, event_files(file), event_file_steps);
  else
    read = read_file_of_log(file);
  JobLog log = std::move(read.steps).log();
  log.notes.insert(log.notes.end(), read.notes.begin(), read.notes.end());
  if (log.steps.empty())
    throw_usage(
        "{}: found no step of torchtitan, Megatron, NeMo Automodel, Composer, Hugging Face's Trainer or windtunnel; "
        "needs their standard output, metrics as JSON lines, TensorBoard's event files, run-*.wandb or a CSV export of "
        "Weights & "
        "Biases, or trainer_state.json{}{}",
        file.string(), log.notes.empty() ? "" : ". ", log.notes.empty() ? "" : log.notes.front());
  log.trainer = read.trainer;
  log.memory_is_reserved =
      read.memory_is_reserved || log.trainer == JobTrainer::torchtitan || log.trainer == JobTrainer::composer;
  log.peak_flops = read.peak_flops;
  if (log.trainer == JobTrainer::hugging_face) time_by_clock(log);
  add_notes_on_values(log);
  return log;
}

}  // namespace wt
