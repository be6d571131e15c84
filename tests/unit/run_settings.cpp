// By its settings a checkpoint knows whether a run may go on from it. The keys are those that the reader asks for: one
// that is new fails here until it is changed below, or the reason stands why it may change.
#include "configs/files/run_settings.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"

using namespace wt;

namespace {

const std::string kRun =
    "{max_duration: 12ba, max_seq_len: 64, global_train_batch_size: 8, device_train_microbatch_size: 2, model: {name: "
    "m, n_layers: 4, d_model: 64, n_heads: 4, vocab_size: 256, ffn_config: {ffn_hidden_size: 96, moe_num_experts: 8, "
    "moe_top_k: 2}}, train_loader: {dataset: {local: /data}}}";

YAML::Node at(YAML::Node node, const std::string& dotted) {
  std::istringstream names(dotted);
  for (std::string name; std::getline(names, name, '.');) node.reset(node[name]);
  return node;
}

/// "optimizer.lr: 0.1" sets that key; "optimizer.lr:" takes it out.
std::string with(const std::string& run, const std::vector<std::string>& assignments) {
  YAML::Node root = YAML::Load(run);
  for (const std::string& each : assignments) {
    const std::string key = each.substr(0, each.find(':')), value = each.substr(each.find(':') + 1);
    const std::size_t dot = key.rfind('.');
    if (value.empty())
      at(root, dot == std::string::npos ? "" : key.substr(0, dot)).remove(key.substr(dot + 1));
    else
      at(root, key) = YAML::Load(value);
  }
  YAML::Emitter out;
  out << root;
  return out.c_str();
}

RunSettings settings_of(const std::string& text) { return run_settings(run_from_text(text, "run.yaml")); }

/// Every key that the reader looked for in that text, there or not.
std::set<std::string> asked(const std::string& text) try {
  run_from_text(with(text, {"no_such_key: 1"}), "run.yaml");
  return {};
} catch (const UnknownKey& e) {
  return e.asked();
}

/// A setting that makes another run of one that has `before`.
struct Other {
  std::string now;  ///< "key: value"
  std::vector<std::string> before = {};
};

const std::vector<std::string> kDense{"model.ffn_config: {ffn_hidden_size: 96}"};
const std::vector<std::string> kLatent{
    "model.attn_config: {kv_lora_rank: 16, q_lora_rank: 8, qk_nope_head_dim: 16, qk_rope_head_dim: 8, v_head_dim: 16}"};
const std::vector<std::string> kLowRankOutput{"model.attn_config: {o_lora_rank: 16, o_groups: 1}"};
const std::vector<std::string> kIndexer{"model.attn_config: {index_topk: 8, index_n_heads: 2, index_head_dim: 16}"};
const std::vector<std::string> kMixers{
    "model.linear_config: {kind: gated_delta_net, layers: [1, 0], key_heads: 2, value_heads: 4, key_head_dim: 16, "
    "value_head_dim: 16, chunk: 64}"};
const std::vector<std::string> kYarn{
    "model.attn_config.rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 16}"};
const std::vector<std::string> kLlama3{
    "model.attn_config.rope_scaling: {rope_type: llama3, factor: 4, original_max_position_embeddings: 16, "
    "low_freq_factor: 1, high_freq_factor: 4}"};
const std::vector<std::string> kStreams{
    "train_loader.dataset: {streams: {a: {local: /a, proportion: 1}, b: {local: /b, proportion: 2}}}"};
const std::vector<std::string> kPlainStreams{"train_loader.dataset: {streams: {a: {local: /a}, b: {local: /b}}}"};
const std::vector<std::string> kExamples{"train_loader.name: finetuning"};

const std::vector<Other> kOthers{
    {"seed: 18"},
    {"max_seq_len: 32"},
    {"global_train_batch_size: 16"},
    {"precision: amp_bf16"},
    {"precisions.forward: fp8", {"precision: amp_bf16"}},
    {"precisions.input_gradients: fp8", {"precision: amp_bf16"}},
    {"precisions.weight_gradients: fp8", {"precision: amp_bf16"}},
    {"precisions.attention: fp8", {"precision: amp_bf16"}},
    {"precisions.dispatch: fp8", {"precision: amp_bf16"}},
    {"precisions.gathered_weights: fp8", {"precision: amp_bf16"}},
    {"precisions.master_weights: bf16", {"precision: amp_bf16"}},
    {"precisions.moments: bf16", {"precision: amp_bf16"}},
    {"optimizer.name: decoupled_lionw"},
    {"optimizer.orthogonalize: everywhere", {"optimizer.name: muon"}},
    {"optimizer.beta1: 0.8"},
    {"optimizer.beta2: 0.99"},
    {"optimizer.betas: [0.8, 0.95]"},
    {"optimizer.eps: 1e-7"},
    {"model.n_layers: 6"},
    {"model.d_model: 128"},
    {"model.n_heads: 2"},
    {"model.vocab_size: 512"},
    {"model.norm_type: layernorm"},
    {"model.norm_bias: true", {"model.norm_type: layernorm"}},
    {"model.norm_eps: 0.9"},
    {"model.norm_placement: both"},
    {"model.tie_word_embeddings: true"},
    {"model.learned_pos_emb: true", {"model.max_seq_len: 64"}},
    {"model.max_seq_len: 128", {"model.max_seq_len: 64", "model.learned_pos_emb: true"}},
    {"model.mtp_num_layers: 1"},
    {"model.attn_config.kv_n_heads: 2"},
    {"model.attn_config.head_dim: 32"},
    {"model.attn_config.kv_lora_rank: 32", kLatent},
    {"model.attn_config.q_lora_rank: 16", kLatent},
    {"model.attn_config.qk_nope_head_dim: 32", kLatent},
    {"model.attn_config.qk_rope_head_dim: 16", kLatent},
    {"model.attn_config.v_head_dim: 32", kLatent},
    {"model.attn_config.qk_ln: true"},
    {"model.attn_config.qk_gn: true"},
    {"model.attn_config.qk_norm_type: layernorm", {"model.attn_config.qk_ln: true"}},
    {"model.attn_config.clip_qkv: 0.01"},
    {"model.attn_config.shared_kv: true"},
    {"model.attn_config.o_lora_rank: 8", kLowRankOutput},
    {"model.attn_config.o_groups: 2", kLowRankOutput},
    {"model.attn_config.index_topk: 4", kIndexer},
    {"model.attn_config.index_n_heads: 4", kIndexer},
    {"model.attn_config.index_head_dim: 8", kIndexer},
    {"model.attn_config.alibi: true"},
    {"model.attn_config.rope_theta: 500000"},
    {"model.attn_config.rope_scaling: {rope_type: linear, factor: 4}"},
    {"model.attn_config.rope_scaling.factor: 2", kYarn},
    {"model.attn_config.rope_scaling.original_max_position_embeddings: 32", kYarn},
    {"model.attn_config.rope_scaling.attention_factor: 2", kYarn},
    {"model.attn_config.rope_scaling.beta_fast: 16", kYarn},
    {"model.attn_config.rope_scaling.beta_slow: 2", kYarn},
    {"model.attn_config.rope_scaling.mscale: 0.5", kYarn},
    {"model.attn_config.rope_scaling.mscale_all_dim: 0.5", kYarn},
    {"model.attn_config.rope_scaling.truncate: false", kYarn},
    {"model.attn_config.rope_scaling.low_freq_factor: 2", kLlama3},
    {"model.attn_config.rope_scaling.high_freq_factor: 8", kLlama3},
    {"model.attn_config.attention_bias: qkv"},
    {"model.attn_config.parallel_attn: true", kDense},
    {"model.attn_config.num_ln_in_parallel_attn: 2", {kDense[0], "model.attn_config.parallel_attn: true"}},
    {"model.attn_config.sliding_window: 16"},
    {"model.attn_config.attention_chunk_size: 16"},
    {"model.attn_config.sliding_window_layers: [1, 0]", {"model.attn_config.sliding_window: 16"}},
    {"model.attn_config.attention_output_gate: true"},
    {"model.attn_config.attention_sinks: true"},
    {"model.linear_config: {layers: [1, 0], key_heads: 2, value_heads: 4, key_head_dim: 16, value_head_dim: 16, chunk: "
     "64}"},
    {"model.linear_config.kind: mamba2", kMixers},
    {"model.linear_config.layers: [1, 1, 0]", kMixers},
    {"model.linear_config.key_heads: 4", kMixers},
    {"model.linear_config.value_heads: 2", kMixers},
    {"model.linear_config.key_head_dim: 32", kMixers},
    {"model.linear_config.value_head_dim: 32", kMixers},
    {"model.linear_config.conv_kernel: 8", kMixers},
    {"model.linear_config.chunk: 32", kMixers},
    {"model.ffn_config.moe_latent_size: 32"},
    {"model.ffn_config.ffn_type: mptmlp", kDense},
    {"model.ffn_config.activation: geglu"},
    {"model.ffn_config.ffn_layers: [1, 0]"},
    {"model.ffn_config.ffn_hidden_size: 128"},
    {"model.ffn_config.ffn_bias: true"},
    {"model.ffn_config.moe_num_experts: 4"},
    {"model.ffn_config.moe_top_k: 1"},
    {"model.ffn_config.first_k_dense: 2",
     {"model.ffn_config.first_k_dense: 1", "model.ffn_config.dense_ffn_hidden_size: 96"}},
    {"model.ffn_config.dense_ffn_hidden_size: 192",
     {"model.ffn_config.first_k_dense: 1", "model.ffn_config.dense_ffn_hidden_size: 96"}},
    {"model.ffn_config.moe_layer_freq: [1, 0]",
     {"model.ffn_config.first_k_dense: 1", "model.ffn_config.dense_ffn_hidden_size: 96"}},
    {"model.ffn_config.shared_expert_hidden_size: 96"},
    {"model.ffn_config.moe_score_function: sigmoid"},
    {"model.ffn_config.moe_normalize_expert_weights: false"},
    {"model.ffn_config.moe_route_scale: 5"},
    {"model.ffn_config.moe_n_group: 4", {"model.ffn_config.moe_n_group: 2", "model.ffn_config.moe_topk_group: 1"}},
    {"model.ffn_config.moe_topk_group: 1", {"model.ffn_config.moe_n_group: 4"}},
    {"model.ffn_config.moe_group_worth: best",
     {"model.ffn_config.moe_n_group: 4", "model.ffn_config.moe_topk_group: 2"}},
    {"model.ffn_config.moe_loss_over: microbatch"},
    {"model.ffn_config.moe_capacity_factor: 0.5"},
    {"model.ffn_config.moe_pad_expert_input_to_capacity: true", {"model.ffn_config.moe_capacity_factor: 1.25"}},
    {"model.ffn_config.expert_assignment: zipf"},
    {"model.ffn_config.expert_assignment: balanced"},
    {"model.ffn_config.zipf_exponent: 2", {"model.ffn_config.expert_assignment: zipf"}},
    {"model.ffn_config.moe_bias_update_rate: 0.001"},  // a state that was not there
    {"train_loader.name: finetuning"},
    {"train_loader.dataset.target_prompts: all", kExamples},
    {"train_loader.dataset.target_responses: all", kExamples},
    {"train_loader.dataset.packing_ratio: 2", kExamples},
    {"train_loader.dataset.eos_token_id: 1", kExamples},
    {"train_loader.dataset.streams.c: {local: /c, proportion: 1}", kStreams},
    {"train_loader.dataset: {streams: {b: {local: /b, proportion: 2}, a: {local: /a, proportion: 1}}}", kStreams},
    {"train_loader.dataset.streams.a.proportion: 3", kStreams},
    {"train_loader.dataset.streams.a.repeat: 2", kPlainStreams},
    {"train_loader.dataset.streams.a.choose: 7", kPlainStreams},
    {"train_loader.dataset.epoch_size: 100"},
    {"train_loader.dataset.sampling_method: fixed"},
    {"train_loader.dataset.sampling_granularity: 2"},
    {"train_loader.dataset.batching_method: stratified"},
    {"train_loader.dataset.shuffle: false"},
    {"train_loader.dataset.shuffle_algo: py1s"},
    {"train_loader.dataset.shuffle_seed: 1"},
    {"train_loader.dataset.shuffle_block_size: 1000"},
    {"train_loader.dataset.num_canonical_nodes: 2"}};

struct MayChange {
  std::string why;
  std::vector<std::string> before = {};
};

/// "key: value" that a run goes on with; why, and what it had before.
const std::map<std::string, MayChange> kMayChangeHere{
    {"model.name: n", {"a label"}},
    {"model.approximations: [a window]", {"words for people"}},
    {"model.source: elsewhere", {"a label, which no run file of ours writes"}},
    {"model.mtp_loss_scaling_factor: 0.1", {"a weight of a loss, lowered on purpose", {"model.mtp_num_layers: 1"}}},
    {"model.ffn_config.moe_loss_weight: 0.1", {"a weight of a loss"}},
    {"model.ffn_config.moe_zloss_weight: 0.1", {"a weight of a loss"}},
    {"model.ffn_config.moe_bias_update_rate: 0.0001",
     {"how fast a bias moves that is there", {"model.ffn_config.moe_bias_update_rate: 0.001"}}},
    {"optimizer.lr: 0.1", {"tuned on purpose"}},
    {"optimizer.weight_decay: 0.2", {"tuned on purpose"}},
    {"optimizer.offload_fraction: 0.5", {"where the state lies"}},
    {"train_loader.dataset.local: /elsewhere", {"where samples are; what they are, the sampler compares"}},
    {"train_loader.dataset.remote: /elsewhere", {"likewise"}},
    {"train_loader.dataset.split: train", {"likewise"}},
    {"train_loader.dataset.streams.a.local: /elsewhere", {"likewise", kStreams}},
    {"train_loader.dataset.streams.a.remote: /elsewhere", {"likewise", kStreams}},
    {"train_loader.dataset.streams.a.split: train", {"likewise", kStreams}},
    {"train_loader.dataset.download_retry: 3", {"how a sample comes"}},
    {"train_loader.dataset.download_timeout: 3", {"how a sample comes"}},
    {"train_loader.dataset.validate_hash: sha1", {"how a sample is checked"}},
    {"train_loader.dataset.keep_zip: true", {"what is kept"}},
    {"train_loader.dataset.streams.a.download_retry: 3", {"how a sample comes", kStreams}},
    {"train_loader.dataset.streams.a.download_timeout: 3", {"how a sample comes", kStreams}},
    {"train_loader.dataset.streams.a.validate_hash: sha1", {"how a sample is checked", kStreams}},
    {"train_loader.dataset.streams.a.keep_zip: true", {"what is kept", kStreams}},
    {"train_loader.dataset.partition_algo: orig", {"gives the same batches"}},
    {"train_loader.dataset.predownload: 9", {"how far ahead is read"}},
    {"train_loader.dataset.cache_limit: 1gb", {"what is kept"}},
    {"train_loader.dataset.replication: 1", {"follows the layout, which it is checked against"}},
    {"train_loader.curriculum: [{at: 5ba, proportions: {a: 1, b: 1}}]",
     {"new entries come later; the sampler compares those that were used", kStreams}}};

/// Keys with one value, or that a reader has only to refuse them.
const std::map<std::string, std::string> kNothingToChange{
    {"model.simulated_only", "a model with entries is not trained"},
    {"model.attn_config", "a map"},
    {"model.ffn_config", "a map"},
    {"model.model_type", "makes a config.json of the map, which is written with our keys"},
    {"model.attn_config.rope_scaling.rope_type", "changed with its map: each kind has keys of its own"},
    {"model.peft_config", "an adapter's record in the checkpoint, adapter_json(), is compared"},
    {"train_loader.dataset", "a map"},
    {"train_loader.dataset.streams", "a map"},
    {"train_loader.dataset.streams.a", "a map"},
    {"train_loader.drop_last", "only true is accepted"},
    {"train_loader.dataset.allow_unsafe_types", "only false is accepted"},
    {"train_loader.dataset.stream_name", "refused"},
    {"train_loader.dataset.stream_config", "refused"}};

std::string key_of(const std::string& assignment) { return assignment.substr(0, assignment.find(':')); }

/// Streams are alike, and a curriculum is changed as a whole.
std::string as_tried(std::string key) {
  const std::string streams = "train_loader.dataset.streams.", curriculum = "train_loader.curriculum";
  if (key.starts_with(curriculum)) return curriculum;
  if (key.starts_with(streams)) key[streams.size()] = 'a';
  return key;
}

bool is_compared(const std::string& key) {
  for (const char* part : {"model", "optimizer", "train_loader", "precision", "precisions"})
    if (key == part || key.starts_with(std::string(part) + ".")) return true;
  return false;
}

}  // namespace

