#include "trainer/data/sampler.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/data/sample_sequence.hpp"

namespace wt {
namespace {

/// Proportions by index: 0 is the data set's own, others are entries of the curriculum.
std::vector<double> proportions_of(const DatasetSpec& dataset, std::size_t index) {
  if (index > 0) return dataset.curriculum[index - 1].proportions;
  return mapped(dataset.streams, [](const StreamSpec& stream) { return stream.proportion.value_or(0); });
}

}  // namespace

Sampler::Sampler(DatasetSpec dataset, std::vector<std::vector<std::int64_t>> shards, const BatchWorld& world,
                 DataIdentity identity)
    : dataset_(std::move(dataset)), identity_(std::move(identity)), shards_(std::move(shards)) {
  for (const auto& sizes : shards_) {
    samples_.push_back(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    num_samples_ += samples_.back();
  }
  SamplerState state;
  state.num_canonical_nodes = dataset_.num_canonical_nodes;
  state.shuffle_seed = dataset_.shuffle_seed;
  if (dataset_.batching_method == BatchingMethod::device_per_stream) state.world = world;
  state.initial_physical_nodes = world.nodes;
  if (!dataset_.curriculum.empty()) state.mixes.push_back({0, 0, proportions_of(dataset_, 0)});
  restore(state);
}

MixedStreams Sampler::mix(const SamplerState& state) const {
  DatasetSpec shares_by = dataset_;
  shares_by.shuffle_seed = state.shuffle_seed;
  const std::vector<double> none;
  const std::vector<double>& proportions = state.mixes.empty() ? none : state.mixes.back().proportions;
  return {&dataset_, shards_, epoch_shares(shares_by, samples_, proportions), state.num_canonical_nodes,
          state.shuffle_seed};
}

std::int64_t Sampler::batches_drawn(const SamplerState& state, std::int64_t global_batch) const {
  if (global_batch < 1)
    throw_usage("global batch: found {} samples, allowed is at least 1; change global_train_batch_size", global_batch);
  const UsedMix begin = state.mixes.empty() ? UsedMix{} : state.mixes.back();
  const std::int64_t own = state.sample_in_epoch / global_batch;
  if (state.epoch == begin.epoch) return begin.at + own;
  return begin.at + (state.epoch - begin.epoch) * batches_of_epoch(mix(state), global_batch, state.world) + own;
}

std::vector<std::int64_t> Sampler::next_batch(std::int64_t global_batch) {
  const std::int64_t drawn = batches_drawn(state_, global_batch);
  SamplerState next = state_;
  if (!state_.mixes.empty() && state_.mixes.size() <= dataset_.curriculum.size()) {
    const MixChange& change = dataset_.curriculum[state_.mixes.size() - 1];
    if (drawn > change.at)
      throw_usage(
          "curriculum: found a change at batch {}, {} batches are drawn, allowed is a change in the future; give the "
          "run its earlier entries back",
          change.at, drawn);
    if (drawn == change.at) {
      ++next.epoch;
      next.sample_in_epoch = 0;
      next.mixes.push_back({drawn, next.epoch, change.proportions});
    }
  }
  const MixedStreams streams = mix(next);
  const std::int64_t batches = batches_of_epoch(streams, global_batch, next.world);
  const std::int64_t rest =
      dataset_.batching_method == BatchingMethod::random
          ? sequence_places(streams.shares.epoch_size, next.num_canonical_nodes) - next.sample_in_epoch
          : batches * global_batch - next.sample_in_epoch / global_batch * global_batch;
  if (rest < global_batch) {
    ++next.epoch;
    next.sample_in_epoch = 0;
  }
  if (!batches_ || batch_of_them_ != global_batch || next.epoch != state_.epoch) {
    batches_.reset();
    batches_ = epoch_batches(streams, next.epoch, next.sample_in_epoch, global_batch, next.world);
    batch_of_them_ = global_batch;
  }
  std::vector<std::int64_t> out = batches_->next();
  next.sample_in_epoch += global_batch;
  state_ = std::move(next);
  return out;
}

void Sampler::check(const SamplerState& state) const {
  if (const std::string wrong = difference(state.data, identity_); !wrong.empty())
    throw_usage(
        "train_loader.dataset: found other data than the run has read: {}; samples would not continue: put the data "
        "set back, choose another output folder, or set autoresume: false",
        wrong);
  if (state.shuffle_seed > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw_usage("sampler state: shuffle_seed: found {}, allowed is 0 to 2^63 - 1; choose a smaller seed",
                state.shuffle_seed);
  if (state.initial_physical_nodes < 1)
    throw_usage(
        "sampler state: initial_physical_nodes: found {}, allowed is at least 1; use a state that a sampler wrote",
        state.initial_physical_nodes);
  const std::size_t entries = dataset_.curriculum.empty() ? 0 : dataset_.curriculum.size() + 1;
  bool same = state.mixes.size() <= entries && state.mixes.empty() == dataset_.curriculum.empty();
  for (std::size_t i = 0; same && i < state.mixes.size(); ++i)
    same = state.mixes[i].proportions == proportions_of(dataset_, i) &&
           state.mixes[i].at == (i == 0 ? 0 : dataset_.curriculum[i - 1].at);
  if (!same)
    throw_usage(
        "curriculum: found {} entries that differ from the {} that the run has used, allowed are new entries after "
        "them; give the run its earlier entries back",
        entries, state.mixes.size());
  const std::int64_t size = mix(state).shares.epoch_size;
  if (state.num_canonical_nodes < 1 || state.num_canonical_nodes > size)
    throw_usage(
        "sampler: found num_canonical_nodes {} for {} samples, allowed is 1 to the number of samples; use fewer "
        "canonical nodes or more data",
        state.num_canonical_nodes, size);
  // Canonical nodes (and those of each stream, if streams are batched separately) are padded to equal length.
  const auto most = size + static_cast<std::int64_t>(dataset_.streams.size()) * state.num_canonical_nodes *
                               state.world.ranks_per_node;
  if (state.sample_in_epoch < 0 || state.sample_in_epoch > most || state.epoch < 0)
    throw_usage(
        "sampler state: sample_in_epoch: found {} in epoch {}, allowed is 0 to the epoch's {} samples; resume with the "
        "data set of the checkpoint",
        state.sample_in_epoch, state.epoch, size);
}

/// Checks the waiting sequences of packed examples.
void Sampler::check_waiting(const SamplerState& state) const {
  if (!state.waiting.empty() && !dataset_.packs())
    throw_usage(
        "sampler state: found {} sequences of samples that wait for a step, allowed are none in a run that packs no "
        "examples; resume with the packing_ratio of the checkpoint",
        state.waiting.size());
  for (const auto& sequence : state.waiting)
    for (const std::int64_t id : sequence)
      if (id < 0 || id >= num_samples_)
        throw_usage(
            "sampler state: waiting: found sample {}, allowed are 0 to {}; resume with the data set of the checkpoint",
            id, num_samples_ - 1);
}

void Sampler::restore(const SamplerState& state) {
  check(state);
  check_waiting(state);
  state_ = state;
  if (!identity_.empty()) state_.data = identity_;
  batches_.reset();
}

}  // namespace wt
