// The model of an LLM Foundry recipe: llmfoundry/models/mpt/configuration_mpt.py, models/utils/config_defaults.py and
// the ffns of models/layers/ffn.py.

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/hub_models.hpp"
#include "planner/recipes/llm_foundry.hpp"
#include "planner/recipes/model_names.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kMptRows{{"model.n_layers", +[](RunSpec& r) { return &r.model.layers; }, 1},
                                      {"model.d_model", +[](RunSpec& r) { return &r.model.d_model; }, 1},
                                      {"model.n_heads", +[](RunSpec& r) { return &r.model.heads; }, 1},
                                      {"model.vocab_size", +[](RunSpec& r) { return &r.model.vocab; }, 2},
                                      {"model.norm_eps", +[](RunSpec& r) { return &r.model.norm_eps; }},
                                      {"model.tie_word_embeddings", +[](RunSpec& r) { return &r.model.tied; }}};

const std::vector<RecipeRow> kMoeRows{
    {"model.ffn_config.moe_num_experts", +[](RunSpec& r) { return &r.model.experts; }, 1},
    {"model.ffn_config.moe_top_k", +[](RunSpec& r) { return &r.model.top_k; }, 1},
    {"model.ffn_config.moe_loss_weight", +[](RunSpec& r) { return &r.model.router.aux_loss_weight; }},
    {"model.ffn_config.moe_zloss_weight", +[](RunSpec& r) { return &r.model.router.z_loss_weight; }}};

const std::string kAttention = "model.attn_config.", kFfn = "model.ffn_config.";

/// Features that an mpt_causal_lm does not have, in words.
std::vector<std::string> beyond_mpt(const ModelSpec& m) {
  std::vector<std::string> out;
  const auto add = [&out](bool there, const char* what) {
    if (there) out.emplace_back(what);
  };
  const AttentionSpec& a = m.attention;
  const RouterSpec& r = m.router;
  add(a.mla.on(), "latent attention");
  add(m.linear.on(), "linear mixers");
  add(!m.ffn_layers.repeats.empty(), "layers without an FFN");
  add(a.parallel != AttentionSpec::Parallel::none, "parallel attention");
  add(a.chunk > 0 || !a.local.repeats.empty(), "attention windows in some layers");
  add(a.sinks, "attention sinks");
  add(a.output_gate, "gated attention");
  add(m.activation == Activation::clamped_swiglu, "clamped SwiGLU");
  add(m.mtp_layers > 0, "multi-token prediction");
  if (m.experts == 0) return out;
  add(m.dense_layers > 0 || !m.moe_pattern.repeats.empty(), "dense layers beside MoE layers");
  add(m.shared_ffn > 0, "shared experts");
  add(r.score == RouterSpec::Score::sigmoid, "sigmoid routing");
  add(r.groups > 1, "expert groups");
  add(r.scale != 1, "scaled expert weights");
  add(r.bias_update_rate > 0, "loss-free balancing");
  return out;
}

void write_rope(const ModelSpec& m, Settings& out) {
  const AttentionSpec& a = m.attention;
  out.put(kAttention + "rope", !m.no_rotation());
  out.put(kAttention + "alibi", a.alibi);
  if (m.no_rotation()) return;
  out.put(kAttention + "rope_theta", a.rope_theta);
  out.put(kAttention + "rope_impl", "hf");
  const RopeScaling& scaling = a.rope_scaling;
  const bool known = scaling.kind == RopeScaling::Kind::linear || scaling.kind == RopeScaling::Kind::llama3;
  out.put(kAttention + "rope_hf_config.type", known ? to_string(scaling.kind) : "no_scaling");
  out.put(kAttention + "rope_hf_config.factor", known ? scaling.factor : 1.0);
  if (scaling.kind != RopeScaling::Kind::llama3) return;
  out.put(kAttention + "rope_hf_config.original_max_position_embeddings", scaling.original_max_position_embeddings);
  out.put(kAttention + "rope_hf_config.low_freq_factor", scaling.low_freq_factor);
  out.put(kAttention + "rope_hf_config.high_freq_factor", scaling.high_freq_factor);
}

