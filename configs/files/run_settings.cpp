#include "configs/files/run_settings.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "configs/base/yaml.hpp"

namespace wt {
namespace {

/// What a run does beside training: no number that it trains depends on it.
constexpr std::array kAside = std::to_array<std::string_view>(
    {"autoresume", "callbacks", "device_eval_batch_size", "dist_timeout", "eval_first", "eval_interval", "eval_loader",
     "eval_subset_num_batches", "grace_period", "local_checkpoints", "loggers", "rehearsal", "save", "save_folder",
     "save_interval", "save_num_checkpoints_to_keep", "smaller_layouts", "verify_interval", "verify_saves"});

/// What may be changed on purpose, with all keys below it; why.
constexpr std::array kMayChange = std::to_array<std::pair<std::string_view, const char*>>(
    {{"run_name", "a label"},
     {"model.name", "a label"},
     {"model.approximations", "words for people"},
     {"model.mtp_loss_scaling_factor", "lowered in the course of a training (DeepSeek-V3, section 4.2)"},
     {"model.ffn_config.moe_loss_weight", "tuned in the course of a training"},
     {"model.ffn_config.moe_zloss_weight", "tuned in the course of a training"},
     {"model.ffn_config.moe_bias_update_rate", "lowered in the course of a training (DeepSeek-V3, section 4.2)"},
     {"max_duration", "a run may be made longer"},
     {"optimizer.lr", "tuned in the course of a training"},
     {"optimizer.weight_decay", "tuned in the course of a training; that of decoupled optimizers follows lr"},
     {"optimizer.offload_fraction", "where the state lies"},
     {"scheduler", "the learning rate of each step"},
     {"algorithms", "clipping is tuned in the course of a training"},
     {"device", "where it is computed"},
     {"device_train_microbatch_size", "how a batch is cut"},
     {"fsdp_config", "the layout: the state is cut anew"},
     {"skip_batches", "checkpoints that were trained on one of them are passed over"},
     {"loss_chunks", "how the loss is cut"},
     {"load_path", "what a run began with is in its checkpoints; that of an adapter is compared by itself"},
     {"train_loader.curriculum", "the sampler compares the entries that were used"},
     {"train_loader.dataset.partition_algo", "both give the same batches"},
     {"train_loader.dataset.replication", "follows the layout"},
     {"train_loader.dataset.predownload", "how far ahead is read"},
     {"train_loader.dataset.cache_limit", "how much is kept"}});

/// Of a data set and of its streams: where samples are, and how they are fetched. What they are, the sampler compares.
constexpr std::array kOfStreams = std::to_array<std::string_view>(
    {"remote", "local", "split", "download_retry", "download_timeout", "validate_hash", "keep_zip"});
constexpr std::string_view kDataset = "train_loader.dataset.";

/// A state that is there or not: the router's bias.
constexpr std::array kStaysSet = std::to_array<std::string_view>({"model.ffn_config.moe_bias_update_rate"});

constexpr const char* kNotSet = "not set";

bool is_below(std::string_view key, std::string_view of) {
  return key == of || (key.starts_with(of) && key[of.size()] == '.');
}

bool may_change(std::string_view key) {
  if (std::ranges::any_of(kMayChange, [&](const auto& each) { return is_below(key, each.first); })) return true;
  const std::string_view last = key.substr(key.rfind('.') + 1);
  return key.starts_with(kDataset) && std::ranges::find(kOfStreams, last) != kOfStreams.end();
}

std::string in_one_line(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar();
  std::string out;
  for (const auto& entry : node) {
    out += out.empty() ? "" : ", ";
    out += node.IsMap() ? in_one_line(entry.first) + ": " + in_one_line(entry.second) : in_one_line(entry);
  }
  return (node.IsMap() ? "{" : "[") + out + (node.IsMap() ? "}" : "]");
}

void add_settings(const YAML::Node& node, const std::string& key, RunSettings& out) {
  if (!node.IsMap()) {
    out[key] = in_one_line(node);
    return;
  }
  std::string names;
  for (const auto& entry : node) {
    const std::string name = entry.first.Scalar();
    names += (names.empty() ? "" : ", ") + name;
    add_settings(entry.second, key.empty() ? name : key + "." + name, out);
  }
  if (key == std::string(kDataset) + "streams") out[key] = names;  // their order gives samples their numbers
}

}  // namespace

RunSettings run_settings(const RunSpec& run) {
  RunSettings out;
  add_settings(load_yaml(run_to_yaml(run), run.name), "", out);
  std::erase_if(out, [](const auto& each) {
    return std::ranges::any_of(kAside, [&](std::string_view key) { return is_below(each.first, key); });
  });
  return out;
}

std::vector<SettingChange> changed_settings(const RunSettings& was, const RunSettings& now) {
  std::set<std::string> keys;
  for (const RunSettings* each : {&was, &now})
    for (const auto& [key, value] : *each) keys.insert(key);
  std::vector<SettingChange> out;
  for (const std::string& key : keys) {
    const auto before = was.find(key), after = now.find(key);
    const bool both = before != was.end() && after != now.end();
    if (both && before->second == after->second) continue;
    const bool stays_set = std::ranges::find(kStaysSet, key) != kStaysSet.end();
    out.push_back({key, before == was.end() ? kNotSet : before->second, after == now.end() ? kNotSet : after->second,
                   may_change(key) && (both || !stays_set)});
  }
  return out;
}

}  // namespace wt
