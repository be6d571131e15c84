#include "trainer/parameters/starting_weights.hpp"

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/parameters/adapter_group.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

bool holds_adapter(const fs::path& folder) { return fs::is_regular_file(folder / "adapter_config.json"); }

}  // namespace

StartingWeights::StartingWeights(const fs::path& folder, const RunSpec& run) : origin_(folder.string()), run_(run) {
  fs::path base = folder;
  if (holds_adapter(folder)) {
    if (!run.lora)
      throw_usage(
          "load_path: {} holds an adapter, and the run's model has no peft_config; add one to train it on, or merge "
          "the adapter into its weights and load these",
          origin_);
    if (folder != run.load_path)
      throw_usage("load_path: {} holds an adapter, needs weights there; copy the adapter to a folder here",
                  run.load_path);
    adapter_ = read_adapter(folder);
    base = adapter_->base;
    if (!fs::is_directory(base))
      throw_usage(
          "load_path: {}: base_model_name_or_path is '{}', which is no folder here; needs the folder with the weights "
          "that the adapter is put on; write its path there",
          origin_, adapter_->base);
    check_adapter(*adapter_, run.model, *run.lora, origin_);
  }
  weights_.emplace(base, run.model);
}

void StartingWeights::load(std::vector<ShardedGroup>& groups) const {
  weights_->load(groups);
  if (!adapter_) return;
  for (ShardedGroup& group : groups)
    if (group.layout.group == Group::adapter) fill_from_adapter(group, *adapter_, run_.model, *run_.lora);
}

std::string base_of_adapter(const std::string& load_path) {
  if (load_path.empty() || !holds_adapter(load_path)) return load_path;
  const fs::path file = fs::path(load_path) / "adapter_config.json";
  const nlohmann::json config = read_json(file);
  if (const auto base = config.find("base_model_name_or_path"); base != config.end() && base->is_string()) return *base;
  throw_usage("{}: base_model_name_or_path: found none, needs the folder that the adapter is put on", file.string());
}

void export_adapter(const fs::path& folder, const RunSpec& run, const std::vector<ShardedGroup>& groups) {
  for (const ShardedGroup& group : groups)
    if (group.layout.group == Group::adapter)
      write_adapter(folder, adapter_from(group, run.model, *run.lora, run.adapter_base));
}

}  // namespace wt
