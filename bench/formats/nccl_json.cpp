// The JSON file of nccl-tests' flag -J (2.17.6 and later; file versions 1 to 3).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/formats/nccl_run.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/lax_json.hpp"

namespace wt {
namespace {

constexpr double kHalfDigit = 5e-7;           // printf's %lf
constexpr std::int64_t kMostRanks = 1 << 20;  // more than any cluster has

std::int64_t count(const JsonReader& object, const char* key, std::int64_t most = kMostRanks) {
  const JsonReader value = object.at(key);
  const std::int64_t out = value.integer();
  if (out < 0 || out > most) value.fail(std::to_string(out), fmt::format("0 to {}", most));
  return out;
}

double positive(const JsonReader& value) {
  const double out = value.finite();
  if (!(out > 0)) value.fail(fmt::format("{}", out), "above 0");
  return out;
}

/// The file lists every rank, or only the first of each process, whose other ranks are on the same host.
void read_devices(const JsonReader& config, const std::string& origin, NcclRun& run) {
  const std::vector<JsonReader> list = config.at("devices").elements();
  if (list.empty()) return;
  const std::int64_t each = count(config, "nthreads") * count(config, "ngpus");
  const bool first_ones = each > 1 && (list.size() == 1 || count(list[1], "rank") == each);
  if (const double ranks = static_cast<double>(list.size()) * static_cast<double>(each); ranks > kMostRanks)
    config.fail(fmt::format("{} ranks", ranks), fmt::format("at most {}", kMostRanks));
  NcclDeviceList devices;
  for (const JsonReader& entry : list)
    for (std::int64_t k = 0; k < (first_ones ? each : 1); ++k)
      devices.add(run,
                  {.rank = count(entry, "rank") + k,
                   .group = count(entry, "group"),
                   .host = entry.at("hostname").string(),
                   .gpu = entry.at("device_info").string()},
                  std::to_string(count(entry, "device") + k), k == 0 ? text_at(entry.value(), "device_hex") : "",
                  origin + ": /config/devices");
}

NcclSide read_side(const JsonReader& side, const std::string& where, bool& cpu_time) {
  cpu_time = side.has("cpu_time");
  const auto number = [](double value) { return PrintedNumber{value, kHalfDigit}; };
  const NcclSide out{number(positive(side.at(cpu_time ? "cpu_time" : "time"))), number(side.at("alg_bw").finite()),
                     number(side.at("bus_bw").finite())};
  if (const nlohmann::json& wrong = side.at("nwrong").value(); !wrong.is_null())
    check_nccl_results(wrong.dump(), where);
  return out;
}

}  // namespace

NcclRun nccl_run_of_json(const nlohmann::json& document, const std::string& origin) {
  const JsonReader file(document, origin);
  NcclRun run;
  if (file.has("args"))
    if (const auto args = file.at("args").strings(); !args.empty())
      run.tests = nccl_test_names(args.front().substr(0, 1024));
  if (file.has("nccl_version")) run.nccl = nccl_version(count(file, "nccl_version"));
  if (file.has("out_of_bounds") && text_at(file.at("out_of_bounds").value(), "okay") == "false")
    check_nccl_results("more than 0", origin + ": /out_of_bounds");
  if (const JsonReader config = file.at("config"); config.has("devices")) read_devices(config, origin, run);
  const std::vector<JsonReader> results = file.at("results").elements();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const JsonReader& result = results[i];
    const std::string where = fmt::format("{}: /results/{}", origin, i);
    NcclRow row{.where = where, .bytes = count(result, "size", std::int64_t{1} << 50)};
    if (run.tests.empty())
      run.tests = nccl_test_names(text_at(result.value(), "experiment_name").substr(0, 64) + "_perf");
    // The file of a test that was ended has a last row without its results.
    if (!result.has("in_place") || result.at("out_of_place").value().is_null()) {
      run.notes.insert(fmt::format("the row of {} bytes has no result and is left out", row.bytes));
      continue;
    }
    if (row.bytes == 0) continue;
    row.out_of_place = read_side(result.at("out_of_place"), where, run.cpu_time);
    row.in_place = read_side(result.at("in_place"), where, run.cpu_time);
    if (result.has("out_of_place_per_iter")) {
      const JsonReader iterations = result.at("out_of_place_per_iter");
      std::vector<JsonReader> times = iterations.at("times_us").elements();
      times.erase(times.begin(),
                  times.begin() + std::min<std::ptrdiff_t>(std::ssize(times), count(iterations, "skipped_iterations")));
      for (const JsonReader& time : times) row.each_us.push_back(positive(time));
    }
    run.rows.push_back(std::move(row));
  }
  return run;
}

}  // namespace wt