void read_rope(RecipeReading& reading) {
  ModelSpec& m = reading.run.model;
  AttentionSpec& a = m.attention;
  a.alibi = reading.in.boolean(kAttention + "alibi", false);
  if (reading.in.number(kAttention + "alibi_bias_max", 8) != 8)
    reading.in.fail(kAttention + "alibi_bias_max", "found another number, needs 8");
  const bool rope = reading.in.boolean(kAttention + "rope", false),
             learned = reading.in.boolean("model.learned_pos_emb", true);
  const std::int64_t longest = reading.in.integer("model.max_seq_len", 2048, 1);
  if (rope && a.alibi) reading.in.fail(kAttention + "alibi", "found true with rope, needs one of them");
  if (!rope && !a.alibi && !learned)
    reading.in.fail("model.learned_pos_emb", "found false without rope or alibi; a model of ours needs positions");
  if (!rope && !a.alibi) m.learned_positions = longest;
  if (!rope) return;
  a.rope_theta = reading.in.number(kAttention + "rope_theta", 10000, 1);
  const std::string kind = reading.in.text(kAttention + "rope_hf_config.type", "no_scaling");
  RopeScaling& scaling = a.rope_scaling;
  const double factor = reading.in.number(kAttention + "rope_hf_config.factor", 1);
  if (kind == "no_scaling") return;
  if ((kind != "linear" && kind != "llama3") || !rope_kind_from_string(kind, scaling.kind)) {
    reading.assume("{}rope_hf_config.type: found {}, taken as no_scaling", kAttention, kind);
    return;
  }
  scaling.factor = factor;
  if (kind == "linear") return;
  scaling.original_max_position_embeddings =
      reading.in.integer(kAttention + "rope_hf_config.original_max_position_embeddings", 8192, 1);
  scaling.low_freq_factor = reading.in.number(kAttention + "rope_hf_config.low_freq_factor", 1);
  scaling.high_freq_factor = reading.in.number(kAttention + "rope_hf_config.high_freq_factor", 4);
}

void write_mpt_attention(const ModelSpec& m, Settings& out) {
  const AttentionSpec& a = m.attention;
  out.put(kAttention + "attn_type", "grouped_query_attention");
  out.put(kAttention + "kv_n_heads", m.kv_heads);
  out.put(kAttention + "attn_impl", "flash");
  out.put(kAttention + "attn_pdrop", 0.0);
  out.put(kAttention + "attn_uses_sequence_id", false);
  out.put(kAttention + "qk_ln", a.qk_norm == AttentionSpec::QkNorm::full);
  out.put(kAttention + "qk_gn", a.qk_norm == AttentionSpec::QkNorm::head);
  out.put(kAttention + "clip_qkv", a.clip_qkv > 0 ? Settings::Value(a.clip_qkv) : Settings::Value());
  out.put(kAttention + "sliding_window_size", a.window > 0 ? a.window : -1);
  write_rope(m, out);
}

void read_mpt_attention(RecipeReading& reading) {
  ModelSpec& m = reading.run.model;
  AttentionSpec& a = m.attention;
  const std::string type = reading.in.text(kAttention + "attn_type", "multihead_attention");
  m.kv_heads = reading.in.integer(kAttention + "kv_n_heads", type == "multiquery_attention" ? 1 : m.heads, 1);
  if (type == "multihead_attention") m.kv_heads = m.heads;
  m.head_dim = reading.in.integer("model.head_dim", m.d_model / m.heads, 1);
  const bool full = reading.in.boolean(kAttention + "qk_ln", false),
             head = reading.in.boolean(kAttention + "qk_gn", false);
  if (full && head) reading.in.fail(kAttention + "qk_gn", "found true with qk_ln, needs one of them");
  a.qk_norm = full ? AttentionSpec::QkNorm::full : head ? AttentionSpec::QkNorm::head : AttentionSpec::QkNorm::none;
  a.qk_layernorm = a.qk_norm != AttentionSpec::QkNorm::none && m.norm == Norm::layernorm;
  a.clip_qkv = reading.in.number(kAttention + "clip_qkv", 0);
  a.window = std::max<std::int64_t>(0, reading.in.integer(kAttention + "sliding_window_size", -1, -1));
  read_rope(reading);
}

