// Predicts what a mixture of streams draws: samples of each stream in an epoch and in the whole run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/epoch_batches.hpp"

namespace wt {

struct StreamDraw {
  std::string name;
  std::int64_t samples = 0;      ///< of the stream
  std::int64_t epoch_draws = 0;  ///< samples drawn in an epoch, including repeats
  double run_draws = 0;          ///< samples drawn in this part of the run
  double share = 0;              ///< of the part's samples
  std::optional<double> token_share;
};

/// A part of the run with one mix: all of it, or an entry of the curriculum.
struct MixturePart {
  std::int64_t first = 0, batches = 0;  ///< batches drawn before it, and in it
  std::int64_t epoch_size = 0;          ///< samples
  std::int64_t epoch_batches = 0;       ///< complete batches of an epoch
  std::int64_t epoch_dropped = 0;       ///< samples of an epoch beyond these
  std::vector<StreamDraw> streams;
};

struct Mixture {
  std::vector<MixturePart> parts;
  std::vector<double> seen;  ///< by stream: how often each sample is read over the run, on average
  std::vector<std::string> warnings;
};

/// `tokens`: of a sample of each stream, if known. `batches`: of the run. Throws Error{usage} as epoch_shares and
/// batches_of_epoch do.
Mixture mixture_of(const DatasetSpec& dataset, const std::vector<std::vector<std::int64_t>>& shards,
                   const std::vector<std::optional<std::int64_t>>& tokens, std::int64_t global_batch,
                   std::int64_t batches, const BatchWorld& world);

}  // namespace wt
