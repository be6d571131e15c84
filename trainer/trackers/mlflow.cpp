#include "trainer/trackers/mlflow.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/storage/aws_profile.hpp"

namespace wt {
namespace {

using nlohmann::json;

// MLflow's limits of a runs/log-batch call, and of keys and values.
constexpr std::size_t kMostMetrics = 1000, kMostParameters = 100, kLongestKey = 250, kLongestValue = 6000;
constexpr const char* kRunTag = "windtunnel.run";      // a hash of the run's folder and name
constexpr const char* kStartTag = "windtunnel.start";  // the start that created it

std::int64_t milliseconds(double unix_s) { return std::llround(1e3 * unix_s); }

/// Identifies a run independent of the working folder. Hashed, so that no local path is sent to the server.
std::string identity(const TrackedRun& run) {
  std::error_code ignored;
  const auto folder = std::filesystem::weakly_canonical(run.folder, ignored);
  return fmt::format("{:016x}", hash_of(folder.string() + "\n" + run.name));
}

/// MLflow allows letters, digits and "_-./: ". It also uses a key as a path, which must be relative and without "..".
std::string as_key(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view("_-./: ").find(c) == std::string_view::npos)
      c = '_';
  for (const char* no_path : {"//", "..", "./"})
    for (std::size_t at; (at = name.find(no_path)) != std::string::npos;) name.replace(at, 2, "_");
  if (name.empty() || name.front() == '/' || name.front() == '.') name.insert(0, "_");
  if (name.back() == '/') name.back() = '_';
  return name.size() <= kLongestKey ? name : name.substr(0, kLongestKey - 17) + fmt::format("-{:016x}", hash_of(name));
}

/// Cut to the limit at the begin of a UTF-8 character.
std::string as_value(const std::string& value) {
  if (value.size() <= kLongestValue) return value.empty() ? "(empty)" : value;
  std::size_t kept = kLongestValue - 60;
  while (kept > 0 && (static_cast<unsigned char>(value[kept]) & 0xC0) == 0x80) --kept;
  return value.substr(0, kept) + fmt::format("... (cut: {} of {} bytes)", kept, value.size());
}

json metric_of(const TrackedValue& v, const TrackedStep& step) {
  json out{{"key", as_key(v.name)}, {"timestamp", milliseconds(step.unix_s)}, {"step", step.step}};
  if (std::isfinite(v.value))
    out["value"] = v.value;
  else
    out["value"] = std::isnan(v.value) ? "NaN" : v.value > 0 ? "Infinity" : "-Infinity";
  return out;
}

std::filesystem::path id_file(const TrackedRun& run) { return run.folder / kMlflowFile; }

[[noreturn]] void fail_unknown_answer() {
  throw_runtime("found an answer without the fields of MLflow's API 2.0; check tracking_uri");
}

}  // namespace

MlflowTracker::MlflowTracker(const MlflowSpec& spec, MlflowLogin login, std::string start, double call_s)
    : spec_(spec), start_(std::move(start)), client_(spec.tracking_uri, std::move(login), call_s) {}

bool MlflowTracker::look_up_experiment() {
  MlflowFault fault;
  const auto found = client_.try_get("experiments/get-by-name", {{"experiment_name", spec_.experiment_name}}, fault);
  if (!found && (fault.status != 404 || fault.code.empty())) client_.fail("experiments/get-by-name", fault);
  if (found) experiment_id_ = found->at("experiment").at("experiment_id");
  return found.has_value();
}

void MlflowTracker::find_experiment() {
  if (look_up_experiment()) return;
  MlflowFault fault;
  const auto made = client_.try_post("experiments/create", {{"name", spec_.experiment_name}}, fault);
  if (made) {
    experiment_id_ = made->at("experiment_id");
    return;
  }
  // Another run may have created it first.
  if (fault.code != "RESOURCE_ALREADY_EXISTS" || !look_up_experiment()) client_.fail("experiments/create", fault);
}

