#include "bench/health/training.hpp"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

using nlohmann::json;

void append(TrainingObservation& out, const TrainingStep& step, const std::string& where) {
  if (!out.steps.empty()) check_rising(out.steps.back().step, step.step, where);
  out.steps.push_back(step);
}

/// When ranks were last connected; 0: never, or nobody knows.
double last_start_unix_s(const std::filesystem::path& folder) {
  std::ifstream in(folder / kStartsFile);
  double last = 0;
  for (std::string text; std::getline(in, text);)
    if (const json line = lax_json(text); line.is_object() && line.contains("connected_unix_s"))
      if (const json& at = line["connected_unix_s"]; at.is_number()) last = std::max(last, at.get<double>());
  return last;
}

constexpr const char* kNeeds = "the metrics of a run: name the folder that windtunnel train -o writes";

}  // namespace

TrainingFollower::TrainingFollower(const std::filesystem::path& run_folder)
    : folder_(run_folder), file_(run_folder / kMetricsFile), lines_(file_, kNeeds) {}

const TrainingObservation& TrainingFollower::look(double now_unix_s) {
  const bool there = lines_.look(
      [&](const std::string& text) {
        const std::string where = file_.string() + ":" + std::to_string(line_ + 1);
        if (!text.empty()) {
          const json line = parse_json(text, where);
          append(seen_, training_step(JsonReader(line, where)), where);
        }
        ++line_;
      },
      [&](GrowingFile::Anew) { line_ = 0, seen_ = {}; });
  if (!there) throw_usage("{}: cannot be read; needs {}", file_.string(), kNeeds);
  seen_.now_unix_s = now_unix_s;
  seen_.ended = std::filesystem::exists(folder_ / kSummaryFile);
  using std::chrono::duration, std::chrono::file_clock;
  seen_.last_sign_unix_s =
      seen_.steps.empty()
          ? duration<double>(file_clock::to_sys(std::filesystem::last_write_time(file_)).time_since_epoch()).count()
          : seen_.steps.back().unix_s;
  seen_.diverged = read_diverged(folder_);
  if (seen_.diverged && seen_.diverged->unix_s < std::max(seen_.last_sign_unix_s, last_start_unix_s(folder_)))
    seen_.diverged.reset();
  return seen_;
}

TrainingObservation read_training(const std::filesystem::path& run_folder, double now_unix_s) {
  return TrainingFollower(run_folder).look(now_unix_s);
}

json to_json(const TrainingObservation& training) {
  json out = {{"steps", json::array()},
              {"now_unix_s", training.now_unix_s},
              {"last_sign_unix_s", training.last_sign_unix_s},
              {"ended", training.ended}};
  for (const TrainingStep& step : training.steps) out["steps"].push_back(to_json(step));
  if (training.utilisation) out["utilisation"] = *training.utilisation;
  if (training.network_Bps) out["network_Bps"] = *training.network_Bps;
  return out;
}

TrainingObservation training_from_json(const JsonReader& r) {
  r.allow_only({"steps", "now_unix_s", "last_sign_unix_s", "ended", "utilisation", "network_Bps"});
  TrainingObservation out;
  for (const JsonReader& each : r.at("steps").elements()) append(out, training_step(each), "training");
  out.now_unix_s = r.at("now_unix_s").non_negative();
  if (r.has("last_sign_unix_s"))
    out.last_sign_unix_s = r.at("last_sign_unix_s").non_negative();
  else
    out.last_sign_unix_s = out.steps.empty() ? out.now_unix_s : out.steps.back().unix_s;
  if (r.has("ended")) out.ended = r.at("ended").boolean();
  if (r.has("utilisation")) {
    out.utilisation = r.at("utilisation").non_negative();
    if (*out.utilisation > 1) r.at("utilisation").fail(r.at("utilisation").value().dump(), "a share from 0 to 1");
  }
  if (r.has("network_Bps")) out.network_Bps = r.at("network_Bps").non_negative();
  return out;
}

}  // namespace wt
