#include "trainer/data/epoch_batches.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "trainer/data/numpy_random.hpp"
#include "trainer/data/sample_sequence.hpp"

namespace wt {
namespace {

/// All streams, or only one.
std::shared_ptr<const EpochUnits> units_of(const MixedStreams& mix, std::int64_t epoch,
                                           std::optional<std::size_t> stream) {
  std::vector<UnitStream> streams;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < mix.shards.size(); ++i) {
    if (!stream || *stream == i) streams.push_back({first, mix.shards[i], mix.shares.streams[i].choose});
    first = std::accumulate(mix.shards[i].begin(), mix.shards[i].end(), first);
  }
  const DatasetSpec& d = *mix.dataset;
  return std::make_shared<EpochUnits>(
      streams, UnitOptions{d.sampling_method, d.sampling_granularity, mix.shuffle_seed, epoch, d.shuffle});
}

/// For one stream, the block size is reduced in proportion to the stream's share.
ShuffleOptions shuffle_of(const MixedStreams& mix, std::int64_t epoch, std::optional<std::size_t> stream) {
  const DatasetSpec& d = *mix.dataset;
  ShuffleOptions out = {d.shuffle_algorithm, mix.num_canonical_nodes, mix.shuffle_seed, epoch,
                        d.shuffle_block_size.value_or(0)};
  if (!stream || !d.shuffle) return out;
  const double share = mix.shares.streams[*stream].proportion;
  const std::int64_t whole = effective_block_size(out);
  out.block_size = static_cast<std::int64_t>(static_cast<double>(whole) * share);
  const bool blocks = has_blocks(d.shuffle_algorithm) || d.batching_method == BatchingMethod::device_per_stream;
  if (blocks && out.block_size < 1)
    throw_usage(
        "stream '{}': found a share of {} in blocks of {} samples, allowed is at least one sample; raise "
        "shuffle_block_size or its proportion",
        d.streams[*stream].name, share, whole);
  return out;
}

std::vector<std::unique_ptr<NodeReader>> nodes_of(const MixedStreams& mix, std::int64_t epoch,
                                                  std::optional<std::size_t> stream) {
  return read_nodes(units_of(mix, epoch, stream), shuffle_of(mix, epoch, stream), mix.dataset->shuffle);
}

class RandomBatches : public EpochBatches {
 public:
  RandomBatches(const MixedStreams& mix, std::int64_t epoch, std::int64_t place, std::int64_t batch)
      : sequence_(nodes_of(mix, epoch, {})), batch_(batch) {
    sequence_.seek(place);
  }
  std::vector<std::int64_t> next() override {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < batch_; ++i) out.push_back(sequence_.next());
    return out;
  }

 private:
  SampleSequence sequence_;
  std::int64_t batch_;
};

class StratifiedBatches : public EpochBatches {
 public:
  StratifiedBatches(const MixedStreams& mix, std::int64_t epoch, std::int64_t done, std::int64_t batch)
      : portions_(stratified_portions(mix, batch)) {
    for (std::size_t stream = 0; stream < portions_.size(); ++stream) {
      sequences_.emplace_back(nodes_of(mix, epoch, stream));
      sequences_.back().seek(done * portions_[stream]);
    }
  }
  std::vector<std::int64_t> next() override {
    std::vector<std::int64_t> out;
    for (std::size_t stream = 0; stream < portions_.size(); ++stream)
      for (std::int64_t i = 0; i < portions_[stream]; ++i) out.push_back(sequences_[stream].next());
    return out;
  }

 private:
  std::vector<std::int64_t> portions_;
  std::vector<SampleSequence> sequences_;
};

/// The stream of each batch, shuffled.
std::vector<std::uint32_t> shuffled_origins(const std::vector<std::int64_t>& batches, NumpyRandom& random) {
  std::vector<std::uint32_t> origins;
  for (std::size_t stream = 0; stream < batches.size(); ++stream)
    origins.insert(origins.end(), static_cast<std::size_t>(batches[stream]), static_cast<std::uint32_t>(stream));
  random.shuffle(std::span(origins));
  return origins;
}

NumpyRandom origin_random(const MixedStreams& mix, std::int64_t epoch) {
  const bool changes = mix.dataset->shuffle && mix.dataset->sampling_method == SamplingMethod::balanced;
  return NumpyRandom(mix.shuffle_seed + (changes ? static_cast<std::uint64_t>(epoch) : 0));
}

