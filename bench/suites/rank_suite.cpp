#include "bench/suites/rank_suite.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "configs/spec/error.hpp"
#include "sim/program/mesh.hpp"
#include "trainer/pch.hpp"

namespace wt {

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

std::vector<std::vector<std::vector<RankSample>>> gather_samples(Communicators& communicators, std::int64_t world,
                                                                 const std::string& key,
                                                                 const std::vector<std::vector<RankSample>>& own) {
  using nlohmann::json;
  json mine = json::array();
  for (const auto& samples : own) {
    json row = json::array();
    for (const RankSample& s : samples) row.push_back({s.wall_s, s.process_cpu_s, s.thread_cpu_s});
    mine.push_back(row);
  }
  communicators.store().set(fmt::format("bench/{}/{}", key, communicators.rank()), mine.dump());
  if (communicators.rank() != 0) return {};
  std::vector<std::vector<std::vector<RankSample>>> out(
      own.size(), std::vector<std::vector<RankSample>>(static_cast<std::size_t>(world)));
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const json theirs = json::parse(communicators.store().get(fmt::format("bench/{}/{}", key, rank)));
    for (std::size_t c = 0; c < own.size(); ++c)
      for (const json& s : theirs.at(c)) out[c][static_cast<std::size_t>(rank)].push_back({s[0], s[1], s[2]});
  }
  return out;
}

Measurement rank_measurement(const std::string& kernel, std::int64_t bytes, std::int64_t world,
                             const std::vector<std::vector<RankSample>>& by_rank) {
  Measurement m;
  m.kernel = kernel;
  m.pass = "";
  m.dtype = "fp32";
  m.shape = {{"bytes", bytes}, {"ranks", world}};
  m.clock = "wall";
  Measurement process, thread;  // means over the ranks
  for (std::size_t i = 0; i < by_rank.front().size(); ++i) {
    double longest = 0, process_s = 0, thread_s = 0;
    for (const auto& samples : by_rank) {
      longest = std::max(longest, samples[i].wall_s);
      process_s += samples[i].process_cpu_s / static_cast<double>(world);
      thread_s += samples[i].thread_cpu_s / static_cast<double>(world);
    }
    m.samples.push_back(longest);
    process.samples.push_back(process_s);
    thread.samples.push_back(thread_s);
  }
  // Every sample's result was compared bit for bit, else there is none.
  m.counters = {{"cpu_s", process.median()}, {"issuing_thread_cpu_s", thread.median()}, {"max_rel_error", 0}};
  m.evidence = {Evidence::measured, fmt::format("{} samples, longest of {} rank(s)", m.samples.size(), world)};
  return m;
}

void bench_as_rank(const std::string& suite, const RankSuiteOptions& options, const std::filesystem::path& output) {
  const RankEnvironment environment = RankEnvironment::read();
  at::set_num_threads(1);
  run_watched(environment, 120, [&](RankWatch& watch) {
    // One axis over all ranks for every kind: `shard` for gathers and sums, `expert` for the exchange.
    const auto communicators = make_gloo_communicators(environment, Mesh(1, environment.world, environment.world), watch);
    Profile profile;
    profile.measurements = suite == "storage" ? bench_storage(*communicators, environment.world, options)
                                              : bench_collectives(*communicators, environment.world, options);
    if (environment.rank == 0) write_profile(profile, output);
    communicators->barrier();
  });
}

}  // namespace wt
