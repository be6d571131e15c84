// LLM Foundry 0.22.0: the parts of its translator.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configs/files/duration.hpp"
#include "planner/recipes/translator.hpp"

namespace wt {

/// Lengths of a recipe in batches. Epochs of a data set that is not here are taken as one batch, which is listed.
/// Needs the run's batch, sequence length, layout and data.
class FoundryClock {
 public:
  /// Throws Error{usage} where max_duration is no length.
  explicit FoundryClock(RecipeReading& reading);
  FoundryClock(const FoundryClock&) = delete;
  FoundryClock& operator=(const FoundryClock&) = delete;
  std::int64_t steps() const;
  /// Of the whole run; a fraction where tokens or samples end inside of a batch.
  double whole() const { return clock_.batches(whole_, "max_duration"); }
  double batches(const std::string& key, const std::string& fallback) const;
  /// Rounded up, which is listed where it changes anything.
  std::int64_t whole_batches(const std::string& key, std::int64_t fallback) const;
  /// Lists those of a schedule's keys whose unit is not that of its end.
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
/// The entries below `prefix` that `wanted` takes, without it; each is marked as read.
Settings take_settings(RecipeReading& reading, const std::string& prefix,
                       const std::function<bool(const std::string&)>& wanted);
/// Of the loader "train_loader." or "eval_loader[0].", with Streaming's defaults; none where it names no MDS folder.
/// Needs the layout.
DatasetSpec read_foundry_dataset(RecipeReading& reading, const std::string& loader);
void write_foundry_dataset(RecipeDraft& draft, const std::string& loader, const DatasetSpec& data);
void write_foundry_data(RecipeDraft& draft);
void read_foundry_data(RecipeReading& reading);
/// eval_loader, a map or a list, with the keys around it. Sets that are no MDS folders are left out.
void write_foundry_evaluation(RecipeDraft& draft);
void read_foundry_evaluation(RecipeReading& reading, const FoundryClock& clock);
/// MLflow and TensorBoard.
void write_foundry_loggers(RecipeDraft& draft);
void read_foundry_loggers(RecipeReading& reading);
/// Every key that nobody read yet: left out with the reason, refused, or unknown, which is an error.
void account_for_foundry_keys(RecipeReading& reading);

}  // namespace wt
