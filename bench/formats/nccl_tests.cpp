#include "bench/formats/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/formats/nccl_group.hpp"
#include "bench/formats/nccl_run.hpp"
#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::int64_t kLargeMessage = 1 << 20;  // times of smaller messages depend on the host, and vary more
constexpr double kApart = 2;
constexpr double kCoarse = 0.01;  // a time from a bandwidth that is printed less exactly than this is left out

std::string listed(const std::set<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

/// The runs of the test that is read, and its name.
std::string choose(std::vector<NcclRun>& runs, const std::string& wanted, const std::string& origin) {
  std::set<std::string> all;
  for (const NcclRun& run : runs) all.insert(run.tests.begin(), run.tests.end());
  if (wanted.empty() && all.empty())
    refuse_nccl(origin, "no name of a test", "one with a name; say it with --test all_reduce (or another)");
  if (wanted.empty() && all.size() > 1)
    refuse_nccl(origin, "the tests " + listed(all), "one test a file; choose it with --test, or split the file");
  if (wanted.empty()) return *all.begin();
  std::string test = nccl_test_named(wanted, "--test");
  std::erase_if(runs, [&](const NcclRun& run) {
    const std::set<std::string>& names = run.tests.empty() ? all : run.tests;
    return !names.empty() && !names.contains(test);
  });
  if (runs.empty()) refuse_nccl(origin, "the tests " + listed(all), "the test of --test, which is " + test);
  return test;
}

class Merged {
 public:
  Merged(std::string origin, const NcclTestsOptions& options) : origin_(std::move(origin)), options_(options) {}

  NcclTests of(std::vector<NcclRun> runs) {
    if (runs.empty()) refuse_nccl(origin_, "no row with a size above 0", "the tests' table");
    out_.test = choose(runs, options_.test, origin_);
    std::optional<NcclGroup> first;
    for (const NcclRun& run : runs) {
      check_single(run, runs.size());
      const NcclGroup group = group_of(run, out_.test, options_, origin_);
      if (first && (first->ranks != group.ranks || first->hosts != group.hosts || first->members != group.members))
        refuse_nccl(run.rows.front().where,
                    fmt::format("runs over {} and {} GPUs, on {} and {} hosts", first->ranks, group.ranks, first->hosts,
                                group.hosts),
                    "one cluster's ranks and nodes a file; split it");
      if (!first) take(group, run);
      first = group;
      out_.notes.insert(run.notes.begin(), run.notes.end());
      for (const NcclRow& row : run.rows) add(row, run.cpu_time);
    }
    if (coarse_ > 0)
      out_.notes.insert(
          fmt::format("{} rows left out: their bandwidth, which gives the time where -C prints CPU time, has "
                      "too few digits",
                      coarse_));
    if (out_.sizes.empty()) refuse_nccl(origin_, "no row whose time is known", "the tests' table without -C");
    for (auto& [bytes, size] : out_.sizes) size.in_place_s /= counts_.at(bytes);
    return std::move(out_);
  }

 private:
  void check_single(const NcclRun& run, std::size_t runs) const {
    if (run.devices.size() == 1)
      refuse_nccl(run.rows.front().where,
                  runs > 1 ? fmt::format("{} runs of a single rank", runs) : "a run of a single rank", kNcclOneRun);
  }

  void take(const NcclGroup& group, const NcclRun& run) {
    out_.gpu = run.devices.empty() ? options_.gpu : run.devices.front().gpu;
    out_.nccl = run.nccl;
    out_.members = group.members;
    out_.hosts = group.hosts;
    out_.gpus_per_host = group.gpus_per_host;
    out_.groups = group.groups;
  }

  /// Seconds; 0 = they are not known well enough.
  double seconds(const NcclSide& side, const NcclRow& row, bool cpu_time) const {
    const double expected_us = static_cast<double>(row.bytes) * out_.buffer_factor() * 1e-3 / side.algbw_GBps.value;
    if (cpu_time) return side.algbw_GBps.half <= kCoarse * side.algbw_GBps.value ? expected_us * 1e-6 : 0;
    const auto [us, half_us] = side.time_us;
    const double expected = static_cast<double>(row.bytes) * out_.buffer_factor() / us * 1e-3;
    const double rounding = side.algbw_GBps.half + expected * half_us / us;
    if (std::abs(side.algbw_GBps.value - expected) > 0.01 * expected + 2 * rounding)
      refuse_nccl(row.where, fmt::format("algbw {} GB/s where size / time is {:.3g}", side.algbw_GBps.value, expected),
                  "the columns of nccl-tests: time in us, then algbw in GB/s");
    return us * 1e-6;
  }

  void add(const NcclRow& row, bool cpu_time) {
    const double out_s = seconds(row.out_of_place, row, cpu_time), in_s = seconds(row.in_place, row, cpu_time);
    if (out_s == 0 || in_s == 0) {
      ++coarse_;
      return;
    }
    // Runs in one file are merged, so they must come from one machine in one state.
    const auto [known, fresh] = least_and_most_.try_emplace(row.bytes, out_s, out_s);
    auto& [least, most] = known->second;
    least = std::min(least, out_s), most = std::max(most, out_s);
    if (row.bytes >= kLargeMessage && most > kApart * least)
      refuse_nccl(row.where,
                  fmt::format("runs of {:.3g} and {:.3g} us for {} bytes", least * 1e6, most * 1e6, row.bytes),
                  fmt::format("runs within a factor of {} of each other; import each on its own", kApart));
    NcclTests::Size& size = out_.sizes[row.bytes];
    if (row.each_us.empty()) size.out_of_place_s.push_back(out_s);
    for (const double us : row.each_us) size.out_of_place_s.push_back(us * 1e-6);
    size.in_place_s += in_s;
    counts_[row.bytes] += 1;
  }

  const std::string origin_;
  const NcclTestsOptions& options_;
  NcclTests out_;
  std::size_t coarse_ = 0;
  std::map<std::int64_t, double> counts_;  ///< rows of a size
  std::map<std::int64_t, std::pair<double, double>> least_and_most_;
};

}  // namespace

