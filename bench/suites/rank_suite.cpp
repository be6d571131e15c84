#include "bench/suites/rank_suite.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {

RankRows::RankRows(std::filesystem::path file, std::filesystem::path folder)
    : file_(std::move(file)), folder_(std::move(folder)), profile_(read_profile(file_)) {
  for (const Measurement& m : profile_.measurements) names_.insert(m.name());
}

void RankRows::add(const Profile& rows) {
  if (rows.measurements.empty() && rows.failures.empty()) return;
  profile_.measurements.insert(profile_.measurements.end(), rows.measurements.begin(), rows.measurements.end());
  profile_.failures.insert(profile_.failures.end(), rows.failures.begin(), rows.failures.end());
  for (const Measurement& m : rows.measurements) names_.insert(m.name());
  const auto written = folder_ / "rows.json";
  write_profile(profile_, written);
  std::filesystem::rename(written, file_);
}

std::vector<std::size_t> sample_order(std::size_t cases, int samples, std::uint64_t seed) {
  std::vector<std::size_t> out, round(cases);
  std::iota(round.begin(), round.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  for (int s = 0; s < samples; ++s) {
    std::shuffle(round.begin(), round.end(), random);
    out.insert(out.end(), round.begin(), round.end());
  }
  return out;
}

std::vector<std::vector<RankCase>> gather_cases(const RankSuite& suite, const std::string& key,
                                                const std::vector<RankCase>& own) {
  using nlohmann::json;
  json mine = json::array();
  for (const RankCase& c : own) {
    json row = {{"error", c.error},
                {"samples", json::array()},
                {"throttled", c.device.throttled},
                {"min_clock_MHz", c.device.min_clock_MHz}};
    for (const RankSample& s : c.samples) row["samples"].push_back({s.wall_s, s.process_cpu_s, s.thread_cpu_s});
    mine.push_back(row);
  }
  const auto key_of = [&](std::int64_t rank) { return fmt::format("bench/{}/{}", key, rank); };
  SharedStore& store = suite.communicators.store();
  store.set(key_of(suite.communicators.rank()), mine.dump());
  if (suite.communicators.rank() != 0) return {};
  std::vector<std::vector<RankCase>> out(own.size());
  for (std::int64_t rank = 0; rank < suite.mesh.world(); ++rank) {
    const json theirs = json::parse(store.get(key_of(rank)));
    for (std::size_t c = 0; c < own.size(); ++c) {
      RankCase& row = out[c].emplace_back();
      row.error = theirs.at(c).at("error");
      row.device = {theirs.at(c).at("throttled").get<std::vector<std::string>>(),
                    theirs.at(c).at("min_clock_MHz").get<double>()};
      for (const json& s : theirs.at(c).at("samples")) row.samples.push_back({s[0], s[1], s[2]});
    }
  }
  return out;
}

Measurement rank_row(const std::string& kernel, std::int64_t bytes, std::int64_t ranks) {
  Measurement m;
  m.kernel = kernel;
  m.pass = "";
  m.dtype = "fp32";
  m.shape = {{"bytes", bytes}, {"ranks", ranks}};
  m.clock = "wall";
  return m;
}

Measurement rank_measurement(Measurement m, const std::vector<RankCase>& by_rank) {
  Measurement process, thread;  // CPU seconds, means over the ranks
  std::set<std::string> throttled;
  double clock_MHz = 0;
  for (const RankCase& rank : by_rank) {
    throttled.insert(rank.device.throttled.begin(), rank.device.throttled.end());
    if (rank.device.min_clock_MHz > 0)
      clock_MHz = clock_MHz > 0 ? std::min(clock_MHz, rank.device.min_clock_MHz) : rank.device.min_clock_MHz;
  }
  m.throttled.assign(throttled.begin(), throttled.end());
  for (std::size_t i = 0; i < by_rank.front().samples.size(); ++i) {
    double longest = 0, process_s = 0, thread_s = 0;
    for (const auto& [samples, error, device] : by_rank) {
      longest = std::max(longest, samples[i].wall_s);
      process_s += samples[i].process_cpu_s / static_cast<double>(by_rank.size());
      thread_s += samples[i].thread_cpu_s / static_cast<double>(by_rank.size());
    }
    m.samples.push_back(longest);
    process.samples.push_back(process_s);
    thread.samples.push_back(thread_s);
  }
  // The result was compared bit for bit before every sample; a wrong one makes the row a failure.
  if (m.samples.empty()) return m;
  m.counters = {{"cpu_s", process.median()}, {"issuing_thread_cpu_s", thread.median()}, {"max_rel_error", 0}};
  if (clock_MHz > 0) m.counters["min_sm_clock_MHz"] = clock_MHz;
  m.evidence = {Evidence::measured, fmt::format("{} samples, longest of {} rank(s)", m.samples.size(), by_rank.size())};
  return m;
}

void add_row(Profile& profile, Measurement m, const std::vector<RankCase>& by_rank) {
  for (const RankCase& c : by_rank)
    if (!c.error.empty()) return profile.failures.push_back({m.name(), c.error});
  profile.measurements.push_back(std::move(m));
}

void bench_as_rank(const std::string& suite, const RankSuiteOptions& options, const std::filesystem::path& file) {
  const RankEnvironment environment = RankEnvironment::read();
  const auto clock = make_step_clock(open_device(options.device, environment.local_rank));
  at::set_num_threads(1);
  run_watched(environment, 120, [&](RankWatch& watch) {
    RankRows rows(file, options.folder);  // all ranks read it before rank 0 writes
    // Gathers and sums use axis `shard`, exchanges `expert`, which has the same ranks.
    const std::int64_t shard = environment.world / options.replicate;
    const Mesh mesh(options.replicate, shard, shard);
    const auto communicators = make_communicators(environment, mesh, watch, *clock);
    const RankSuite ranks{*communicators, mesh, *clock, options};
    const auto bench = suite == "storage"    ? bench_storage
                       : suite == "overlap"  ? bench_overlap
                       : suite == "crowding" ? bench_crowding
                                             : bench_collectives;
    bench(ranks, rows);
    communicators->barrier();
  });
}

}  // namespace wt