void write_mpt_ffn(RecipeDraft& draft) {
  const ModelSpec& m = draft.run.model;
  Settings& out = draft.out;
  out.put(kFfn + "ffn_type", m.experts > 0 ? "mb_dmoe" : m.gated() ? "mptglu" : "mptmlp");
  out.put(kFfn + "ffn_hidden_size", m.ffn);
  const bool tanh = m.activation == Activation::gelu_tanh || m.activation == Activation::geglu_tanh;
  if (m.activation == Activation::swiglu) {
    out.put(kFfn + "ffn_act_fn.name", "silu");
  } else {
    out.put(kFfn + "ffn_act_fn.name", "gelu");
    out.put(kFfn + "ffn_act_fn.approximate", tanh ? "tanh" : "none");
  }
  if (m.experts == 0) return;
  out.put(kFfn + "mlp_type", m.gated() ? "glu" : "mlp");
  out.put(kFfn + "mlp_impl", "grouped");
  out.put(kFfn + "memory_optimized_mlp", true);
  write_rows(kMoeRows, draft);
  out.put(kFfn + "moe_normalize_expert_weights", m.router.normalize ? Settings::Value(1) : Settings::Value());
  out.put(kFfn + "uniform_expert_assignment", m.router.forced == RouterSpec::Forced::balanced);
  out.put(kFfn + "moe_world_size", draft.run.layout.expert);
}

void read_mpt_ffn(RecipeReading& reading) {
  RunSpec& run = reading.run;
  ModelSpec& m = run.model;
  const std::string type = reading.in.text(kFfn + "ffn_type", "mptmlp"),
                    activation = reading.in.text(kFfn + "ffn_act_fn.name", "gelu");
  const bool moe = type == "mb_dmoe" || type == "mb_moe" || type == "torch_dmoe";
  const bool gated = moe ? reading.in.text(kFfn + "mlp_type", "mlp") == "glu" : type == "mptglu";
  if (!moe && type != "mptmlp" && type != "mptglu")
    reading.in.fail(kFfn + "ffn_type", "found {}, needs mptmlp, mptglu, mb_dmoe or mb_moe", type);
  // MegaBlocks' default is the approximation by tanh (megablocks/layers/arguments.py).
  const bool tanh = reading.in.text(kFfn + "ffn_act_fn.approximate",
                                    moe && !reading.in.has(kFfn + "ffn_act_fn.name") ? "tanh" : "none") == "tanh";
  if (activation == "silu" && gated)
    m.activation = Activation::swiglu;
  else if (activation == "gelu")
    m.activation =
        gated ? (tanh ? Activation::geglu_tanh : Activation::geglu) : (tanh ? Activation::gelu_tanh : Activation::gelu);
  else
    reading.in.fail(kFfn + "ffn_act_fn.name", "found {} in an FFN {} a gate, needs gelu{}", activation,
                    gated ? "with" : "without", gated ? " or silu" : "");
  const double expansion = reading.in.number("model.expansion_ratio", 4);
  m.ffn = reading.in.integer(kFfn + "ffn_hidden_size",
                             static_cast<std::int64_t>(expansion * static_cast<double>(m.d_model)), 1);
  if (!moe) return;
  if (m.ffn_bias)
    reading.assume("model.no_bias: found false with {}; MegaBlocks' one bias a layer ({} numbers) is left out", type,
                   m.d_model);
  m.ffn_bias = false;              // no bias for each expert
  m.router.aux_loss_weight = 0.1;  // megablocks/layers/arguments.py
  m.router.aux_of_microbatch = true;
  m.experts = 1, m.top_k = 1;
  read_rows(kMoeRows, reading);
  const double power = reading.in.number(kFfn + "moe_normalize_expert_weights", 0);
  m.router.normalize = power > 0;
  if (power > 0 && power != 1)
    reading.in.fail(kFfn + "moe_normalize_expert_weights",
                    "found {}, needs 1 or none: our weights are divided by their sum", power);
  if (reading.in.boolean(kFfn + "uniform_expert_assignment", false)) m.router.forced = RouterSpec::Forced::balanced;
  run.layout.expert = reading.in.integer(kFfn + "moe_world_size", 1, 1);
}

