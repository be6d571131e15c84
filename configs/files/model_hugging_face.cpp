// Reads a model from a Hugging Face config.json: finds the text part and its family. A key for which the family has
// only one value is not checked; a value that our model cannot express is an error that names it.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/files/hugging_face_families.hpp"
#include "configs/files/model.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Config = HuggingFaceConfig;

/// The names of our keys in this file. Families use different names for one key; the one present counts.
std::map<std::string, std::string> key_names(const json& document) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kNames{
      {"n_layers", {"num_hidden_layers", "n_layers"}},
      {"d_model", {"hidden_size", "d_model"}},
      {"n_heads", {"num_attention_heads", "n_heads"}},
      {"kv_n_heads", {"num_key_value_heads", "num_kv_heads", "attn_config/kv_n_heads"}},
      {"head_dim", {"head_dim", "qk_rope_head_dim"}},
      {"ffn_hidden_size",
       {"moe_intermediate_size", "intermediate_size", "ffn_config/ffn_hidden_size", "ffn_hidden_size",
        "expansion_ratio"}},
      {"dense_ffn_hidden_size", {"intermediate_size"}},
      {"moe_num_experts", {"n_routed_experts", "num_local_experts", "num_experts", "ffn_config/moe_num_experts"}},
      {"moe_top_k", {"num_experts_per_tok", "ffn_config/moe_top_k"}},
      {"first_k_dense", {"first_k_dense_replace"}},
      {"moe_layer_freq", {"decoder_sparse_step", "interleave_moe_layer_step", "moe_layers", "moe_layer_freq"}},
      {"mtp_num_layers", {"num_nextn_predict_layers"}},
      {"linear_config/key_heads", {"linear_num_key_heads", "n_groups"}},
      {"linear_config/value_heads", {"linear_num_value_heads", "mamba_num_heads"}},
      {"linear_config/key_head_dim", {"linear_key_head_dim", "ssm_state_size"}},
      {"linear_config/value_head_dim", {"linear_value_head_dim", "mamba_head_dim"}},
      {"linear_config/conv_kernel", {"linear_conv_kernel_dim", "conv_kernel"}},
      {"linear_config/chunk", {"chunk_size"}},
      {"moe_n_group", {"n_group"}},
      {"moe_topk_group", {"topk_group"}}};
  std::map<std::string, std::string> out;
  for (const auto& [ours, theirs] : kNames)
    for (const std::string& name : theirs)
      if (document.contains(json::json_pointer("/" + name))) {
        out.emplace(ours, name);
        break;
      }
  return out;
}

/// Where models of several kinds of input keep the config of their text part.
constexpr const char* kTextParts[] = {"text_config", "thinker_config/text_config", "llm_config", "language_config"};

/// What a text part leaves out, because its class has it: transformers writes only what differs from the class.
const json& class_defaults(const std::string& type) {
  static const json kLlama = json::parse(R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                                             "num_hidden_layers": 32, "num_attention_heads": 32})"),
                    kMistral = json::parse(R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
                                               "num_hidden_layers": 32, "num_attention_heads": 32,
                                               "num_key_value_heads": 8})"),
                    kGemma3 = json::parse(R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
                                              "num_hidden_layers": 26, "num_attention_heads": 8,
                                              "num_key_value_heads": 4, "head_dim": 256})"),
                    kNone = json::object();
  return type == "llama" ? kLlama : type == "mistral" ? kMistral : type == "gemma3_text" ? kGemma3 : kNone;
}

struct TextPart {
  json object;
  std::string in;  ///< its path in the document; "" = the document itself
};

/// The text part with what it takes from the whole: the vocabulary, tied embeddings, and its class.
TextPart text_part(const Config& whole) {
  for (const std::string path : kTextParts) {
    const json::json_pointer at("/" + path);
    if (!whole.object.contains(at) || !whole.object[at].is_object()) continue;
    json object = whole.object[at];
    const std::string outer = whole.text("model_type", "");
    for (const char* key : {"vocab_size", "tie_word_embeddings"})
      if (!object.contains(key) && whole.has(key)) object[key] = whole.object[key];
    if (!object.contains("model_type")) object["model_type"] = outer + "_text";
    if (object["model_type"].is_string())
      for (const auto& [key, value] : class_defaults(object["model_type"].get<std::string>()).items())
        if (!object.contains(key)) object[key] = value;
    return {std::move(object), path + "/"};
  }
  return {whole.object, ""};
}

/// What of the file is not in the model, for people.
void add_approximations(const Config& whole, ModelSpec& m) {
  for (const char* part : {"vision_config", "audio_config", "talker_config"})
    if (whole.has(part)) m.approximations.push_back(fmt::format("the text part alone, without {}", part));
  if (whole.has("quantization_config"))
    m.approximations.push_back(
        "quantization_config is how weights are stored; they are trained at the run's precision");
}

[[noreturn]] void refuse(const Config& c, const std::string& type) {
  const auto known = std::views::keys(hugging_face_families());
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string why = why_not_read(type);
  throw_usage(
      "{}: {}model_type: found '{}'{}, reads {} families{}; docs/models.md lists them, and says how to write the shape "
      "in our YAML",
      c.file, c.in, type, why.empty() ? "" : " (" + why + ")", names.size(), did_you_mean(type, names));
}

}  // namespace

const Families& hugging_face_families() {
  static const Families kAll = [] {
    Families all;
    for (const Families* some : {&dense_families(), &older_families(), &expert_families(), &latent_families(),
                                 &mixer_families(), &unequal_families()})
      all.insert(some->begin(), some->end());
    return all;
  }();
  return kAll;
}

std::string why_not_read(const std::string& type) {
  static const std::map<std::string, std::string> kReasons{
      {"bert", "an encoder"},
      {"bloom", "a norm of the embedding"},
      {"cohere2_moe", "experts beside attention in one block"},
      {"falcon_h1", "attention and Mamba-2 side by side in one layer"},
      {"falcon_mamba", "Mamba-1"},
      {"gemma3n", "embeddings of every layer, and keys and values shared between layers"},
      {"gemma3n_text", "embeddings of every layer, and keys and values shared between layers"},
      {"jamba", "Mamba-1"},
      {"mamba", "Mamba-1"},
      {"mamba2", "no attention"},
      {"mllama", "cross-attention to images"},
      {"recurrent_gemma", "a recurrent mixer"},
      {"rwkv", "no attention"},
      {"t5", "an encoder and a decoder"},
      {"zamba2", "blocks shared between layers"}};
  const auto found = kReasons.find(type);
  return found == kReasons.end() ? "" : found->second;
}

ModelSpec model_from_hugging_face(const std::filesystem::path& path) {
  return model_from_hugging_face(parse_python_json(read_file(path, "a JSON file"), path.string()), path.string());
}

ModelSpec model_from_hugging_face(const json& document, const std::string& file, std::set<std::string>* asked) {
  if (!document.is_object()) throw_usage("{}: not a JSON object; needs a Hugging Face config.json", file);
  const Config whole{document, file, "", asked};
  const std::string outer = whole.text("model_type", "");
  const TextPart text = text_part(whole);
  const Config config{text.object, file, text.in, asked};
  const std::string type = config.text("model_type", "");
  const auto family = hugging_face_families().find(type);
  if (family == hugging_face_families().end()) refuse(config, type);
  ModelSpec m;
  m.source = file;
  const std::string name = whole.text("_name_or_path", "");
  m.name = name.empty() ? outer : name;
  m.vocab = config.integer("vocab_size");
  family->second(config, m);
  add_approximations(whole, m);
  m.check(file, key_names(text.object));
  return m;
}

}  // namespace wt