double NcclTests::bus_factor() const { return nccl_bus_factor(test, static_cast<double>(ranks())); }

double NcclTests::buffer_factor() const {
  const auto n = static_cast<double>(ranks());
  return test == "hypercube" ? (n - 1) / n
                             : 1;  // its bandwidth counts what a rank sends, its size what it has at the end
}

std::int64_t NcclTests::nodes(std::int64_t nvlink_domain) const {
  if (nvlink_domain <= gpus_per_host) return hosts;
  std::set<std::int64_t> racks;
  for (const std::int64_t rank : members) racks.insert(rank / nvlink_domain);
  return static_cast<std::int64_t>(racks.size());
}

NcclTests read_nccl_tests(const std::string& text, const std::string& origin, const NcclTestsOptions& options) {
  return Merged(origin, options).of(nccl_runs_of_text(text, origin));
}

NcclTests read_nccl_tests_json(const nlohmann::json& document, const std::string& origin,
                               const NcclTestsOptions& options) {
  NcclRun run = nccl_run_of_json(document, origin);
  std::vector<NcclRun> runs;
  if (!run.rows.empty()) runs.push_back(std::move(run));
  return Merged(origin, options).of(std::move(runs));
}

Profile profile_of(const NcclTests& tests, const std::string& origin, std::int64_t nvlink_domain) {
  const std::int64_t nodes = tests.nodes(nvlink_domain);
  Profile profile;
  profile.fingerprint = {
      {"device", tests.gpu},
      {"host", "asynchronous"},
      {"gpus_per_node", std::to_string(nvlink_domain > tests.gpus_per_host ? nvlink_domain : tests.gpus_per_host)},
      {"source", "nccl-tests " + tests.test + "_perf"}};
  if (!tests.nccl.empty()) profile.fingerprint["nccl"] = tests.nccl;
  for (const auto& [bytes, size] : tests.sizes) {
    Measurement m;
    m.kernel = tests.test, m.pass = "";
    m.shape = {{"bytes", bytes}, {"ranks", tests.ranks()}, {"nodes", nodes}};
    if (tests.groups > 1) m.shape["groups"] = tests.groups;
    m.counters = {{"in_place_s", size.in_place_s}};
    m.samples = size.out_of_place_s;
    m.evidence = {Evidence::measured, "nccl-tests " + tests.test + "_perf, out of place, " + origin};
    profile.measurements.push_back(std::move(m));
  }
  return profile;
}

namespace {

/// Lines of the tests may also begin with a bracket: OpenMPI's label "[1,0]<stdout>:", a host, a time.
bool is_json_document(const std::string& text) {
  const char* const space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos || (text[first] != '{' && text[first] != '[')) return false;
  const std::size_t next = text.find_first_not_of(space, first + 1);
  return text[first] == '{' || next == std::string::npos || std::string("{[\"]").find(text[next]) != std::string::npos;
}

}  // namespace

bool is_nccl_tests(const std::string& text) {
  return text.find("algbw") != std::string::npos && text.find("busbw") != std::string::npos && !is_json_document(text);
}

bool is_nccl_tests_json(const nlohmann::json& document) {
  return document.is_object() && document.contains("nccl_version") && document.contains("config") &&
         document.contains("results");
}

}  // namespace wt