TEST_CASE("every key of model, optimizer, data and precision makes another run, or may change for a reason") {
  std::set<std::string> keys, tried{"model", "optimizer", "train_loader", "precisions"};
  for (const Other& other : kOthers) {
    INFO(other.now);
    const std::string before = with(kRun, other.before), after = with(before, {other.now});
    const auto changes = changed_settings(settings_of(before), settings_of(after));
    CHECK(std::any_of(changes.begin(), changes.end(), [](const SettingChange& c) { return !c.allowed; }));
    keys.merge(asked(after));
    tried.insert(key_of(other.now));
  }
  for (const auto& [now, may] : kMayChangeHere) {
    INFO(now << ": " << may.why);
    const std::string before = with(kRun, may.before), after = with(before, {now});
    for (const SettingChange& change : changed_settings(settings_of(before), settings_of(after))) {
      INFO(change.key);
      CHECK(change.allowed);
    }
    keys.merge(asked(after));
    tried.insert(key_of(now));
  }
  for (const auto& [key, why] : kNothingToChange) {
    INFO(key << ": " << why);
    CHECK(keys.contains(key));
    tried.insert(key);
  }
  REQUIRE(keys.size() > 100);
  for (const std::string& key : keys) {
    INFO(key);
    if (is_compared(key)) CHECK(tried.contains(as_tried(key)));
  }
}

