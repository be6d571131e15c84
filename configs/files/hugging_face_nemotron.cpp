// Nemotron-H and Nemotron 3 from a Hugging Face config.json.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

/// hybrid_override_pattern, or the same letters for the words of transformers 5's layers_block_type.
std::string pattern_letters(const HuggingFaceConfig& c, const char*& key) {
  static const std::map<std::string, char> kLetters{{"mamba", 'M'},     {"linear_attention", 'M'},
                                                    {"attention", '*'}, {"full_attention", '*'},
                                                    {"moe", 'E'},       {"mlp", '-'}};
  if (c.has(key)) return c.text(key, "");
  for (const char* words : {"layers_block_type", "layer_types"}) {
    if (!c.has(words)) continue;
    key = words;
    std::string letters;
    for (const nlohmann::json& word : c.object[key]) {
      const auto letter = kLetters.find(word.is_string() ? word.get<std::string>() : "");
      c.must_be(key, letter != kLetters.end(), "mamba, attention, moe, mlp", word.dump());
      letters += letter->second;
    }
    return letters;
  }
  return "";
}

/// Letters, one a layer: M Mamba-2, * attention, E experts, - an FFN. Each has its own norm and residual, so that a
/// mixer and the FFN or experts after it together form one of our layers.
void read_hybrid_pattern(const HuggingFaceConfig& c, ModelSpec& m) {
  const char* key = "hybrid_override_pattern";
  const std::string letters = pattern_letters(c, key);
  const auto feeds_forward = [](char letter) { return letter == 'E' || letter == '-'; };
  std::vector<bool> mamba, fed, experts;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const char letter = letters[i];
    if (letter == 'M' || letter == '*') {
      mamba.push_back(letter == 'M'), fed.push_back(false), experts.push_back(false);
      continue;
    }
    c.must_be(key, feeds_forward(letter) && i > 0 && !feeds_forward(letters[i - 1]),
              "letters M, *, E and -, the last two behind one of the first");
    fed.back() = true, experts.back() = letter == 'E';
  }
  const std::int64_t found = static_cast<std::int64_t>(letters.size());
  c.must_be(key, found > 0 && found == c.integer_or("num_hidden_layers", found),
            "a letter for each of num_hidden_layers");
  m.layers = static_cast<std::int64_t>(mamba.size());
  m.linear.set_layers(std::move(mamba));
  if (std::ranges::find(experts, true) != experts.end()) {
    bool dense = false;
    for (std::size_t layer = 0; layer < fed.size(); ++layer) dense = dense || (fed[layer] && !experts[layer]);
    if (dense) m.moe_pattern = LayerPattern::of(experts), m.dense_ffn = c.integer("intermediate_size");
    m.experts = c.integer("n_routed_experts");
  }
  m.ffn_layers = LayerPattern::of(std::move(fed));
}

}  // namespace

void read_nemotron_h(const HuggingFaceConfig& c, ModelSpec& m) {
  m.d_model = c.integer("hidden_size");
  m.heads = c.integer("num_attention_heads");
  m.kv_heads = c.integer_or("num_key_value_heads", m.heads);
  m.head_dim = c.integer_or("head_dim", c.integer_or("attention_head_dim", 128));
  m.norm_eps = c.number_or("layer_norm_epsilon", c.number_or("norm_eps", m.norm_eps));
  m.tied = c.flag("tie_word_embeddings", false);
  m.activation = Activation::gelu;  // relu(x)^2: the same sizes, one input product and no gate
  for (const char* feature : {"relu2", "no_position_embeddings"}) simulate_only(m, feature);
  c.must_be("mlp_hidden_act", c.text("mlp_hidden_act", "relu2") == "relu2", "relu2");
  for (const char* bias : {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"})
    c.must_be(bias, !c.flag(bias, false), "false");
  c.must_be("use_conv_bias", c.flag("use_conv_bias", true), "true");
  if (c.integer_or("num_nextn_predict_layers", 0) > 0)
    m.approximations.push_back(
        "modules of multi-token prediction are left out: their blocks differ from the last layer");
  LinearMixerSpec& l = m.linear;
  l.kind = LinearMixerSpec::Kind::mamba2;
  l.value_heads = c.integer("mamba_num_heads");
  l.value_head_dim = c.integer("mamba_head_dim");
  l.key_heads = c.any({"n_groups", "mamba_n_groups"});
  l.key_head_dim = c.integer("ssm_state_size");
  l.conv_kernel = c.integer_or("conv_kernel", 4);
  l.chunk = c.integer_or("chunk_size", 128);
  read_hybrid_pattern(c, m);
  if (m.experts == 0) {
    m.ffn = c.integer("intermediate_size");
    return;
  }
  m.ffn = c.integer("moe_intermediate_size");
  m.top_k = c.integer("num_experts_per_tok");
  m.moe_latent = c.integer_or("moe_latent_size", 0);
  m.shared_ffn = c.integer_or("n_shared_experts", 1) * c.integer_or("moe_shared_expert_intermediate_size", 0);
  read_sigmoid_router(c, m.router);
}

}  // namespace wt