/// Returns false if the server no longer has the run.
bool MlflowTracker::look_up(const std::string& run_id) {
  MlflowFault fault;
  const auto found = client_.try_get("runs/get", {{"run_id", run_id}}, fault);
  if (!found) {
    if (fault.permanent() && !fault.code.empty()) return false;
    client_.fail("runs/get", fault);
  }
  const json& run = found->at("run");
  if (text_at(run.at("info"), "lifecycle_stage") == "deleted") return false;
  for (const json& p : run.at("data").value("params", json::array())) parameters_[p.at("key")] = p.at("value");
  artifact_uri_ = text_at(run.at("info"), "artifact_uri");
  return true;
}

bool MlflowTracker::resume_run(const std::string& run_id) {
  if (run_id.empty() || !look_up(run_id)) return false;
  client_.post("runs/update", {{"run_id", run_id}, {"status", "RUNNING"}});
  run_id_ = run_id;
  return true;
}

/// The id in the folder's file, if it is of this server; otherwise empty.
std::string MlflowTracker::known_id(const TrackedRun& run) const {
  std::ifstream in(id_file(run));
  const json known = json::parse(in, nullptr, false);
  if (!known.is_object() || text_at(known, "tracking_uri") != client_.tracking_uri()) return "";
  return text_at(known, "run_id");
}

/// The id of the newest run with this tag; empty: none.
std::string MlflowTracker::search(const std::string& tag, const std::string& value) {
  const json found = client_.post("runs/search", {{"experiment_ids", {experiment_id_}},
                                                  {"filter", fmt::format("tags.`{}` = '{}'", tag, value)},
                                                  {"order_by", {"attributes.start_time DESC"}},
                                                  {"max_results", 1}});
  const json runs = found.value("runs", json::array());
  return runs.empty() ? "" : text_at(runs.at(0).at("info"), "run_id");
}

void MlflowTracker::create(const TrackedRun& run) {
  json tags = json::array();
  const auto tag = [&](const std::string& key, const std::string& value) {
    tags.push_back({{"key", key}, {"value", value}});
  };
  const char* user = std::getenv("USER");
  tag("mlflow.user", user != nullptr ? user : "unknown");
  tag("mlflow.source.name", "windtunnel train");
  tag("mlflow.source.type", "LOCAL");
  tag("run_name", run.name);  // as Composer does
  tag(kRunTag, identity(run));
  tag(kStartTag, start_);
  for (const auto& [key, value] : spec_.tags) tag(as_key(key), as_value(value));
  asked_to_create_ = true;
  const json made = client_.post("runs/create", {{"experiment_id", experiment_id_},
                                                 {"run_name", spec_.run_name.empty() ? run.name : spec_.run_name},
                                                 {"start_time", milliseconds(run.start_unix_s)},
                                                 {"tags", tags}});
  run_id_ = made.at("run").at("info").at("run_id");
  artifact_uri_ = text_at(made.at("run").at("info"), "artifact_uri");
}

/// Only if the server stores files itself. The file is optional: a failure is reported once and not retried.
void MlflowTracker::store_run_file(const TrackedRun& run) {
  const std::string proxied = "mlflow-artifacts:/";  // with a host it would be another server's
  if (!artifact_uri_.starts_with(proxied) || artifact_uri_.starts_with(proxied + "/")) return;
  std::string failed;
  try {
    MlflowFault fault;
    if (client_.try_put_artifact(artifact_uri_.substr(proxied.size()) + "/run.yaml", run.run_file, fault)) return;
    failed = fmt::format("found status {}: {}", fault.status, fault.message);
  } catch (const std::exception& error) {
    failed = error.what();
  }
  print_error("{}: run.yaml is not among the run's artifacts: {}\n", name(), failed);
}

