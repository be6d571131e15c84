#include "bench/formats/google_benchmark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/json_reader.hpp"
#include "configs/base/parsed.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {
namespace {

using nlohmann::json;

double seconds_per(const JsonReader& unit) {
  static const std::map<std::string, double> seconds = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
  const auto found = seconds.find(unit.string());
  if (found == seconds.end()) unit.fail("'" + unit.string() + "'", "ns, us, ms, s");
  return found->second;
}

bool is_library_suffix(const std::string& part) {
  static const std::set<std::string> whole = {"real_time", "process_time", "manual_time"};
  static const std::array<const char*, 4> prefixes = {"min_time:", "min_warmup_time:", "iterations:", "repeats:"};
  return whole.count(part) > 0 || std::ranges::any_of(prefixes, [&](const char* p) { return part.rfind(p, 0) == 0; });
}

// "BM_gemm/m:512/64/manual_time" -> kernel "BM_gemm/64", shape m=512, clock "device".
void read_name(const std::string& run_name, GoogleBenchmarkClock clock, Measurement& m) {
  m.kernel.clear();
  if (clock == GoogleBenchmarkClock::cpu) m.clock = "thread_cpu";
  std::size_t start = 0;
  while (start <= run_name.size()) {
    const std::size_t end = std::min(run_name.find('/', start), run_name.size());
    const std::string part = run_name.substr(start, end - start);
    start = end + 1;
    if (part == "manual_time" && clock == GoogleBenchmarkClock::real) m.clock = "device";
    if (is_library_suffix(part)) continue;
    const std::size_t colon = part.find(':');
    if (colon != std::string::npos && colon > 0)
      if (const auto size = parsed<std::int64_t>(part.substr(colon + 1));
          size && *size >= 0 && m.shape.emplace(part.substr(0, colon), *size).second)
        continue;
    m.kernel += (m.kernel.empty() ? "" : "/") + part;
  }
}

bool is_counter(const std::string& key, const json& value) {
  static const std::set<std::string> own = {"family_index",
                                            "per_family_instance_index",
                                            "repetitions",
                                            "repetition_index",
                                            "threads",
                                            "iterations",
                                            "real_time",
                                            "cpu_time",
                                            "allocs_per_iter",
                                            "max_bytes_used",
                                            "total_allocated_bytes",
                                            "net_heap_growth"};
  return value.is_number() && own.count(key) == 0;
}

bool is_set(const JsonReader& row, const char* key) { return row.has(key) && row.at(key).value() != false; }

/// "L1 Data 32768 B, ...": the sizes, without values that change from run to run.
std::string caches(const JsonReader& list) {
  std::string out;
  for (const JsonReader& cache : list.elements())
    out += fmt::format("{}L{} {} {} B", out.empty() ? "" : ", ", cache.at("level").integer(), cache.at("type").string(),
                       cache.at("size").integer());
  return out;
}

Fingerprint read_context(const JsonReader& context) {
  Fingerprint facts;
  // Facts of the library's build, which say nothing about the measured machine.
  static const std::set<std::string> left_out = {"library_build_type", "library_version", "executable"};
  for (const auto& [key, value] : context.items()) {
    if (left_out.count(key)) continue;
    if (key == "host_name")
      facts["host"] = value.string();
    else if (key == "num_cpus")
      facts["cores"] = std::to_string(value.integer());
    else if (key == "cpu_scaling_enabled")
      facts["cpu_scaling"] = value.boolean() ? "on" : "off";
    else if (key == "caches" && !value.elements().empty())
      facts[key] = caches(value);
    else if (value.value().is_string())
      facts[key] = value.string();
  }
  return facts;
}

}  // namespace

bool is_google_benchmark(const json& document) {
  return document.is_object() && document.contains("benchmarks") && document.contains("context");
}

std::map<std::string, std::string> google_benchmark_names(const json& document, const std::string& origin,
                                                          GoogleBenchmarkClock clock) {
  std::map<std::string, std::string> names;
  for (const JsonReader& row : JsonReader(document, origin).at("benchmarks").elements()) {
    if (row.has("run_type") && row.at("run_type").string() != "iteration") continue;
    const std::string run_name = row.at(row.has("run_name") ? "run_name" : "name").string();
    Measurement m;
    m.pass = "";
    read_name(run_name, clock, m);
    names[m.name()] = run_name;
  }
  return names;
}

Profile from_google_benchmark(const json& document, const std::string& origin, GoogleBenchmarkClock clock) {
  const JsonReader in(document, origin);
  Profile profile;
  profile.fingerprint = read_context(in.at("context"));
  std::map<std::string, std::size_t> place;      // run_name -> index of the measurement
  std::map<std::string, std::string> full_name;  // measurement's name -> run_name
  std::map<std::string, std::string> failures;   // measurement's name -> error
  for (const JsonReader& row : in.at("benchmarks").elements()) {
    if (row.has("run_type") && row.at("run_type").string() != "iteration") continue;
    if (is_set(row, "skipped")) continue;
    const std::string run_name = row.at(row.has("run_name") ? "run_name" : "name").string();
    Measurement sample;
    sample.pass = "";
    sample.evidence = {Evidence::measured, "Google Benchmark, " + origin};
    read_name(run_name, clock, sample);
    if (is_set(row, "error_occurred")) {
      failures[sample.name()] = row.has("error_message") ? row.at("error_message").string() : "it gives no reason";
      continue;
    }
    const double unit_s = seconds_per(row.at("time_unit"));
    const double real_s = row.at("real_time").non_negative() * unit_s,
                 cpu_s = row.at("cpu_time").non_negative() * unit_s;
    sample.samples = {clock == GoogleBenchmarkClock::cpu ? cpu_s : real_s};
    sample.counters["cpu_s"] = cpu_s;
    for (const auto& [key, value] : row.items())
      if (is_counter(key, value.value())) sample.counters[key] = value.finite();

    const auto [found, is_new] = place.emplace(run_name, profile.measurements.size());
    if (is_new) {
      const auto [other, unique] = full_name.emplace(sample.name(), run_name);
      if (!unique)
        row.fail("'" + run_name + "', which reads as the same measurement as '" + other->second + "'",
                 "names that differ in more than the library's suffixes; rename one benchmark");
      profile.measurements.push_back(std::move(sample));
      continue;
    }
    Measurement& m = profile.measurements[found->second];
    const double n = static_cast<double>(m.samples.size());
    for (const auto& [key, value] : sample.counters) {
      const auto [counter, fresh] = m.counters.emplace(key, value);
      if (!fresh) counter->second = (n * counter->second + value) / (n + 1);
    }
    m.samples.push_back(sample.samples[0]);
  }
  for (const auto& [name, error] : failures) profile.failures.push_back({name, error});
  std::erase_if(profile.measurements, [&](const Measurement& m) { return failures.count(m.name()) > 0; });
  if (profile.measurements.empty() && failures.empty())
    in.at("benchmarks")
        .fail("no iteration rows that ran", "at least one; do not run with --benchmark_report_aggregates_only");
  return profile;
}

}  // namespace wt
