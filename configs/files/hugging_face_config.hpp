// Keys of a Hugging Face config.json, and the keys that several families share.
#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/model.hpp"

namespace wt {

/// Reads the keys of one object. A missing key and a null value both mean the fallback.
struct HuggingFaceConfig {
  static constexpr std::int64_t kMost = 1LL << 31;  ///< products of two values fit 64 bits

  const nlohmann::json& object;
  const std::string& file;
  std::string in = {};                     ///< path of the object, "rope_scaling/"; "" = the document
  std::set<std::string>* asked = nullptr;  ///< collects the path of every key that is looked up

  bool has(const char* key) const {
    if (asked) asked->insert(in + key);
    return object.contains(key) && !object[key].is_null();
  }
  std::int64_t integer(const char* key) const {
    if (!has(key) || !object[key].is_number_integer())
      throw_usage("{}: {}{}: found {}, needs a whole number", file, in, key,
                  object.contains(key) ? object[key].dump() : "nothing");
    const auto value = object[key].get<std::int64_t>();
    if (value > kMost || value < -kMost)
      throw_usage("{}: {}{}: found {}, needs a whole number up to {}", file, in, key, object[key].dump(), kMost);
    return value;
  }
  /// A number of layers. The limit guards per-layer lists.
  std::int64_t layers(const char* key) const {
    const std::int64_t count = integer(key);
    must_be(key, count >= 1 && count <= limits::kLayers, fmt::format("1 to {}", limits::kLayers).c_str());
    return count;
  }
  std::int64_t integer_or(const char* key, std::int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  /// The first of these keys that is there: families and versions of transformers name one thing differently. A list of
  /// equal numbers, one a layer, counts as that number.
  std::int64_t any(const std::vector<const char*>& keys) const;
  std::int64_t any_or(const std::vector<const char*>& keys, std::int64_t fallback) const;
  double number(const char* key) const {
    if (!has(key) || !object[key].is_number())
      throw_usage("{}: {}{}: found {}, needs a number", file, in, key, has(key) ? object[key].dump() : "nothing");
    return object[key].get<double>();
  }
  double number_or(const char* key, double fallback) const { return has(key) ? number(key) : fallback; }
  bool flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    must_be(key, object[key].is_boolean(), "true or false");
    return object[key].get<bool>();
  }
  std::string text(const char* key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    must_be(key, object[key].is_string(), "a word");
    return object[key].get<std::string>();
  }
  HuggingFaceConfig map(const char* key) const {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    return {has(key) ? object[key] : kEmpty, file, in + key + "/", asked};
  }
  void must_be(const char* key, bool good, const char* reads) const {
    must_be(key, good, reads, has(key) ? object[key].dump() : "nothing");
  }
  void must_be(const char* key, bool good, const char* reads, const std::string& found) const {
    if (!good) throw_usage("{}: {}{}: found {}, reads {}; such a model is not supported", file, in, key, found, reads);
  }
};

/// From "rope_parameters" (transformers 5), or "rope_theta" and "rope_scaling" (older ones). Kinds and keys that change
/// frequencies alone, and that the trainer lacks, become simulated_only. `rotary`: the family's share of rotated
/// elements where the file has none.
void read_rope(const HuggingFaceConfig& config, ModelSpec& m, double rotary = 1);
/// attention_bias of Llama and the families that adopted it.
void read_attention_bias(const HuggingFaceConfig& config, AttentionSpec& a);
/// The activation under this key, with a gate or without; one that the trainer lacks becomes simulated_only.
void read_activation(const HuggingFaceConfig& config, const char* key, const std::string& usual, bool gated,
                     ModelSpec& m);
/// Number, choice and width of routed experts, and the width of shared ones.
void read_experts(const HuggingFaceConfig& config, ModelSpec& m);
/// Layers without experts, from "mlp_layer_types" or the number of first ones, and the width of their FFN.
void read_dense_layers(const HuggingFaceConfig& config, std::int64_t usual, ModelSpec& m);
/// Sigmoid scores, expert groups and a balancing bias (GLM-4.5, Nemotron 3).
void read_sigmoid_router(const HuggingFaceConfig& config, RouterSpec& r);
/// Optional "layer_types": the layers with the word `local` attend to a window.
void read_layer_types(const HuggingFaceConfig& config, const std::string& local, ModelSpec& m);
/// MoE layers: the last one of every `step` layers (Qwen, Llama-4), except those in a list.
void read_sparse_step(const HuggingFaceConfig& config, const char* step_key, const char* dense_key, ModelSpec& m);
/// Windows of `usual` keys in every layer but each `every`-th, where neither key nor "layer_types" says otherwise.
void read_alternating_windows(const HuggingFaceConfig& config, std::int64_t usual, std::int64_t every, ModelSpec& m);
/// The layers with a linear mixer: those whose entry of "layer_types" is one of `words`, otherwise all but each
/// `every`-th; 0 = the file must say.
void read_mixer_layers(const HuggingFaceConfig& config, const std::set<std::string>& words, std::int64_t every,
                       ModelSpec& m);
/// What a family's class in transformers takes for keys that its files leave out.
struct FamilyDefaults {
  double rotary = 1;  ///< share of a head's elements that is rotated
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  bool gated = true;
};
/// Keys that Llama and its descendants share. Multipliers and caps of logits become simulated_only.
void read_llama_like(const HuggingFaceConfig& config, ModelSpec& m, const FamilyDefaults& family = {});
/// Says that only the simulator has a feature, once.
void simulate_only(ModelSpec& m, const std::string& feature);
/// Qwen's "use_sliding_window": all layers, those of layer_types, or those from max_window_layers on (Qwen2).
void read_qwen_window(const HuggingFaceConfig& config, bool from_layer, ModelSpec& m);

}  // namespace wt
