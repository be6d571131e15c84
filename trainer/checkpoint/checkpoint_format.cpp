#include "trainer/checkpoint/checkpoint_format.hpp"

#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/device/clocks.hpp"

namespace wt {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path step_folder(const fs::path& folder, std::int64_t step) { return folder / step_name(step); }

void name_latest(const fs::path& checkpoint) {
  const fs::path latest = checkpoint.parent_path() / "latest";
  const std::string name = checkpoint.filename().string();
  std::ifstream in(latest);
  if (std::string named; std::getline(in, named) && named == name) return;
  write_file_atomically(latest, name + "\n");
}

std::string shard_file_name(std::int64_t rank, std::size_t index, std::size_t files) {
  return fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", rank + 1, index + 1, files);
}

std::string wait_for(SharedStore& store, const std::string& key, const std::atomic<bool>* given_up, double patience_s) {
  double since = Clocks::now().wall_s;
  std::string moved;
  // Thousands of ranks ask one store: seldom, once it is clear that it takes long.
  for (auto pause = std::chrono::milliseconds(1); !store.has(key);
       pause = std::min(2 * pause, std::chrono::milliseconds(250))) {
    if (given_up && *given_up) throw_error(Code::runtime, "{}: given up, because the run ended", key);
    if (const double now = Clocks::now().wall_s; now - since > patience_s) {
      const std::string moves = store.has(kStorageMoves) ? store.get(kStorageMoves) : "";
      if (std::exchange(moved, moves) == moves)
        throw_error(Code::runtime, "{}: nothing heard for {:.0f} min; is a rank or the storage stuck?", key,
                    patience_s / 60);
      since = now;
    }
    std::this_thread::sleep_for(pause);
  }
  return store.get(key);
}

json model_json(const ModelSpec& m) {
  json out{{"layers", m.layers},
           {"d_model", m.d_model},
           {"heads", m.heads},
           {"kv_heads", m.kv_heads},
           {"head_dim", m.head_dim},
           {"ffn", m.ffn},
           {"experts", m.experts},
           {"top_k", m.top_k},
           {"vocab", m.vocab},
           {"dense_layers", m.dense_layers},
           {"dense_ffn", m.dense_ffn},
           {"shared_ffn", m.shared_ffn},
           {"tied", m.tied},
           {"layernorm", m.norm == Norm::layernorm},
           {"norm_bias", m.norm_bias},
           {"gelu", m.activation == Activation::gelu},
           {"alibi", m.attention.alibi},
           {"rope_theta", m.attention.rope_theta},
           {"qk_norm", static_cast<int>(m.attention.qk_norm)},
           {"parallel_norms", static_cast<int>(m.attention.parallel)},
           {"kv_lora_rank", m.attention.mla.kv_lora_rank},
           {"sigmoid", m.router.score == RouterSpec::Score::sigmoid},
           {"router_bias", m.router.bias_update_rate > 0}};
  // Only where they are not usual, so that checkpoints without them stay readable.
  if (m.attention.rope_scaling.on()) {
    json& scaling = out["rope_scaling"] = {{"rope_type", to_string(m.attention.rope_scaling.kind)}};
    for_rope_fields(m.attention.rope_scaling.kind,
                    [&](const char* key, auto member, bool) { scaling[key] = m.attention.rope_scaling.*member; });
  }
  if (m.attention.bias != AttentionSpec::Bias::none)
    out["attention_bias"] = m.attention.bias == AttentionSpec::Bias::all ? "all" : "qkv";
  if (m.attention.any_local())
    out["local_attention"] = {m.attention.window, m.attention.chunk, m.attention.local.repeats};
  if (!m.moe_pattern.repeats.empty()) out["moe_layers"] = m.moe_pattern.repeats;
  if (m.mtp_layers > 0) out["mtp_layers"] = m.mtp_layers;
  if (m.learned_positions > 0) out["learned_positions"] = m.learned_positions;
  for (const auto& [key, on] : {std::pair{"attention_sinks", m.attention.sinks},
                                {"ffn_bias", m.ffn_bias},
                                {"qk_layernorm", m.attention.qk_layernorm},
                                {"gelu_tanh", m.activation == Activation::gelu_tanh},
                                {"geglu", m.activation == Activation::geglu},
                                {"geglu_tanh", m.activation == Activation::geglu_tanh},
                                {"clamped_swiglu", m.activation == Activation::clamped_swiglu}})
    if (on) out[key] = true;
  return out;
}

/// What else decides which sample comes when. Where the shards are does not, nor do later entries of a curriculum,
/// which the sampler's state compares.
json order_json(const DatasetSpec& d) {
  json streams = json::array();
  for (const StreamSpec& s : d.streams) {
    json stream = {{"name", s.name}};
    if (s.proportion) stream["proportion"] = *s.proportion;
    if (s.repeat) stream["repeat"] = *s.repeat;
    if (s.choose) stream["choose"] = *s.choose;
    streams.push_back(std::move(stream));
  }
  json out = {{"streams", streams},
              {"sampling_method", to_string(d.sampling_method)},
              {"sampling_granularity", d.sampling_granularity},
              {"batching_method", to_string(d.batching_method)},
              {"shuffle", d.shuffle},
              {"num_canonical_nodes", d.num_canonical_nodes}};
  if (d.shuffle) out["shuffle_algo"] = to_string(d.shuffle_algorithm);
  if (d.epoch_size) out["epoch_size"] = *d.epoch_size;
  if (d.shuffle_block_size) out["shuffle_block_size"] = *d.shuffle_block_size;
  if (!d.finetuning) return out;
  out["packing_ratio"] = d.finetuning->packing_ratio;
  if (d.finetuning->eos_token_id) out["eos_token_id"] = *d.finetuning->eos_token_id;  // examples' lengths: the packing
  return out;
}

json adapter_json(const RunSpec& run) {
  if (!run.lora) return {};
  return {{"r", run.lora->rank},
          {"lora_alpha", run.lora->alpha},
          {"target_modules", run.lora->target_modules},
          {"load_path", run.load_path},
          {"base_model_name_or_path", run.adapter_base}};
}

bool is_of_adapter(const json& saved, const RunSpec& run) {
  const json expected = adapter_json(run);
  if (saved.is_null() || expected.is_null()) return saved == expected;
  const auto same = [&](const char* key) { return saved.at(key) == expected.at(key); };
  return same("r") && same("lora_alpha") && same("target_modules") &&
         (!saved.contains("load_path") || same("load_path"));
}

json data_json(const RunSpec& run) {
  return {{"max_seq_len", run.seq},
          {"global_train_batch_size", run.global_batch},
          {"seed", run.seed},
          {"shuffle_seed", run.dataset.shuffle_seed},
          {"order", order_json(run.dataset)}};
}

}  // namespace wt
