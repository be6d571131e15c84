#include "bench/formats/nvbench.hpp"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/parsed.hpp"

namespace wt {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "nvbench's sample files are little-endian fp32");

/// A number; nvbench writes it as text ("256", "1.5e-05"), older files as a number.
template <class T>
T number(const JsonReader& in) {
  if (in.value().is_number()) {
    if constexpr (std::is_same_v<T, std::int64_t>)
      return in.integer();
    else
      return in.finite();
  }
  const std::string text = in.string();
  const std::optional<T> value = parsed<T>(text);
  if (!value || !std::isfinite(static_cast<double>(*value)))
    in.fail("'" + text + "'", std::is_same_v<T, std::int64_t> ? "a whole number" : "a finite number");
  return *value;
}

/// The value `name` of the summary `tag`; empty where it is missing or null (nvbench's infinity).
std::optional<JsonReader> summary(const JsonReader& state, const std::string& tag, const std::string& name = "value") {
  if (!state.has("summaries") || state.at("summaries").value().is_null()) return std::nullopt;
  for (const JsonReader& each : state.at("summaries").elements()) {
    if (each.at("tag").string() != tag) continue;
    for (const JsonReader& value : each.at("data").elements())
      if (value.at("name").string() == name && !value.at("value").value().is_null()) return value.at("value");
  }
  return std::nullopt;
}

class NvbenchReader {
 public:
  NvbenchReader(const json& document, fs::path file) : in_(document, file.string()), file_(std::move(file)) {}

  NvbenchResult read() {
    read_version();
    for (const JsonReader& benchmark : in_.at("benchmarks").elements())
      if (const JsonReader states = benchmark.at("states"); !states.value().is_null())
        for (const JsonReader& state : states.elements()) read_state(benchmark.at("name").string(), state);
    if (out_.profile.measurements.empty())
      in_.at("benchmarks")
          .fail(out_.skipped.empty() ? "no state" : "skipped states alone: " + out_.skipped[0].second,
                "at least one that ran");
    read_device();
    return std::move(out_);
  }

 private:
  void read_version() {
    if (!in_.has("meta")) return;  // formats before 1.0 have no version, but the same states
    const JsonReader version = in_.at("meta").at("version");
    if (const JsonReader of_file = version.at("json"); number<std::int64_t>(of_file.at("major")) != 1)
      of_file.at("major").fail(fmt::format("version {}", number<std::int64_t>(of_file.at("major"))), "1");
    if (version.has("nvbench")) out_.profile.fingerprint["nvbench"] = version.at("nvbench").at("string").string();
  }

  void read_state(const std::string& benchmark, const JsonReader& state) {
    Measurement m;
    m.kernel = benchmark, m.pass = "", m.clock = "device";
    if (const JsonReader axes = state.at("axis_values"); !axes.value().is_null())
      for (const JsonReader& axis : axes.elements()) read_axis(axis, m);
    if (state.has("is_skipped") && state.at("is_skipped").boolean()) {
      out_.skipped.emplace_back(m.name(),
                                state.has("skip_reason") ? state.at("skip_reason").string() : "no reason given");
      return;
    }
    if (state.has("device")) {
      const std::int64_t device = number<std::int64_t>(state.at("device"));
      if (device_.value_or(device) != device)
        state.at("device").fail(fmt::format("devices {} and {}", *device_, device),
                                "one device a file; run with --devices 0");
      device_ = device;
    }
    read_times(state, m);
    if (const auto value = summary(state, "nv/cold/time/gpu/stdev/relative"))
      m.counters["relative_stdev"] = number<double>(*value);
    if (const auto value = summary(state, "nv/cold/sm_clock_rate/mean"))
      m.counters["mean_sm_clock_MHz"] = number<double>(*value) * 1e-6;
    if (const auto value = summary(state, "nv/cold/bw/global/bytes_per_second"))
      m.counters["bytes_per_s"] = number<double>(*value);
    for (const Measurement& other : out_.profile.measurements)
      if (other.name() == m.name()) state.fail("a second state of '" + m.name() + "'", "one of each name");
    out_.profile.measurements.push_back(std::move(m));
  }

  static void read_axis(const JsonReader& axis, Measurement& m) {
    const std::string name = axis.at("name").string(), type = axis.at("type").string();
    const JsonReader value = axis.at("value");
    if (type == "int64" && !value.value().is_null())
      if (const std::int64_t size = number<std::int64_t>(value); size >= 0) {
        m.shape[name] = size;
        return;
      }
    m.kernel += "/" + name + "=" + (value.value().is_string() ? value.string() : value.value().dump());
  }