/// Batches of `samples` of each stream; the origins give the stream of the next batch.
template <typename Sequence>
class TakenInTurns {
 public:
  TakenInTurns(std::vector<Sequence> sequences, std::vector<std::uint32_t> origins, std::int64_t samples,
               std::int64_t done)
      : sequences_(std::move(sequences)), origins_(std::move(origins)), samples_(samples), next_(done) {
    std::vector<std::int64_t> used(sequences_.size());
    for (std::int64_t i = 0; i < done; ++i) ++used[origins_[static_cast<std::size_t>(i)]];
    for (std::size_t stream = 0; stream < sequences_.size(); ++stream) sequences_[stream].seek(used[stream] * samples_);
  }
  void append(std::vector<std::int64_t>& out) {
    Sequence& sequence = sequences_[origins_[static_cast<std::size_t>(next_++)]];
    for (std::int64_t i = 0; i < samples_; ++i) out.push_back(sequence.next());
  }

 private:
  std::vector<Sequence> sequences_;
  std::vector<std::uint32_t> origins_;
  std::int64_t samples_, next_;
};

/// Complete batches of `size` in each stream.
std::vector<std::int64_t> batches_of_streams(const MixedStreams& mix, std::int64_t size, const char* what,
                                             const auto& places) {
  std::vector<std::int64_t> out;
  for (const StreamShare& share : mix.shares.streams) {
    const std::int64_t batches = places(share.choose) / size;
    if (share.choose < mix.num_canonical_nodes || batches < 1)
      throw_usage(
          "stream '{}': found {} samples in an epoch, allowed with batching_method {} is at least {} of {} and one a "
          "canonical node ({}); raise its share or epoch_size",
          mix.dataset->streams[out.size()].name, share.choose, to_string(mix.dataset->batching_method), what, size,
          mix.num_canonical_nodes);
    out.push_back(batches);
  }
  return out;
}

std::vector<std::int64_t> global_batches(const MixedStreams& mix, std::int64_t global_batch) {
  return batches_of_streams(mix, global_batch, "a global batch",
                            [&](std::int64_t n) { return sequence_places(n, mix.num_canonical_nodes); });
}

std::int64_t device_batch(std::int64_t global_batch, const BatchWorld& world) {
  const std::int64_t ranks = world.nodes * world.ranks_per_node;
  if (ranks < 1 || global_batch % ranks != 0)
    throw_usage(
        "global batch: found {} samples for {} ranks, allowed is a multiple of the ranks with batching_method "
        "device_per_stream; change global_train_batch_size",
        global_batch, ranks);
  return global_batch / ranks;
}

/// Batches of one physical node.
std::vector<std::int64_t> device_batches(const MixedStreams& mix, std::int64_t global_batch, const BatchWorld& world) {
  const std::int64_t batch = device_batch(global_batch, world), canonical = mix.num_canonical_nodes;
  if (canonical % world.nodes != 0)
    throw_usage(
        "num_canonical_nodes: found {} on {} nodes, allowed is a multiple of the nodes with batching_method "
        "device_per_stream; change num_canonical_nodes",
        canonical, world.nodes);
  return batches_of_streams(mix, batch, "a batch of a rank", [&](std::int64_t n) {
    return ranked_places(ceil_div(n, canonical), canonical / world.nodes, world.ranks_per_node);
  });
}

class PerStreamBatches : public EpochBatches {
 public:
  PerStreamBatches(const MixedStreams& mix, std::int64_t epoch, std::int64_t done, std::int64_t batch)
      : turns_(
            [&] {
              std::vector<SampleSequence> out;
              for (std::size_t stream = 0; stream < mix.shards.size(); ++stream)
                out.emplace_back(nodes_of(mix, epoch, stream));
              return out;
            }(),
            [&] {
              NumpyRandom random = origin_random(mix, epoch);
              return shuffled_origins(global_batches(mix, batch), random);
            }(),
            batch, done) {}
  std::vector<std::int64_t> next() override {
    std::vector<std::int64_t> out;
    turns_.append(out);
    return out;
  }

 private:
  TakenInTurns<SampleSequence> turns_;
};

class DevicePerStreamBatches : public EpochBatches {
 public:
  DevicePerStreamBatches(const MixedStreams& mix, std::int64_t epoch, std::int64_t done, std::int64_t global_batch,
                         const BatchWorld& world)
      : world_(world) {
    const std::vector<std::int64_t> batches = device_batches(mix, global_batch, world);
    const auto own = static_cast<std::size_t>(mix.num_canonical_nodes / world.nodes);
    std::vector<std::vector<std::unique_ptr<NodeReader>>> nodes;
    for (std::size_t stream = 0; stream < mix.shards.size(); ++stream) nodes.push_back(nodes_of(mix, epoch, stream));
    NumpyRandom random = origin_random(mix, epoch);
    for (std::size_t node = 0; node < static_cast<std::size_t>(world.nodes); ++node) {
      std::vector<RankedSequence> sequences;
      for (std::size_t stream = 0; stream < nodes.size(); ++stream) {
        std::vector<std::unique_ptr<NodeReader>> mine;
        for (std::size_t i = node * own; i < (node + 1) * own; ++i) mine.push_back(std::move(nodes[stream][i]));
        sequences.emplace_back(std::move(mine), ceil_div(mix.shares.streams[stream].choose, mix.num_canonical_nodes),
                               world.ranks_per_node);
      }
      turns_.emplace_back(std::move(sequences), shuffled_origins(batches, random), device_batch(global_batch, world),
                          done * world.ranks_per_node);
    }
  }
  /// Streaming's order: one batch of each node in turn, repeated for the ranks of a node.
  std::vector<std::int64_t> next() override {
    std::vector<std::int64_t> out;
    for (std::int64_t rank = 0; rank < world_.ranks_per_node; ++rank)
      for (auto& node : turns_) node.append(out);
    return out;
  }

