#include "trainer/trackers/prometheus.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "trainer/trackers/file_names.hpp"
#include "trainer/trackers/metric_names.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

std::string label_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\\n" : c == '\\' || c == '"' ? std::string{'\\', c} : std::string(1, c);
  return out;
}

std::string sample_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

std::string prometheus_text(const std::string& run, const TrackedStep& step) {
  std::string out;
  for (const TrackedValue& v : step.values) {
    if (*v.metric->prometheus == '\0') continue;
    const std::string name = fmt::format("windtunnel_{}", v.metric->prometheus);
    // Gauges instead of counters, because steps and tokens decrease when a run returns to a checkpoint.
    out += fmt::format("# HELP {} {}\n# TYPE {} gauge\n{}{{run=\"{}\",rank=\"0\"}} {}\n", name, v.metric->help, name,
                       name, label_text(run), sample_text(v.value));
  }
  return out;
}

void PrometheusTracker::begin(const TrackedRun& run) {
  run_ = run.name;
  if (!fs::is_directory(folder_))
    throw_runtime(
        "{}: found no folder there, needs the one that node_exporter reads (--collector.textfile.directory); create "
        "it, or name it as loggers.prometheus.textfile_directory",
        folder_.string());
  file_ = folder_ / ("windtunnel-" + as_file_name(run.name) + ".prom");
}

void PrometheusTracker::log(std::span<const TrackedStep> steps) {
  std::string text;  // of the last step that is not an evaluation
  for (auto step = steps.rbegin(); step != steps.rend() && text.empty(); ++step) text = prometheus_text(run_, *step);
  if (text.empty()) return;
  write_file_atomically(file_, text);
  // node_exporter runs as a different user.
  if (chmod(file_.c_str(), 0644) != 0) throw_runtime("{}: cannot be made readable for all", file_.string());
}

void PrometheusTracker::end(TrackedEnd) {
  std::error_code failure;
  fs::remove(file_, failure);
  if (failure) throw_runtime("{}: cannot be removed: {}", file_.string(), failure.message());
}

}  // namespace wt