void read_mpt(RecipeReading& reading) {
  ModelSpec& m = reading.run.model;
  m.name = reading.run.name;
  m.layers = 24, m.d_model = 2048, m.heads = 16, m.vocab = 50368, m.tied = true;  // configuration_mpt.py
  read_rows(kMptRows, reading);
  const std::string norm = reading.in.text("model.norm_type", "low_precision_layernorm");
  const bool bias = !reading.in.boolean("model.no_bias", false);
  m.norm = norm.find("rmsnorm") != std::string::npos ? Norm::rmsnorm : Norm::layernorm;
  m.norm_bias = bias && m.norm == Norm::layernorm;
  m.ffn_bias = bias;
  m.attention.bias =
      reading.in.boolean("model.attention_bias", bias) ? AttentionSpec::Bias::all : AttentionSpec::Bias::none;
  read_mpt_attention(reading);
  read_mpt_ffn(reading);
}

/// Reads a model by its repository, or by a folder with its config.json; a run then starts from that folder's weights.
void read_hugging_face(RecipeReading& reading, const std::string& kind) {
  const std::string key = "model.pretrained_model_name_or_path", name = reading.in.text(key, "");
  std::error_code ignored;
  const bool folder = std::filesystem::is_regular_file(std::filesystem::path(name) / "config.json", ignored);
  const std::string preset = folder ? name : hub_repository(name);
  reading.set_model(preset, key, name.empty() ? kind : name);
  // Two names for the number of learned positions: GPT-2's and that of others.
  std::int64_t& positions = reading.run.model.learned_positions;
  for (const char* override : {"n_positions", "max_position_embeddings"})
    if (const std::string at = std::string("model.config_overrides.") + override; positions > 0 && reading.in.has(at))
      positions = reading.in.integer(at, positions, 1);
  if (!reading.in.boolean("model.pretrained", true)) return;
  if (folder)
    reading.run.load_path = name;
  else if (!name.empty())
    reading.assume(
        "model.pretrained: found true; weights are drawn by seed unless load_path names a folder with those of {}",
        name);
}

/// The adapter of an hf_causal_lm, if the recipe has one.
void read_peft(RecipeReading& reading) {
  const std::string prefix = "model.peft_config.";
  nlohmann::json keys;
  for (const Settings::Entry& entry : reading.in.entries())
    if (entry.key.starts_with(prefix)) keys[entry.key.substr(prefix.size())] = reading.in.value(entry.key);
  if (keys.is_null()) return;
  const char* const dropout = "lora_dropout";
  if (keys.contains(dropout) && keys[dropout].is_number() && keys[dropout] > 0 && keys[dropout] < 1) {
    reading.assume("{}{}: found {}, taken as 0: adapters are trained without dropout", prefix, dropout,
                   keys[dropout].dump());
    keys.erase(dropout);
  }
  reading.run.lora = read_peft_config(YamlMap::from_text(keys.dump(), reading.in.origin() + ": model.peft_config"));
}

/// Classes that activation checkpointing can target. MegaBlocks' experts cannot be one: their class is hidden by a
/// function, which isinstance() refuses (models/utils/act_ckpt.py, layers/ffn.py).
const RecipeWords<Module> kFoundryModules{{"mptblock", Module::block},
                                          {"MPTBlock", Module::block},
                                          {"grouped_query_attention", Module::attention},
                                          {"multihead_attention", Module::attention}};
const char* const kTarget = "model.activation_checkpointing_target";

}  // namespace

