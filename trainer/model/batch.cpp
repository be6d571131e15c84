#include "trainer/model/batch.hpp"

#include <random>

#include "configs/base/error.hpp"
#include "kernels/kernels.h"
#include "trainer/pch.hpp"

namespace wt {

bool is_last_target_missing(const TokenSamples& data, const RunSpec& run) {
  const auto tokens = static_cast<std::int64_t>(data.tokens(0).size());
  if (tokens < run.seq)
    throw_usage(
        "{}: its first sample has {} tokens, max_seq_len {} needs {}, or {} without a target for the last; pack with "
        "--seq-len {}",
        run.dataset.folder().string(), tokens, run.seq, run.seq + 1, run.seq, run.seq);
  return tokens == run.seq;
}

std::int64_t targets_in(const Microbatch& batch) {
  return batch.targets.select(0, 0).ne(std::int64_t{WT_IGNORED_TARGET}).sum().item<std::int64_t>();
}

Microbatch load_microbatch(const TokenSamples& data, const RunSpec& run, std::span<const std::int64_t> samples,
                           std::span<const std::int64_t> positions, bool last_target_missing) {
  const std::int64_t seq = run.seq, n = static_cast<std::int64_t>(samples.size()),
                     own = static_cast<std::int64_t>(positions.size());
  const std::int64_t depths = 1 + run.model.mtp_layers, last = last_target_missing ? seq - 1 : seq;
  Microbatch batch{at::empty({n * own}, at::kLong), at::empty({depths, n * own}, at::kLong), {}};
  for (std::int64_t i = 0; i < n; ++i) {
    if (samples[static_cast<std::size_t>(i)] == kNoSample) {
      batch.tokens.narrow(0, i * own, own).zero_();
      batch.targets.narrow(1, i * own, own).fill_(std::int64_t{WT_IGNORED_TARGET});
      continue;
    }
    const auto tokens = data.tokens(samples[static_cast<std::size_t>(i)]);
    if (static_cast<std::int64_t>(tokens.size()) <= last)
      throw_usage(
          "{}: sample {} has {} tokens, max_seq_len {} needs {}, as the first sample has; pack with --seq-len {}",
          run.dataset.folder().string(), samples[static_cast<std::size_t>(i)], tokens.size(), seq, last + 1, seq);
    for (std::int64_t t = 0; t <= last; ++t) {
      const std::int64_t token = tokens[static_cast<std::size_t>(t)];
      if (token < 0 || token >= run.model.vocab)
        throw_usage("{}: token {} in sample {}, the model's vocab_size is {}", run.dataset.folder().string(), token,
                    samples[static_cast<std::size_t>(i)], run.model.vocab);
    }
    for (std::int64_t j = 0; j < own; ++j) {
      const std::int64_t t = positions[static_cast<std::size_t>(j)], at = i * own + j;
      const auto token = [&](std::int64_t place) {
        return place <= last ? static_cast<std::int64_t>(tokens[static_cast<std::size_t>(place)])
                             : std::int64_t{WT_IGNORED_TARGET};
      };
      batch.tokens.data_ptr<std::int64_t>()[at] = token(t);
      for (std::int64_t k = 0; k < depths; ++k)
        batch.targets.data_ptr<std::int64_t>()[k * n * own + at] = token(t + 1 + k);
    }
  }
  return batch;
}

Microbatch random_microbatch(const RunSpec& run, const RankWork& work, std::int64_t step, int microbatch) {
  std::seed_seq seed{run.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(microbatch)};
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<std::int64_t> token(0, run.model.vocab - 1);
  const std::int64_t n = work.sequences.of(microbatch) * run.seq / run.layout.context;
  Microbatch batch{at::empty({n}, at::kLong), at::empty({1 + run.model.mtp_layers, n}, at::kLong), {}};
  for (at::Tensor* one : {&batch.tokens, &batch.targets})
    for (std::int64_t i = 0; i < one->numel(); ++i) one->data_ptr<std::int64_t>()[i] = token(generator);
  return batch;
}

}  // namespace wt