 private:
  BatchWorld world_;
  std::vector<TakenInTurns<RankedSequence>> turns_;
};

/// Text for errors with packing: the number of sequences behind this number of samples; otherwise "".
std::string drawn_for(const DatasetSpec& data, std::int64_t samples) {
  if (!data.packs()) return "";
  const double ratio = data.finetuning->packing_ratio;
  auto sequences = static_cast<std::int64_t>(static_cast<double>(samples) / ratio);
  while (data.samples_drawn(sequences) < samples) ++sequences;
  return fmt::format(" ({} sequences x packing_ratio {})", sequences, ratio);
}

}  // namespace

std::vector<std::int64_t> stratified_portions(const MixedStreams& mix, std::int64_t global_batch) {
  std::vector<std::int64_t> portions;
  std::vector<std::pair<double, std::size_t>> lost;
  std::int64_t left = global_batch;
  for (const StreamShare& share : mix.shares.streams) {
    const double exact = share.proportion * static_cast<double>(global_batch);
    lost.emplace_back(exact - std::trunc(exact), portions.size());
    portions.push_back(static_cast<std::int64_t>(exact));
    left -= portions.back();
  }
  std::ranges::sort(lost, std::greater<>());  // equal ones: the later stream first, like a reversed sort
  for (std::size_t i = 0; static_cast<std::int64_t>(i) < left && i < lost.size(); ++i) ++portions[lost[i].second];
  for (std::size_t stream = 0; stream < portions.size(); ++stream)
    if (portions[stream] < 1)
      throw_usage(
          "stream '{}': found no sample of it in a stratified batch of {}, allowed is at least one; raise "
          "global_train_batch_size or its proportion",
          mix.dataset->streams[stream].name, global_batch);
  return portions;
}

std::int64_t batches_of_epoch(const MixedStreams& mix, std::int64_t global_batch, const BatchWorld& world) {
  const auto places = [&](std::int64_t samples) { return sequence_places(samples, mix.num_canonical_nodes); };
  std::int64_t batches = 0;
  switch (mix.dataset->batching_method) {
    case BatchingMethod::random:
      batches = places(mix.shares.epoch_size) / global_batch;
      break;
    case BatchingMethod::stratified: {
      const std::vector<std::int64_t> portions = stratified_portions(mix, global_batch);
      for (std::size_t i = 0; i < portions.size(); ++i) {
        const std::int64_t own = places(mix.shares.streams[i].choose) / portions[i];
        batches = i == 0 ? own : std::min(batches, own);
      }
      break;
    }
    case BatchingMethod::per_stream: {
      const std::vector<std::int64_t> all = global_batches(mix, global_batch);
      batches = std::accumulate(all.begin(), all.end(), std::int64_t{0});
      break;
    }
    case BatchingMethod::device_per_stream: {
      const std::vector<std::int64_t> all = device_batches(mix, global_batch, world);
      batches = std::accumulate(all.begin(), all.end(), std::int64_t{0}) / world.ranks_per_node;
      break;
    }
  }
  if (batches < 1)
    throw_usage(
        "global batch: found {} samples{}, allowed is 1 to the {} of an epoch, so that each stream fills its part; "
        "change global_train_batch_size or pack more data",
        global_batch, drawn_for(*mix.dataset, global_batch), mix.shares.epoch_size);
  return batches;
}

std::unique_ptr<EpochBatches> epoch_batches(const MixedStreams& mix, std::int64_t epoch, std::int64_t sample_in_epoch,
                                            std::int64_t global_batch, const BatchWorld& world) {
  const std::int64_t done = sample_in_epoch / global_batch;
  switch (mix.dataset->batching_method) {
    case BatchingMethod::random:
      break;
    case BatchingMethod::stratified:
      return std::make_unique<StratifiedBatches>(mix, epoch, done, global_batch);
    case BatchingMethod::per_stream:
      return std::make_unique<PerStreamBatches>(mix, epoch, done, global_batch);
    case BatchingMethod::device_per_stream:
      return std::make_unique<DevicePerStreamBatches>(mix, epoch, done, global_batch, world);
  }
  return std::make_unique<RandomBatches>(mix, epoch, sample_in_epoch, global_batch);
}

}  // namespace wt
