// Keys of a Hugging Face config.json, and what several families say in the same words.
#pragma once
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "configs/base/error.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/model.hpp"

namespace wt {

/// Keys of one object, missing and null ones alike falling back.
struct HuggingFaceConfig {
  static constexpr std::int64_t kMost = 1LL << 31;  ///< products of two of them are whole numbers, too

  const nlohmann::json& object;
  const std::string& file;
  std::string in = {};                     ///< the map that the keys are in, "rope_scaling/"; "" = the document
  std::set<std::string>* asked = nullptr;  ///< gets every key that is looked for, behind `in`

  bool has(const char* key) const {
    if (asked) asked->insert(in + key);
    return object.contains(key) && !object[key].is_null();
  }
  std::int64_t integer(const char* key) const {
    if (!has(key) || !object[key].is_number_integer())
      throw_error(Code::usage, "{}: {}{}: found {}, needs a whole number", file, in, key,
                  object.contains(key) ? object[key].dump() : "nothing");
    const auto value = object[key].get<std::int64_t>();
    if (value > kMost || value < -kMost)
      throw_error(Code::usage, "{}: {}{}: found {}, needs a whole number up to {}", file, in, key, object[key].dump(),
                  kMost);
    return value;
  }
  /// Of the model; lists have an entry for each.
  std::int64_t layers(const char* key) const {
    const std::int64_t count = integer(key);
    must_be(key, count >= 1 && count <= limits::kLayers, fmt::format("1 to {}", limits::kLayers).c_str());
    return count;
  }
  std::int64_t integer_or(const char* key, std::int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  double number(const char* key) const {
    if (!has(key) || !object[key].is_number())
      throw_error(Code::usage, "{}: {}{}: found {}, needs a number", file, in, key,
                  has(key) ? object[key].dump() : "nothing");
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
    if (!good)
      throw_error(Code::usage, "{}: {}{}: found {}, reads {}; such a model is not supported", file, in, key, found,
                  reads);
  }
};

/// transformers 5 keeps both in "rope_parameters", older ones in "rope_theta" and "rope_scaling".
void read_rope(const HuggingFaceConfig& config, ModelSpec& m);
/// attention_bias of Llama and of families that took it over.
void read_attention_bias(const HuggingFaceConfig& config, AttentionSpec& a);
/// Scores by sigmoid, groups of experts, balance by a bias (GLM-4.5, Nemotron 3).
void read_sigmoid_router(const HuggingFaceConfig& config, RouterSpec& r);
/// "layer_types", where a file has them: which layers attend to a window, by the word `local`.
void read_layer_types(const HuggingFaceConfig& config, const std::string& local, ModelSpec& m);
/// Layers with experts: the last one of every `step` (Qwen, Llama-4), without those that a list names.
void read_sparse_step(const HuggingFaceConfig& config, const char* step_key, const char* dense_key, ModelSpec& m);
/// Keys that Llama and its descendants share.
void read_llama_like(const HuggingFaceConfig& config, ModelSpec& m);
/// "use_sliding_window" of Qwen: every layer, or by layer_types, or those from max_window_layers on (Qwen2).
void read_qwen_window(const HuggingFaceConfig& config, bool from_layer, ModelSpec& m);
/// "nemotron_h": layers that hold Mamba-2, attention, an FFN or experts alone.
void read_nemotron_h(const HuggingFaceConfig& config, ModelSpec& m);

}  // namespace wt