void write_foundry_model(RecipeDraft& draft) {
  const ModelSpec& m = draft.run.model;
  if (const std::vector<std::string> beyond = beyond_mpt(m); !beyond.empty())
    throw_usage("model {}: found {}, needs a model of LLM Foundry's mpt_causal_lm, which has none of these", m.name,
                fmt::join(beyond, ", "));
  draft.out.put("model.name", "mpt_causal_lm");
  draft.out.put("model.loss_fn", "fused_crossentropy");
  draft.out.put("model.init_device", m.experts > 0 ? "mixed" : "meta");
  write_rows(kMptRows, draft);
  draft.out.put("model.max_seq_len", m.learned_positions > 0 ? m.learned_positions : draft.run.seq);
  draft.out.put("model.head_dim", m.head_dim);
  draft.out.put("model.learned_pos_emb", m.learned_positions > 0);
  draft.out.put("model.norm_type", m.norm == Norm::rmsnorm ? "rmsnorm" : "layernorm");
  draft.out.put("model.no_bias", !m.ffn_bias && !m.norm_bias);
  draft.out.put("model.attention_bias", m.attention.bias != AttentionSpec::Bias::none);
  write_mpt_attention(m, draft.out);
  write_mpt_ffn(draft);
  draft.why["model.ffn_config.ffn_bias"] = "no_bias is one word for norms and FFNs";
  draft.why["model.norm_bias"] = "no_bias is one word for norms and FFNs";
  draft.why["model.ffn_config.moe_loss_over"] = "MegaBlocks' balancing loss is of a rank's microbatch";
  draft.why["model.attn_config.qk_norm_type"] = "norm_type is one word for all norms";
  draft.why["model"] = "an mpt_causal_lm has no such key";
}

void read_foundry_model(RecipeReading& reading) {
  const std::string kind = reading.in.text("model.name", "mpt_causal_lm");
  if (!reading.model && kind == "mpt_causal_lm") return read_mpt(reading);
  if (kind != "mpt_causal_lm" && kind != "hf_causal_lm")
    reading.in.fail("model.name", "found {}, needs mpt_causal_lm or hf_causal_lm: decoders alone", kind);
  reading.run.layout.expert = reading.in.integer(kFfn + "moe_world_size", 1, 1);
  read_hugging_face(reading, kind);
  read_peft(reading);
}

void write_foundry_recompute(RecipeDraft& draft) {
  const Recompute recompute = draft.run.layout.recompute.as_ranges(draft.run.model.layers);
  draft.out.put("fsdp_config.activation_checkpointing", recompute.any());
  draft.why["fsdp_config.activation_checkpointing_target"] = "LLM Foundry recomputes blocks or attention";
  if (modules_of(recompute) == std::vector{Module::block} && recompute.rules().front().blocks.empty()) return;
  for (const Recompute::Rule& rule : recompute.rules()) {
    const std::string word = word_of(kFoundryModules, rule.module, "mptblock");
    Recompute one;
    one.add(rule);
    const std::string text = to_string(one), blocks = rule.blocks.empty() ? "" : text.substr(text.find(':') + 1);
    if (!draft.out.has_under(kTarget) || word != "mptblock")
      draft.out.put(std::string(kTarget) + "." + word,
                    blocks.empty() ? fmt::format("first-{}", draft.run.model.layers) : blocks);
  }
}

void read_foundry_recompute(RecipeReading& reading) {
  const bool on = reading.in.boolean("fsdp_config.activation_checkpointing", false);
  const std::vector<std::string> all = reading.in.texts(kTarget);
  std::vector<std::pair<std::string, std::string>> rules;
  for (const std::string& word : all) rules.emplace_back(word, "");
  for (const Settings::Entry& entry : reading.in.entries())
    if (entry.key.starts_with(std::string(kTarget) + "."))
      rules.emplace_back(entry.key.substr(std::string(kTarget).size() + 1), reading.in.text(entry.key, ""));
  if (!on) return;
  Recompute& out = reading.run.layout.recompute;
  if (rules.empty()) out = Recompute::block;
  for (const auto& [word, blocks] : rules) {
    const auto module = meaning_of(kFoundryModules, word);
    if (!module) {
      reading.assume("{}: found {}, taken as nothing", kTarget, word);
      continue;
    }
    const std::string every = fmt::format("first-{}", reading.run.model.layers);
    const Recompute one =
        recompute_from_string(to_string(*module) + (blocks.empty() || blocks == every ? "" : ":" + blocks));
    out.add(one.rules().front());
  }
}

}  // namespace wt