TEST_CASE("what was changed on purpose is told with both values; what does not touch training is not") {
  const RunSettings was = settings_of(with(kRun, {"optimizer.lr: 0.0003"}));
  const auto changes = changed_settings(
      was, settings_of(with(kRun, {"optimizer.lr: 0.001", "save_interval: 3ba", "dist_timeout: 30",
                                   "fsdp_config.data_parallel_shard_degree: 2", "scheduler.t_max: 40ba"})));
  REQUIRE(changes.size() == 4);
  CHECK((changes[0].key == "fsdp_config.data_parallel_shard_degree" && changes[0].was == "1" && changes[0].now == "2"));
  CHECK(changes[1].key == "fsdp_config.optimizer_shard_degree");
  CHECK((changes[2].key == "optimizer.lr" && changes[2].was == "0.0003" && changes[2].now == "0.001"));
  CHECK((changes[3].key == "scheduler.t_max" && changes[3].was == "not set" && changes[3].now == "40ba"));
  CHECK(std::all_of(changes.begin(), changes.end(), [](const SettingChange& c) { return c.allowed; }));
}

TEST_CASE("a key that nobody has thought of is part of what a run is") {
  RunSettings now = settings_of(kRun);
  const RunSettings was = now;
  now["invented"] = "1";
  CHECK(changed_settings(was, was).empty());
  REQUIRE(changed_settings(was, now).size() == 1);
  CHECK_FALSE(changed_settings(was, now)[0].allowed);
}
