#include "trainer/data/mixture.hpp"

#include <algorithm>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/data/sample_sequence.hpp"

namespace wt {
namespace {

/// Up to four epochs of repeated text are nearly worth new text (Muennighoff et al. 2023, arXiv 2305.16264).
constexpr double kOftenSeen = 4;
/// With a larger loss, another batch or epoch size is advisable.
constexpr double kMuchDropped = 0.01;

/// Samples of each stream in a batch, on average.
std::vector<double> samples_in_batch(const MixedStreams& mix, std::int64_t global_batch, std::int64_t epoch_batches) {
  std::vector<double> out;
  if (mix.dataset->batching_method == BatchingMethod::stratified) {
    for (const std::int64_t portion : stratified_portions(mix, global_batch))
      out.push_back(static_cast<double>(portion));
    return out;
  }
  const double drawn =
      sum_of(mix.shares.streams, [](const StreamShare& share) { return static_cast<double>(share.choose); });
  const bool whole = mix.dataset->batching_method == BatchingMethod::per_stream;
  for (const StreamShare& share : mix.shares.streams) {
    const std::int64_t own = sequence_places(share.choose, mix.num_canonical_nodes) / global_batch;
    out.push_back(static_cast<double>(global_batch) *
                  (whole ? static_cast<double>(own) / static_cast<double>(epoch_batches)
                         : static_cast<double>(share.choose) / drawn));
  }
  return out;
}

MixturePart part_of(const MixedStreams& mix, const std::vector<std::int64_t>& samples,
                    const std::vector<std::optional<std::int64_t>>& tokens, std::int64_t global_batch,
                    std::int64_t batches, const BatchWorld& world) {
  MixturePart part;
  part.batches = batches;
  part.epoch_size = mix.shares.epoch_size;
  part.epoch_batches = batches_of_epoch(mix, global_batch, world);
  part.epoch_dropped = std::max<std::int64_t>(part.epoch_size - part.epoch_batches * global_batch, 0);
  const std::vector<double> in_batch = samples_in_batch(mix, global_batch, part.epoch_batches);
  double all_tokens = 0;
  for (std::size_t i = 0; i < samples.size(); ++i)
    all_tokens += in_batch[i] * static_cast<double>(tokens[i].value_or(0));
  const bool known = std::ranges::all_of(tokens, [](const auto& t) { return t.has_value(); });
  for (std::size_t i = 0; i < samples.size(); ++i) {
    StreamDraw& draw = part.streams.emplace_back();
    draw.name = mix.dataset->streams[i].name;
    draw.samples = samples[i];
    draw.epoch_draws = mix.shares.streams[i].choose;
    draw.run_draws = in_batch[i] * static_cast<double>(batches);
    draw.share = in_batch[i] / static_cast<double>(global_batch);
    if (known && all_tokens > 0) draw.token_share = in_batch[i] * static_cast<double>(*tokens[i]) / all_tokens;
  }
  return part;
}

void warn(const DatasetSpec& dataset, const std::vector<std::vector<std::int64_t>>& shards, Mixture& out) {
  for (std::size_t i = 0; i < out.seen.size(); ++i) {
    const std::string name =
        dataset.streams[i].name.empty() ? "the data set" : "stream '" + dataset.streams[i].name + "'";
    if (out.seen[i] == 0) out.warnings.push_back(name + " is never read: its share is below one sample an epoch");
    if (out.seen[i] > kOftenSeen)
      out.warnings.push_back(fmt::format("{} is read {:.1f} times; beyond {:.0f} times repeated text adds little", name,
                                         out.seen[i], kOftenSeen));
    if (dataset.shuffle && dataset.shuffle_algorithm == ShuffleAlgorithm::py1e) {
      const std::int64_t block = effective_block_size(
          {dataset.shuffle_algorithm, dataset.num_canonical_nodes, 0, 0, dataset.shuffle_block_size.value_or(0)});
      const std::int64_t largest = *std::ranges::max_element(shards[i]);
      if (largest > block)
        out.warnings.push_back(
            fmt::format("{} has a shard of {} samples, more than a shuffle block of {}: it is shuffled by itself alone",
                        name, largest, block));
    }
  }
  for (const MixturePart& part : out.parts)
    if (static_cast<double>(part.epoch_dropped) > kMuchDropped * static_cast<double>(part.epoch_size))
      out.warnings.push_back(fmt::format("{} of {} samples of an epoch fill no batch and are dropped",
                                         part.epoch_dropped, part.epoch_size));
}

}  // namespace

Mixture mixture_of(const DatasetSpec& dataset, const std::vector<std::vector<std::int64_t>>& shards,
                   const std::vector<std::optional<std::int64_t>>& tokens, std::int64_t global_batch,
                   std::int64_t batches, const BatchWorld& world) {
  const auto samples = mapped(shards, [](const auto& sizes) { return sum_of(sizes); });
  Mixture out;
  out.seen.resize(samples.size());
  for (std::size_t i = 0; i <= dataset.curriculum.size(); ++i) {
    const std::int64_t first = i == 0 ? 0 : dataset.curriculum[i - 1].at;
    const std::int64_t end = i < dataset.curriculum.size() ? std::min(dataset.curriculum[i].at, batches) : batches;
    if (first >= end && i > 0) break;
    const std::vector<double> proportions = i == 0 ? std::vector<double>() : dataset.curriculum[i - 1].proportions;
    const MixedStreams mix = {&dataset, shards, epoch_shares(dataset, samples, proportions),
                              dataset.num_canonical_nodes, dataset.shuffle_seed};
    out.parts.push_back(part_of(mix, samples, tokens, global_batch, end - first, world));
    out.parts.back().first = first;
    for (std::size_t s = 0; s < samples.size(); ++s)
      out.seen[s] += out.parts.back().streams[s].run_draws / static_cast<double>(samples[s]);
  }
  warn(dataset, shards, out);
  return out;
}

}  // namespace wt
