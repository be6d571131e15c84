// The parts of the translator for LLM Foundry 0.22.0.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configs/files/duration.hpp"
#include "planner/recipes/translator.hpp"

namespace wt {

/// Converts lengths in a recipe to batches. An epoch of a data set that is not available counts as one batch, which is
/// listed as an assumption. Needs the run's batch, sequence length, layout and data.
class FoundryClock {
 public:
  /// Throws Error{usage} if max_duration is not a length.
  explicit FoundryClock(RecipeReading& reading);
  FoundryClock(const FoundryClock&) = delete;
  FoundryClock& operator=(const FoundryClock&) = delete;
  std::int64_t steps() const;
  /// Batches of the whole run; a fraction if tokens or samples end within a batch.
  double whole() const { return clock_.batches(whole_, "max_duration"); }
  double batches(const std::string& key, const std::string& fallback) const;
  /// Rounded up. Lists an assumption if that changes the length.
  std::int64_t whole_batches(const std::string& key, std::int64_t fallback) const;
  /// Lists the keys of a schedule whose unit differs from that of its end.
  void assume_one_unit(const std::vector<std::string>& keys) const;

 private:
  RecipeReading& reading_;
  Duration whole_;
  RunClock clock_;
  bool said_epoch_ = false;
};

void write_foundry_model(RecipeDraft& draft);
void read_foundry_model(RecipeReading& reading);
void write_foundry_recompute(RecipeDraft& draft);
void read_foundry_recompute(RecipeReading& reading);
void write_foundry_optimizer(RecipeDraft& draft);
void read_foundry_optimizer(RecipeReading& reading, const FoundryClock& clock);
/// Returns the entries below `prefix` that `wanted` accepts, without the prefix, and marks them as read.
Settings take_settings(RecipeReading& reading, const std::string& prefix,
                       const std::function<bool(const std::string&)>& wanted);
/// Reads the loader "train_loader." or "eval_loader[0]." with Streaming's defaults; an empty data set if it names no
/// MDS folder. Needs the layout.
DatasetSpec read_foundry_dataset(RecipeReading& reading, const std::string& loader);
void write_foundry_dataset(RecipeDraft& draft, const std::string& loader, const DatasetSpec& data);
void write_foundry_data(RecipeDraft& draft);
void read_foundry_data(RecipeReading& reading);
/// eval_loader as a map or a list, with related keys. Sets that are not MDS folders are left out.
void write_foundry_evaluation(RecipeDraft& draft);
void read_foundry_evaluation(RecipeReading& reading, const FoundryClock& clock);
/// MLflow and TensorBoard.
void write_foundry_loggers(RecipeDraft& draft);
void read_foundry_loggers(RecipeReading& reading);
/// Accounts for every key that was not read: ignored with a reason, refused, or unknown, which is an error.
void account_for_foundry_keys(RecipeReading& reading);

}  // namespace wt
