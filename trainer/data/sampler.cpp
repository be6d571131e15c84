#include "trainer/data/sampler.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "configs/spec/support/error.hpp"
#include "trainer/data/sample_order.hpp"

namespace wt {
namespace {

constexpr const char* kKeys = "epoch, initial_physical_nodes, num_canonical_nodes, sample_in_epoch, shuffle_seed";

std::int64_t whole_number(const nlohmann::json& document, const std::string& origin, const char* key,
                          std::int64_t least) {
  const auto found = document.find(key);
  if (found == document.end()) {
    throw_error(Code::usage, "{}: found no key {}, allowed are exactly the keys {}; use a state that a sampler wrote",
                origin, key, kKeys);
  }
  const bool fits =
      found->is_number_integer() &&
      !(found->is_number_unsigned() &&
        found->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || found->get<std::int64_t>() < least) {
    throw_error(
        Code::usage,
        "{}: {}: found {}, allowed are whole numbers of at least {} below 2^63; use a state that a sampler wrote",
        origin, key, found->dump(), least);
  }
  return found->get<std::int64_t>();
}

}  // namespace

nlohmann::json to_json(const SamplerState& state) {
  return {{"epoch", state.epoch},
          {"sample_in_epoch", state.sample_in_epoch},
          {"num_canonical_nodes", state.num_canonical_nodes},
          {"shuffle_seed", state.shuffle_seed},
          {"initial_physical_nodes", state.initial_physical_nodes}};
}

SamplerState sampler_state_from_json(const nlohmann::json& document, const std::string& origin) {
  if (!document.is_object() || document.size() > 5) {
    throw_error(Code::usage,
                "{}: found {}, allowed is an object with exactly the keys {}; use a state that a sampler wrote", origin,
                document.is_object() ? "more than five keys" : document.type_name(), kKeys);
  }
  SamplerState state;
  state.epoch = whole_number(document, origin, "epoch", 0);
  state.sample_in_epoch = whole_number(document, origin, "sample_in_epoch", 0);
  state.num_canonical_nodes = whole_number(document, origin, "num_canonical_nodes", 1);
  state.shuffle_seed = static_cast<std::uint64_t>(whole_number(document, origin, "shuffle_seed", 0));
  state.initial_physical_nodes = whole_number(document, origin, "initial_physical_nodes", 1);
  return state;
}

Sampler::Sampler(std::vector<std::int64_t> shard_sizes, const SamplerOptions& options)
    : shard_sizes_(std::move(shard_sizes)),
      algorithm_(options.algorithm),
      block_size_(options.block_size),
      num_samples_(std::accumulate(shard_sizes_.begin(), shard_sizes_.end(), std::int64_t{0})) {
  restore({0, 0, options.num_canonical_nodes, options.shuffle_seed, options.initial_physical_nodes});
}

ShuffleOptions Sampler::shuffle_options(const SamplerState& state) const {
  return {algorithm_, state.num_canonical_nodes, state.shuffle_seed, state.epoch, block_size_};
}

std::vector<std::int64_t> Sampler::next_batch(std::int64_t global_batch) {
  if (global_batch < 1 || global_batch > num_samples_) {
    throw_error(Code::usage,
                "global batch: found {} samples, allowed is 1 to the dataset's {}; change global_train_batch_size or "
                "pack more data",
                global_batch, num_samples_);
  }
  if (global_batch > num_samples_ - state_.sample_in_epoch) {
    SamplerState next = state_;
    ++next.epoch;
    next.sample_in_epoch = 0;
    restore(next);
  }
  const auto begin = order_.begin() + state_.sample_in_epoch;
  state_.sample_in_epoch += global_batch;
  return {begin, begin + global_batch};
}

void Sampler::restore(const SamplerState& state) {
  if (state.sample_in_epoch < 0 || state.sample_in_epoch > num_samples_) {
    throw_error(Code::usage,
                "sampler state: sample_in_epoch: found {}, allowed is 0 to the dataset's {} samples; resume with the "
                "dataset of the checkpoint",
                state.sample_in_epoch, num_samples_);
  }
  if (state.shuffle_seed > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw_error(Code::usage, "sampler state: shuffle_seed: found {}, allowed is 0 to 2^63 - 1; choose a smaller seed",
                state.shuffle_seed);
  }
  if (state.initial_physical_nodes < 1) {
    throw_error(
        Code::usage,
        "sampler state: initial_physical_nodes: found {}, allowed is at least 1; use a state that a sampler wrote",
        state.initial_physical_nodes);
  }
  order_ = epoch_order(shard_sizes_, shuffle_options(state));
  state_ = state;
}

}  // namespace wt
