#include "bench/health/training.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Optional = std::optional<double> TrainingStep::*;

constexpr std::pair<const char*, Optional> kOptional[] = {
    {"exposed_communication_s", &TrainingStep::exposed_communication_s},
    {"mfu", &TrainingStep::mfu},
    {"expert_imbalance", &TrainingStep::expert_imbalance},
    {"aux_loss", &TrainingStep::aux_loss},
    {"tokens_per_s", &TrainingStep::tokens_per_s},
    {"peak_tensor_bytes", &TrainingStep::peak_tensor_bytes}};

/// null stands for NaN, which JSON lacks.
double number_or_nan(const JsonReader& r) {
  return r.value().is_null() ? std::numeric_limits<double>::quiet_NaN() : r.finite();
}

json null_for_nan(double value) { return std::isfinite(value) ? json(value) : json(); }

/// Reads the keys below and ignores the trainer's other keys.
TrainingStep step_from(const JsonReader& r) {
  TrainingStep out;
  out.step = r.at("step").integer();
  out.unix_s = r.at("unix_s").non_negative();
  out.step_s = r.at("step_s").finite();
  if (out.step_s <= 0) r.at("step_s").fail(r.at("step_s").value().dump(), "seconds above 0");
  out.loss = number_or_nan(r.at("loss"));
  if (r.has("grad_norm")) out.grad_norm = number_or_nan(r.at("grad_norm"));
  for (const auto& [key, member] : kOptional)
    if (r.has(key) && !r.at(key).value().is_null()) out.*member = r.at(key).non_negative();
  return out;
}

void append(TrainingObservation& out, const TrainingStep& step, const std::string& where) {
  if (!out.steps.empty() && step.step <= out.steps.back().step)
    throw_error(Code::usage, "{}: found step {} behind step {}, allowed are rising steps; cut the file back to one run",
                where, step.step, out.steps.back().step);
  out.steps.push_back(step);
}

std::optional<DivergedStep> read_diverged(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  const json document = read_json(file);
  const JsonReader r(document, file.string());
  return DivergedStep{r.at("step").integer(), r.at("times").integer(), r.at("unix_s").non_negative()};
}

/// When the ranks last connected; 0: never, or unknown.
double last_start_unix_s(const std::filesystem::path& folder) {
  std::ifstream in(folder / "generations.jsonl");
  double last = 0;
  for (std::string text; std::getline(in, text);)
    if (const json line = lax_json(text); line.is_object() && line.contains("connected_unix_s"))
      if (const json& at = line["connected_unix_s"]; at.is_number()) last = std::max(last, at.get<double>());
  return last;
}

}  // namespace

TrainingFollower::TrainingFollower(const std::filesystem::path& run_folder)
    : folder_(run_folder), file_(run_folder / "metrics.jsonl") {}

void TrainingFollower::reopen() {
  in_ = std::ifstream(file_, std::ios::binary);
  if (!in_ || !std::filesystem::is_regular_file(file_))
    throw_error(Code::usage,
                "{}: cannot be read; needs the metrics of a run: name the folder that windtunnel train -o writes",
                file_.string());
  read_ = lines_ = 0;
  seen_ = {};
}

const TrainingObservation& TrainingFollower::look(double now_unix_s) {
  struct stat now {};
  const bool known = stat(file_.c_str(), &now) == 0 && in_.is_open() && now.st_ino == number_ && now.st_size >= read_;
  if (!known) reopen();
  number_ = now.st_ino;
  in_.clear(), in_.seekg(read_);
  // A last line without a newline is still being written.
  for (std::string text; std::getline(in_, text) && !in_.eof();
       read_ += static_cast<std::int64_t>(text.size()) + 1, ++lines_) {
    const std::string where = file_.string() + ":" + std::to_string(lines_ + 1);
    if (text.empty()) continue;
    const json line = parse_json(text, where);
    append(seen_, step_from(JsonReader(line, where)), where);
  }
  seen_.now_unix_s = now_unix_s;
  seen_.ended = std::filesystem::exists(folder_ / "summary.json");
  using std::chrono::duration, std::chrono::file_clock;
  seen_.last_sign_unix_s =
      seen_.steps.empty()
          ? duration<double>(file_clock::to_sys(std::filesystem::last_write_time(file_)).time_since_epoch()).count()
          : seen_.steps.back().unix_s;
  seen_.diverged = read_diverged(folder_ / "diverged.json");
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
  for (const TrainingStep& s : training.steps) {
    json step = {{"step", s.step}, {"unix_s", s.unix_s}, {"step_s", s.step_s}, {"loss", null_for_nan(s.loss)}};
    if (s.grad_norm) step["grad_norm"] = null_for_nan(*s.grad_norm);
    for (const auto& [key, member] : kOptional)
      if (s.*member) step[key] = *(s.*member);
    out["steps"].push_back(std::move(step));
  }
  if (training.utilisation) out["utilisation"] = *training.utilisation;
  if (training.network_Bps) out["network_Bps"] = *training.network_Bps;
  return out;
}

TrainingObservation training_from_json(const JsonReader& r) {
  r.allow_only({"steps", "now_unix_s", "last_sign_unix_s", "ended", "utilisation", "network_Bps"});
  TrainingObservation out;
  for (const JsonReader& each : r.at("steps").elements()) append(out, step_from(each), "training");
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