void MlflowTracker::log_parameters(const TrackedRun& run) {
  const auto wanted = mlflow_parameters(run.parameters, parameters_, run.done);
  for (std::size_t at = 0; at < wanted.size(); at += kMostParameters) {
    json params = json::array();
    for (std::size_t i = at; i < std::min(wanted.size(), at + kMostParameters); ++i)
      params.push_back({{"key", wanted[i].first}, {"value", wanted[i].second}});
    client_.post("runs/log-batch", {{"run_id", run_id_}, {"params", params}});
  }
}

void MlflowTracker::begin(const TrackedRun& run) try {
  if (experiment_id_.empty()) find_experiment();
  if (run_id_.empty() && !resume_run(known_id(run))) {
    std::string id = asked_to_create_ ? search(kStartTag, start_) : "";
    if (id.empty() && run.done > 0) id = search(kRunTag, identity(run));
    if (!resume_run(id)) create(run);
  }
  write_file_atomically(
      id_file(run),
      json{{"tracking_uri", client_.tracking_uri()}, {"experiment_id", experiment_id_}, {"run_id", run_id_}}.dump(1) +
          "\n");
  log_parameters(run);
  store_run_file(run);
} catch (const json::exception&) {
  fail_unknown_answer();
}

void MlflowTracker::add(const TrackedRun& run, std::span<const TrackedStep> steps) try {
  run_id_ = known_id(run);
  if (run_id_.empty() || !look_up(run_id_)) run_id_ = look_up_experiment() ? search(kRunTag, identity(run)) : "";
  if (run_id_.empty())
    throw TrackerRefused(
        fmt::format("found no run of {} in the experiment '{}'", run.folder.string(), spec_.experiment_name));
  log(steps);
} catch (const json::exception&) {
  fail_unknown_answer();
}

void MlflowTracker::log(std::span<const TrackedStep> steps) {
  json metrics = json::array();
  const auto flush = [&] {
    if (!metrics.empty()) client_.post("runs/log-batch", {{"run_id", run_id_}, {"metrics", metrics}});
    metrics.clear();
  };
  for (const TrackedStep& step : steps) {
    if (metrics.size() + step.values.size() > kMostMetrics) flush();
    for (const TrackedValue& v : step.values) {
      if (metrics.size() == kMostMetrics) flush();  // one step may have more than a call allows
      metrics.push_back(metric_of(v, step));
    }
  }
  flush();
}

void MlflowTracker::end(TrackedEnd how) {
  const char* status = how == TrackedEnd::finished ? "FINISHED" : how == TrackedEnd::failed ? "FAILED" : "KILLED";
  client_.post("runs/update",
               {{"run_id", run_id_}, {"status", status}, {"end_time", milliseconds(clock_s(CLOCK_REALTIME))}});
}

MlflowSpec mlflow_in_environment(MlflowSpec spec) {
  const auto fill = [](std::string& value, const char* name) {
    if (value.empty()) value = environment_variable(name).value_or("");
  };
  const bool said = !spec.tracking_uri.empty();
  fill(spec.tracking_uri, "MLFLOW_TRACKING_URI");
  fill(spec.experiment_name, "MLFLOW_EXPERIMENT_NAME");
  if (spec.tracking_uri.empty())
    throw_usage(
        "loggers.mlflow.tracking_uri: found neither it nor MLFLOW_TRACKING_URI, needs the address of an MLflow server; "
        "set one of them");
  if (!said) check_tracking_uri(spec.tracking_uri, "MLFLOW_TRACKING_URI");
  if (spec.experiment_name.empty()) spec.experiment_name = "my-mlflow-experiment";
  return spec;
}

std::vector<std::pair<std::string, std::string>> mlflow_parameters(
    const std::vector<std::pair<std::string, std::string>>& wanted, const std::map<std::string, std::string>& there,
    std::int64_t done) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, text] : wanted) {
    std::string key = as_key(name);
    const std::string value = as_value(text);
    const auto found = there.find(key);
    if (found != there.end() && found->second != value) key = as_key(fmt::format("{} after step {}", name, done));
    if (!there.contains(key)) out.emplace_back(key, value);
  }
  return out;
}

}  // namespace wt
