#include "planner/job_logs/job_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "planner/job_logs/event_file.hpp"
#include "planner/job_logs/log_reader.hpp"
#include "planner/job_logs/logged_steps.hpp"
#include "planner/job_logs/metric_files.hpp"
#include "planner/job_logs/trainer_state.hpp"
#include "planner/job_logs/wandb_run.hpp"

namespace wt {
namespace {

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

JobLog log_of(const LoggedSteps& steps, const MetricSteps& metrics) {
  JobLog out = steps.log(metrics.trainer());
  out.memory_is_reserved = metrics.memory_is_reserved();
  return out;
}

/// For formats that are not read line by line.
std::string read_whole(const std::filesystem::path& file, std::uintmax_t most = std::uintmax_t{1} << 30) {
  if (const auto size = std::filesystem::file_size(file); size > most)
    throw_usage("{}: found {} bytes, needs {} at most", file.string(), size, most);
  return read_file(file, "a log of a job");
}

/// As std::getline, for a file that may be anything. Throws Error{usage} for a line of more than 64 MiB.
bool next_line(std::ifstream& in, std::string& line, const std::filesystem::path& file) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  using Traits = std::ifstream::traits_type;
  line.clear();
  for (auto c = in.rdbuf()->sbumpc(); c != Traits::eof(); c = in.rdbuf()->sbumpc()) {
    if (c == '\n') return true;
    if (line.size() == kMost) throw_usage("{}: found a line of more than 64 MiB; needs a log of a job", file.string());
    line += Traits::to_char_type(c);
  }
  in.setstate(std::ios::eofbit);
  return !line.empty();
}

/// Reads with a reader of records, for example of event files.
JobLog read_records(const std::vector<std::filesystem::path>& files,
                    MetricRecords (*read)(std::string_view, const std::string&, MetricSteps&)) {
  MetricSteps metrics;
  LoggedSteps steps;
  steps.expect_starts();
  std::vector<std::string> notes;
  bool ends_in_record = false;
  for (const std::filesystem::path& file : files) {
    const MetricRecords recorded = read(read_whole(file), file.string(), metrics);
    for (const auto& [record, step] : recorded.steps)
      steps.add(step, fmt::format("{}: record {}", file.string(), record));
    if (recorded.cut && &file != &files.back())
      notes.emplace_back("A file of the log ends in the middle of a record, which is left out.");
    ends_in_record = recorded.cut;
  }
  JobLog out = log_of(steps, metrics);
  out.ends_in_record = ends_in_record;
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return out;
}

/// A trainer that starts again writes another event file, and Composer one for every 100 batches. Their names have the
/// time in them.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.is_regular_file(none) && entry.path().filename().string().starts_with("events.out.tfevents."))
      out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

JobLog read_event_folder(const std::filesystem::path& folder) {
  constexpr std::size_t kMost = 10'000;
  const auto files = event_files(folder);
  if (files.empty() || files.size() > kMost)
    throw_usage("{}: found a folder of {} event files, needs 1 to {} of TensorBoard, or a file", folder.string(),
                files.size(), kMost);
  return read_records(files, event_file_steps);
}

JobLog read_state(const std::filesystem::path& file) {
  MetricSteps metrics;
  LoggedSteps steps;
  steps.expect_starts();
  constexpr std::uintmax_t kMost = std::uintmax_t{256} << 20;  // parsed as one document
  for (const auto& [entry, step] : trainer_state_steps(read_whole(file, kMost), file.string(), metrics))
    steps.add(step, fmt::format("{}: entry {} of log_history", file.string(), entry));
  return log_of(steps, metrics);
}

JobLog read_table(const std::filesystem::path& file) {
  MetricSteps metrics;
  LoggedSteps steps;
  steps.expect_starts();
  const MetricSteps::Table table = metrics.csv(file);
  for (const auto& [line, step] : table.steps) steps.add(step, fmt::format("{}: line {}", file.string(), line));
  JobLog out = log_of(steps, metrics);
  if (table.broken > 0)
    out.notes.push_back(fmt::format("{} of the table cannot be read, and left out.", counted(table.broken, "row")));
  return out;
}

JobLog read_lines(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  LogReader reader(file);
  std::string line;
  while (next_line(in, line, file)) in.eof() ? reader.cut(line) : reader.line(line);
  return reader.log();
}

JobLog read_file_of_log(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none))  // a pipe without a writer would be waited for
    throw_usage("{}: found no regular file, needs a log of a job", file.string());
  if (!std::ifstream(file, std::ios::binary)) throw_usage("{}: cannot be read; needs a log of a job", file.string());
  switch (log_format(file)) {
    case LogFormat::table:
      return read_table(file);
    case LogFormat::event_file:
      return read_records({file}, event_file_steps);
    case LogFormat::wandb_run:
      return read_records({file}, wandb_run_steps);
    case LogFormat::trainer_state:
      return read_state(file);
    case LogFormat::lines:
      break;
  }
  return read_lines(file);
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

std::string to_string(LogFormat format) {
  switch (format) {
    case LogFormat::table:
      return "a CSV export";
    case LogFormat::event_file:
      return "an event file of TensorBoard";
    case LogFormat::wandb_run:
      return "a run of Weights & Biases";
    case LogFormat::trainer_state:
      return "a trainer_state.json";
    case LogFormat::lines:
      break;
  }
  return "lines";
}

LogFormat log_format(const std::filesystem::path& file) {
  if (lower(file.extension().string()) == ".csv") return LogFormat::table;
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return LogFormat::lines;
  std::ifstream in(file, std::ios::binary);
  std::string begin(16, '\0');
  in.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  if (is_event_file(begin)) return LogFormat::event_file;
  if (is_wandb_run(begin)) return LogFormat::wandb_run;
  in.clear(), in.seekg(0);
  constexpr int kLooked = 20;
  std::string line;
  for (int i = 0; i < kLooked && next_line(in, line, file); ++i)
    if (is_trainer_state_line(line)) return LogFormat::trainer_state;
  return LogFormat::lines;
}

JobLog read_growing_log(const std::filesystem::path& file) {
  std::error_code none;
  JobLog log = std::filesystem::is_directory(file, none) ? read_event_folder(file) : read_file_of_log(file);
  log.memory_is_reserved =
      log.memory_is_reserved || log.trainer == JobTrainer::torchtitan || log.trainer == JobTrainer::composer;
  return log;
}

JobLog read_job_log(const std::filesystem::path& file) {
  JobLog log = read_growing_log(file);
  if (log.ends_in_record) log.notes.emplace_back("The log ends in the middle of a record, which is left out.");
  if (log.steps.empty())
    throw_usage(
        "{}: found no step of torchtitan, Megatron, NeMo Automodel, Composer, Hugging Face's Trainer or windtunnel; "
        "needs their standard output, metrics as JSON lines, TensorBoard's event files, run-*.wandb or a CSV export of "
        "Weights & Biases, or trainer_state.json{}{}",
        file.string(), log.notes.empty() ? "" : ". ", log.notes.empty() ? "" : log.notes.front());
  add_notes_on_values(log);
  return log;
}

bool is_event_folder(const std::filesystem::path& folder) { return !event_files(folder).empty(); }

std::vector<std::filesystem::path> files_of_log(const std::filesystem::path& log) {
  std::error_code none;
  if (!std::filesystem::is_directory(log, none)) return {log};
  return event_files(log);
}

}  // namespace wt
