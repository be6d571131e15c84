#include "trainer/trackers/tensorboard.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/running.hpp"
#include "trainer/trackers/event_records.hpp"
#include "trainer/trackers/file_names.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

/// A time for the new file's name. Readers process files in the order of names, so it must be later than existing ones.
std::int64_t seconds_of_next(const fs::path& folder, double now_s) {
  const std::string before = "events.out.tfevents.";
  auto seconds = static_cast<std::int64_t>(now_s);
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); name.starts_with(before))
      seconds = std::max<std::int64_t>(seconds, std::atoll(name.c_str() + before.size()) + 1);
  return seconds;
}

/// Indents lines by four blanks, which Markdown shows verbatim.
std::string as_code(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) out += c == '\n' ? "\n    " : std::string(1, c);
  return out;
}

}  // namespace

void TensorboardTracker::begin(const TrackedRun& run) {
  const fs::path folder = log_dir_ / as_file_name(run.name);
  fs::create_directories(folder);
  const std::string host = host_name();
  if (file_.empty())
    file_ = folder / fmt::format("events.out.tfevents.{}.{}.{}.0", seconds_of_next(folder, run.start_unix_s),
                                 host.empty() ? "localhost" : as_file_name(host), getpid());
  write(event_record(version_event(run.start_unix_s)) + event_record(restart_event(run.start_unix_s, run.done + 1)) +
        event_record(text_event(run.start_unix_s, run.done, "run_file", as_code(run.run_file))));
}

void TensorboardTracker::log(std::span<const TrackedStep> steps) {
  std::string records;
  for (const TrackedStep& step : steps) {
    if (step.first_of_start) records += event_record(restart_event(step.unix_s, step.step));
    for (const TrackedValue& v : step.values)
      records += event_record(scalar_event(step.unix_s, step.step, v.name, v.value));
  }
  write(records);
}

void TensorboardTracker::end(TrackedEnd) {}

/// Overwrites what a previous, failed call may have written.
void TensorboardTracker::write(const std::string& records) {
  std::error_code absent;
  if (written_ > 0 || fs::exists(file_, absent)) fs::resize_file(file_, static_cast<std::uintmax_t>(written_));
  std::ofstream out(file_, std::ios::binary | std::ios::app);
  out << records << std::flush;
  if (!out) throw_runtime("{}: could not be written; free space, or make the folder writable", file_.string());
  written_ += static_cast<std::int64_t>(records.size());
}

}  // namespace wt
