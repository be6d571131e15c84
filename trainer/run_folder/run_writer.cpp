#include "trainer/run_folder/run_writer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

using nlohmann::json;

/// What is damaged is none: the run goes on without.
std::optional<DivergedStep> diverged_before(const std::filesystem::path& folder) {
  std::ifstream in(folder / kDivergedFile);
  const json before = json::parse(in, nullptr, false);
  if (!before.is_object()) return {};
  return DivergedStep{before.value("step", std::int64_t{0}), before.value("times", std::int64_t{0})};
}

}  // namespace

RunWriter::RunWriter(std::filesystem::path folder, std::int64_t resumed_step, const std::string& last_line)
    : folder_(std::move(folder)), resumed_step_(resumed_step), diverged_(diverged_before(folder_)) {
  const std::int64_t last_step = cut_back(kMetricsFile);
  cut_back(kSavesFile), cut_back(kEvaluationsFile);
  metrics_.open(folder_ / kMetricsFile, std::ios::app);
  if (!last_line.empty() && last_step < resumed_step_ && json::parse(last_line).at("step") == resumed_step_)
    metrics_ << last_line << std::endl;
}

/// The last step that stays.
std::int64_t RunWriter::cut_back(std::string_view name) {
  const auto file = folder_ / name;
  std::ifstream in(file);
  if (!in) return 0;
  std::int64_t last_step = 0;
  std::string kept, replayed;
  for (std::string line; std::getline(in, line);)
    if (const json entry = json::parse(line, nullptr, false); entry.is_object()) {
      const std::int64_t step = entry.value("step", resumed_step_ + 1);
      if (name == kEvaluationsFile && step == resumed_step_) ++evaluated_;
      (step <= resumed_step_ ? kept : replayed) += line + "\n";
      if (step <= resumed_step_) last_step = std::max(last_step, step);
    }
  in.close();
  if (name == kMetricsFile && !replayed.empty()) std::ofstream(folder_ / kReplayedFile, std::ios::app) << replayed;
  write_file_atomically(file, kept);
  return last_step;
}

void RunWriter::check(const std::ofstream& out, const char* name) const {
  if (!out) throw_runtime("{}: could not be written; free space", (folder_ / name).string());
}

void RunWriter::step(const std::string& line) {
  metrics_ << line << std::endl;
  check(metrics_, kMetricsFile);
}

void RunWriter::save(const SaveLine& line) {
  if (!saves_.is_open()) saves_.open(folder_ / kSavesFile, std::ios::app);
  saves_ << to_json(line).dump() << std::endl;
  check(saves_, kSavesFile);
}

void RunWriter::evaluation(const json& line) {
  if (!evaluations_.is_open()) evaluations_.open(folder_ / kEvaluationsFile, std::ios::app);
  evaluations_ << line.dump() << std::endl;
  check(evaluations_, kEvaluationsFile);
}

void RunWriter::start(const StartLine& line) {
  std::ofstream(folder_ / kStartsFile, std::ios::app) << to_json(line).dump() << std::endl;
}

void RunWriter::diverged(std::int64_t step) {
  const std::int64_t times = diverged_ && diverged_->step == step ? diverged_->times + 1 : 1;
  try {
    write_file_atomically(folder_ / kDivergedFile,
                          to_json(DivergedStep{step, times, clock_s(CLOCK_REALTIME)}).dump() + "\n");
  } catch (const Error& e) {
    print_error("{}\n", e.what());
  }
}

void RunWriter::done(std::int64_t step) {
  if (!diverged_ || step < diverged_->step) return;
  std::error_code gone;
  std::filesystem::remove(folder_ / kDivergedFile, gone);
  diverged_.reset();
}

}  // namespace wt
