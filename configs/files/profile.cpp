#include "configs/files/profile.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/statistics.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const Provenance& evidence) {
  out = {{"kind", to_string(evidence.kind)}, {"source", evidence.source}};
  if (evidence.root) out["root"] = to_string(*evidence.root);
}
WT_TO_JSON(Measurement, kernel, pass, dtype, shape, clock, unit, samples, counters, smaller_is_better, evidence)
WT_TO_JSON(FailedMeasurement, name, error)

namespace {

constexpr const char* kSchema = "windtunnel.profile/1";

std::string one_of(const JsonReader& value, const std::vector<std::string>& allowed) {
  std::string word = value.string();
  if (std::ranges::find(allowed, word) != allowed.end()) return word;
  value.fail("'" + word + "'", fmt::format("{}", fmt::join(allowed, ", ")));
}

Provenance read_provenance(const JsonReader& in) {
  in.allow_only({"kind", "source", "root"});
  Provenance out{evidence_from_string(one_of(in.at("kind"), {"measured", "published", "derived", "assumed"})),
                 in.at("source").string()};
  if (in.has("root")) out.root = evidence_from_string(one_of(in.at("root"), {"measured", "published", "assumed"}));
  return out;
}

Measurement read_measurement(const JsonReader& in) {
  in.allow_only({"kernel", "pass", "dtype", "shape", "clock", "unit", "smaller_is_better", "samples", "counters",
                 "throttled", "backend", "evidence"});
  Measurement m;
  m.kernel = in.at("kernel").string();
  if (m.kernel.empty()) in.at("kernel").fail("an empty name", "the name of what was timed");
  if (in.has("pass")) m.pass = one_of(in.at("pass"), {"forward", "backward", ""});
  if (in.has("dtype")) m.dtype = in.at("dtype").string();
  if (in.has("clock")) m.clock = one_of(in.at("clock"), {"wall", "thread_cpu", "device"});
  m.unit = in.at("unit").string();
  if (m.unit.empty()) in.at("unit").fail("an empty unit", "the unit of the samples, e.g. \"s\"");
  if (in.has("smaller_is_better")) m.smaller_is_better = in.at("smaller_is_better").boolean();
  if (in.has("shape"))
    for (const auto& [key, value] : in.at("shape").items()) {
      m.shape[key] = value.integer();
      if (m.shape[key] < 0) value.fail(std::to_string(m.shape[key]), "an integer >= 0");
    }
  for (const JsonReader& sample : in.at("samples").elements()) m.samples.push_back(sample.non_negative());
  if (m.samples.empty()) in.at("samples").fail("no sample", "at least one");
  if (in.has("counters"))
    for (const auto& [key, value] : in.at("counters").items()) m.counters[key] = value.finite();
  if (in.has("throttled"))
    for (const JsonReader& reason : in.at("throttled").elements())
      m.throttled.push_back(one_of(reason, {"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}));
  if (in.has("backend")) m.backend = in.at("backend").string();
  m.evidence = read_provenance(in.at("evidence"));
  return m;
}

json measurement_json(const Measurement& m) {
  json out = m;
  if (!m.throttled.empty()) out["throttled"] = m.throttled;
  if (!m.backend.empty()) out["backend"] = m.backend;
  return out;
}

}  // namespace

std::string Measurement::name() const {
  std::string name = kernel;
  if (!pass.empty()) name += "/" + pass;
  if (!dtype.empty()) name += "/" + dtype;
  if (!shape.empty())
    name += "/" + joined(shape, ",", [](const auto& size) { return fmt::format("{}={}", size.first, size.second); });
  if (clock != "wall") name += "/" + clock;
  return name;
}

double Measurement::median() const {
  if (samples.empty()) throw_usage("{}: found no sample, allowed at least one; measure it again", name());
  return wt::median(samples);
}

void Measurement::pool(const Measurement& other) {
  const double n = static_cast<double>(samples.size()), k = static_cast<double>(other.samples.size());
  for (const auto& [key, value] : other.counters) {
    const auto [counter, is_new] = counters.emplace(key, value);
    if (is_new) continue;
    double& known = counter->second;
    known = key.starts_with("max_")   ? std::max(known, value)
            : key.starts_with("min_") ? std::min(known, value)
                                      : (n * known + k * value) / (n + k);
  }
  for (const std::string& reason : other.throttled)
    if (std::ranges::find(throttled, reason) == throttled.end()) throttled.push_back(reason);
  samples.insert(samples.end(), other.samples.begin(), other.samples.end());
}

json to_json(const Profile& profile) {
  json measurements = json::array();
  for (const Measurement& m : profile.measurements) measurements.push_back(measurement_json(m));
  json document = {
      {"schema", kSchema}, {"fingerprint", profile.fingerprint}, {"measurements", std::move(measurements)}};
  if (!profile.failures.empty()) document["failures"] = profile.failures;
  profile_from_json(document, "profile to be written");  // JSON would silently turn a NaN into null
  return document;
}

Profile profile_from_json(const json& document, const std::string& origin) {
  const JsonReader in(document, origin);
  // Check the schema first: in another kind of file every key would be reported as unknown.
  if (const std::string schema = in.at("schema").string(); schema != kSchema)
    in.at("schema").fail("'" + schema + "'", std::string("'") + kSchema + "'");
  in.allow_only({"schema", "fingerprint", "measurements", "failures"});

  Profile profile;
  for (const auto& [key, value] : in.at("fingerprint").items()) profile.fingerprint[key] = value.string();
  std::map<std::string, std::size_t> seen;
  for (const JsonReader& element : in.at("measurements").elements()) {
    profile.measurements.push_back(read_measurement(element));
    const std::string name = profile.measurements.back().name();
    const auto [first, is_new] = seen.emplace(name, seen.size());
    if (!is_new)
      element.fail(fmt::format("a second measurement named '{}' (the first is /measurements/{})", name, first->second),
                   "one per name; append its samples to the first");
  }
  if (in.has("failures"))
    for (const JsonReader& element : in.at("failures").elements()) {
      element.allow_only({"name", "error"});
      profile.failures.push_back({element.at("name").string(), element.at("error").string()});
    }
  return profile;
}

Profile read_profile(const std::filesystem::path& file) { return profile_from_json(read_json(file), file.string()); }

std::string digest(const Profile& profile) {
  const auto parts = profile.fingerprint.find(kMergedFrom);
  return fmt::format("{:016x}{}", hash_of(to_json(profile).dump()),
                     parts == profile.fingerprint.end() ? "" : " " + parts->second);
}

void write_profile(const Profile& profile, const std::filesystem::path& file) {
  write_file_atomically(file, to_json(profile).dump(1) + "\n");
}

}  // namespace wt