  void read_times(const JsonReader& state, Measurement& m) {
    const auto name = summary(state, "nv/json/bin:nv/cold/sample_times", "filename");
    const auto count =
        summary(state, name ? "nv/json/bin:nv/cold/sample_times" : "nv/cold/sample_size", name ? "size" : "value");
    if (count) m.counters["cold_samples"] = static_cast<double>(number<std::int64_t>(*count));
    if (name) {
      if (!count) name->fail("samples without their number", "the summary's 'size'");
      m.samples = samples(*name, number<std::int64_t>(*count));
      m.evidence = {Evidence::measured, "nvbench, cold, " + file_.string()};
      return;
    }
    const auto mean = summary(state, "nv/cold/time/gpu/mean");
    if (!mean) state.fail("no cold time", "the summary nv/cold/time/gpu/mean; CPU-only and batch times are not read");
    m.samples = {number<double>(*mean)};
    if (m.samples[0] < 0) mean->fail(fmt::format("{}", m.samples[0]), "seconds >= 0");
    m.evidence = {Evidence::measured, fmt::format("nvbench, mean of {} cold samples, {}",
                                                  count ? m.counters["cold_samples"] : 0, file_.string())};
  }

  /// Reads a file of fp32 seconds. Its name is relative to the JSON's folder, in older files to nvbench's working
  /// folder.
  std::vector<double> samples(const JsonReader& name, std::int64_t count) const {
    const fs::path given = name.string();
    std::string bytes;
    std::error_code none;
    for (const fs::path& path : {file_.parent_path() / given, file_.parent_path().parent_path() / given, given})
      if (bytes.empty() && fs::is_regular_file(path, none)) {  // not an endless device such as /dev/zero
        std::ifstream in(path, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(in), {});
      }
    if (count < 1 || bytes.size() != static_cast<std::size_t>(count) * sizeof(float))
      name.fail(
          fmt::format("'{}', of which {} bytes can be read", given.string(), bytes.size()),
          fmt::format("{} samples of 4 bytes in the folder that --jsonbin wrote beside this file; keep them together",
                      count));
    std::vector<double> out;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      float seconds = 0;
      std::memcpy(&seconds, bytes.data() + at, sizeof seconds);
      if (!std::isfinite(seconds) || seconds < 0)
        name.fail(fmt::format("'{}' with a sample of {} s", given.string(), seconds), "seconds >= 0");
      out.push_back(static_cast<double>(seconds));
    }
    return out;
  }

  void read_device() {
    std::map<std::string, std::string>& facts = out_.profile.fingerprint;
    facts["host"] = "asynchronous";
    facts["source"] = "nvbench";
    facts["device"] = "GPU";
    for (const JsonReader& device : in_.at("devices").elements()) {
      if (device_ && number<std::int64_t>(device.at("id")) != *device_) continue;
      facts["device"] = device.at("name").string();
      const auto fact = [&](const char* key, const char* theirs, double scale) {
        if (device.has(theirs)) facts[key] = fmt::format("{:.0f}", number<double>(device.at(theirs)) * scale);
      };
      if (device.has("sm_version")) {
        const std::int64_t version = number<std::int64_t>(device.at("sm_version"));  // 900 means 9.0
        facts["compute_capability"] = fmt::format("{}.{}", version / 100, version % 100 / 10);
      }
      fact("multiprocessors", "number_of_sms", 1);
      fact("device_memory_GiB", "global_memory_size", 1.0 / (1 << 30));
      fact("l2_MiB", "l2_cache_size", 1.0 / (1 << 20));
      fact("default_clock_MHz", "sm_default_clock_rate", 1e-6);
      if (device.has("ecc_state")) facts["ecc"] = device.at("ecc_state").boolean() ? "on" : "off";
      return;
    }
    if (device_) in_.at("devices").fail(fmt::format("no device {}", *device_), "the device that the states ran on");
  }

  const JsonReader in_;
  const fs::path file_;
  NvbenchResult out_;
  std::optional<std::int64_t> device_;
};

}  // namespace

NvbenchResult from_nvbench(const json& document, const fs::path& file) { return NvbenchReader(document, file).read(); }

bool is_nvbench(const json& document) {
  return document.is_object() && document.contains("benchmarks") && document.contains("devices") &&
         document["benchmarks"].is_array() && document["devices"].is_array();
}

}  // namespace wt
