// The wait for the first batch in a run of MPT-30B's size: 10 streams, 488,894 shards, 2.0e9 samples (MosaicML's
// slides), from shard sizes alone, without data. For each order: seconds to the first batch of an epoch, to a following
// batch, to the first batch in mid-epoch, and peak memory. Usage: streaming_start ALGORITHM whole|proportions [SHARDS
// [CANONICAL_NODES]]
#include <fmt/format.h>
#include <sys/resource.h>

#include <string>
#include <utility>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "trainer/data/sampler.hpp"

namespace wt {
namespace {

/// Samples of 2,048 tokens in a shard of 64 MiB: 2.0e9 / 488,894.
constexpr std::int64_t kShardSamples = 4091;
/// Each stream's share of the shards, and its proportion of an epoch: some are repeated, some sampled in part.
constexpr double kShards[] = {0.42, 0.16, 0.12, 0.10, 0.06, 0.05, 0.04, 0.03, 0.01, 0.01};
constexpr double kProportions[] = {0.33, 0.30, 0.10, 0.085, 0.05, 0.045, 0.03, 0.03, 0.015, 0.015};
constexpr std::int64_t kBatch = 1024;

struct Lap {
  double wall_s = steady_s(), cpu_s = thread_cpu_s();
  /// Time since the last call.
  Lap passed() {
    const Lap now, before = std::exchange(*this, now);
    return {now.wall_s - before.wall_s, now.cpu_s - before.cpu_s};
  }
};

void start(const std::string& algorithm, bool proportions, std::int64_t shards, std::int64_t nodes) {
  DatasetSpec dataset;
  dataset.num_canonical_nodes = nodes;
  if (algorithm == "none")
    dataset.shuffle = false;
  else
    dataset.shuffle_algorithm = shuffle_algorithm_from_string(algorithm);
  std::vector<std::vector<std::int64_t>> sizes;
  for (std::size_t i = 0; i < std::size(kShards); ++i) {
    StreamSpec& stream = dataset.streams.emplace_back();
    stream.local = stream.name = fmt::format("s{}", i);
    if (proportions) stream.proportion = kProportions[i];
    sizes.emplace_back(static_cast<std::size_t>(kShards[i] * static_cast<double>(shards)), kShardSamples);
    sizes.back().back() = 1000;  // the last shard of a stream is smaller
  }
  Lap lap;
  Sampler sampler(dataset, sizes);
  sampler.next_batch(kBatch);
  const Lap first = lap.passed();
  for (int i = 0; i < 1000; ++i) sampler.next_batch(kBatch);
  const Lap thousand = lap.passed();
  SamplerState state = sampler.state();
  state.epoch = 1;
  state.sample_in_epoch = sampler.epoch_size() / 2 / kBatch * kBatch;
  sampler.restore(state);
  sampler.next_batch(kBatch);
  const Lap resumed = lap.passed();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  fmt::print(
      "{:<6} {:<12} {:>7} shards {:>11} samples {:>4} canonical nodes: first batch {:6.2f} s ({:.2f} s of CPU), next "
      "{:.3f} ms of CPU, resumed {:6.2f} s ({:.2f} s of CPU), {:5.2f} GB\n",
      algorithm, proportions ? "proportions" : "whole", shards, sampler.epoch_size(), nodes, first.wall_s, first.cpu_s,
      thousand.cpu_s, resumed.wall_s, resumed.cpu_s, static_cast<double>(used.ru_maxrss) * 1024 / 1e9);
}

}  // namespace
}  // namespace wt

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    wt::start(argv[1], std::string(argv[2]) == "proportions", argc > 3 ? std::stoll(argv[3]) : 488'894,
              argc > 4 ? std::stoll(argv[4]) : 1);
  } catch (const wt::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
