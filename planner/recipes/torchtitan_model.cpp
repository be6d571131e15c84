// Models of torchtitan 0.2.2: the flavors in models/*/__init__.py. Those that are no preset of ours are a preset's
// architecture with other numbers.
#include <fmt/format.h>

#include <algorithm>

#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "planner/recipes/model_names.hpp"
#include "planner/recipes/torchtitan.hpp"

namespace wt {
namespace {

/// 0 = the preset's number.
struct TitanShape {
  std::int64_t layers = 0, d_model = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
};
struct TitanFlavor {
  const char* name;
  const char* preset;
  TitanShape shape = {};
  void (*more)(ModelSpec&) = nullptr;
};

void all_attend_to_all(ModelSpec& m) {
  m.attention.chunk = 0;
  m.attention.local = {};
}

void without_experts(ModelSpec& m) {
  m.experts = m.top_k = 0;
  m.router = {};
}

void without_experts_tied(ModelSpec& m) {
  without_experts(m);
  m.tied = true;
}

void debug_llama4(ModelSpec& m) {
  m.experts = 8, m.dense_ffn = 768, m.shared_ffn = 512;
  all_attend_to_all(m);
}

void debug_llama4_in_chunks(ModelSpec& m) {
  debug_llama4(m);
  m.attention.chunk = 256;
  m.attention.local = {{false, true, true, true}};
}

void debug_deepseek(ModelSpec& m) { m.experts = 8, m.top_k = 3, m.dense_ffn = 1024, m.shared_ffn = 2 * 256; }

void deepseek_v2(ModelSpec& m) {
  m.experts = 160, m.dense_ffn = 12288, m.shared_ffn = 2 * 1536, m.attention.mla.q_lora_rank = 1536;
  m.router.groups = 8, m.router.top_groups = 3, m.router.group_score = RouterSpec::GroupScore::best;
  m.router.scale = 16;
}

void debug_qwen3_moe(ModelSpec& m) { m.experts = 64; }
void debug_gpt_oss(ModelSpec& m) { m.experts = 8; }

// The widths of Llama's FFNs follow from ffn_dim_multiplier and multiple_of (models/llama3/model/model.py).
const std::vector<TitanFlavor> kFlavors{
    {"llama3/debugmodel", "llama3-8b", {6, 256, 16, 16, 16, 768, 2048}},
    {"llama3/8B", "llama3-8b"},
    {"llama3/70B", "llama3-8b", {80, 8192, 64, 8, 128, 28672, 0}},
    {"llama3/405B", "llama3-405b"},
    {"llama4/debugmodel", "llama4-maverick", {6, 256, 16, 16, 16, 512, 2048}, debug_llama4},
    {"llama4/debugmodel_irope", "llama4-maverick", {6, 256, 16, 16, 16, 512, 2048}, debug_llama4_in_chunks},
    {"llama4/17bx16e", "llama4-scout", {}, all_attend_to_all},
    {"llama4/17bx16e_irope", "llama4-scout"},
    {"llama4/17bx128e", "llama4-maverick", {}, all_attend_to_all},
    {"llama4/17bx128e_irope", "llama4-maverick"},
    {"deepseek_v3/debugmodel", "deepseek-v2-lite", {6, 256, 16, 0, 0, 256, 2048}, debug_deepseek},
    {"deepseek_v3/16B", "deepseek-v2-lite"},
    {"deepseek_v3/236B", "deepseek-v2-lite", {60, 5120, 128, 128, 0, 1536, 0}, deepseek_v2},
    {"deepseek_v3/671B", "deepseek-v3"},
    {"qwen3/debugmodel", "qwen3-30b-a3b", {8, 256, 16, 8, 128, 3072, 2048}, without_experts_tied},
    {"qwen3/0.6B", "qwen3-30b-a3b", {28, 1024, 16, 8, 128, 3072, 0}, without_experts_tied},
    {"qwen3/1.7B", "qwen3-30b-a3b", {28, 2048, 16, 8, 128, 6144, 0}, without_experts_tied},
    {"qwen3/4B", "qwen3-30b-a3b", {36, 2560, 32, 8, 128, 9728, 0}, without_experts_tied},
    {"qwen3/8B", "qwen3-30b-a3b", {36, 4096, 32, 8, 128, 12288, 0}, without_experts},
    {"qwen3/14B", "qwen3-30b-a3b", {40, 5120, 40, 8, 128, 17408, 0}, without_experts},
    {"qwen3/32B", "qwen3-30b-a3b", {64, 5120, 64, 8, 128, 25600, 0}, without_experts},
    {"qwen3/debugmodel_moe", "qwen3-30b-a3b", {8, 256, 16, 8, 128, 768, 2048}, debug_qwen3_moe},
    {"qwen3/30B-A3B", "qwen3-30b-a3b"},
    {"qwen3/235B-A22B", "qwen3-235b-a22b"},
    {"gpt_oss/debugmodel", "gpt-oss-20b", {4, 256, 0, 0, 0, 0, 0}, debug_gpt_oss},
    {"gpt_oss/20b", "gpt-oss-20b"},
    {"gpt_oss/120b", "gpt-oss-120b"}};

ModelSpec model_of(const TitanFlavor& flavor) {
  ModelSpec m = read_model(flavor.preset);
  const std::int64_t layers = m.layers;
  for (const auto& [field, said] : {std::pair{&m.layers, flavor.shape.layers},
                                    {&m.d_model, flavor.shape.d_model},
                                    {&m.heads, flavor.shape.heads},
                                    {&m.kv_heads, flavor.shape.kv_heads},
                                    {&m.head_dim, flavor.shape.head_dim},
                                    {&m.ffn, flavor.shape.ffn},
                                    {&m.vocab, flavor.shape.vocab}})
    if (said > 0) *field = said;
  if (flavor.more != nullptr) flavor.more(m);
  m.mtp_layers = 0;  // flavors have none
  if (m.layers == layers) return m;
  m.name = lower(flavor.name);
  std::ranges::replace(m.name, '/', '-');
  m.source = fmt::format("published: pytorch/torchtitan v0.2.2 torchtitan/models, {}", flavor.name);
  return m;
}

/// Flavors whose mask separates documents: "_flex_attn" and "_varlen_attn" of Llama-3, and some without such an ending.
bool masks_documents(const std::string& flavor) {
  for (const char* ending : {"_flex", "_flex_attn", "_varlen", "_varlen_attn", "_irope"})
    if (flavor.ends_with(ending)) return true;
  return flavor == "deepseek_v3/16B" || flavor == "deepseek_v3/236B" || flavor == "deepseek_v3/671B";
}

/// The name without the ending that only chooses an attention kernel.
std::string without_kernel(std::string flavor) {
  for (const char* ending : {"_flex_attn", "_varlen_attn", "_flex", "_varlen"})
    if (flavor.ends_with(ending)) flavor.resize(flavor.size() - std::string(ending).size());
  return flavor;
}

}  // namespace

void read_titan_model(RecipeReading& reading) {
  std::string name = reading.in.text("model.name", "llama3");
  const std::string flavor = reading.in.text("model.flavor", "debugmodel");
  if (reading.model) return reading.set_model("", "model.flavor", flavor);
  if (name == "llama3_ft") name = "llama3";  // with TorchFT
  const std::string whole = name + "/" + flavor, plain = without_kernel(whole);
  const auto found = std::ranges::find_if(kFlavors, [&](const TitanFlavor& f) { return f.name == plain; });
  if (found == kFlavors.end()) {
    std::vector<std::string> names;
    for (const TitanFlavor& one : kFlavors) names.emplace_back(one.name);
    reading.in.fail("model.flavor",
                    "found {} {}, which is no flavor of torchtitan 0.2.2's language models{}; give --model NAME or its "
                    "config.json",
                    name, flavor, did_you_mean(whole, names));
  }
  reading.run.model = model_of(*found);
  if (!masks_documents(whole)) return;
  reading.assume("model.flavor: found {}, whose mask separates documents, taken as attention over whole sequences",
                 flavor);
  if (reading.in.integer("parallelism.context_parallel_degree", 1, 1) > 1 && whole != "llama3/8B_flex")
    reading.assume("parallelism.context_parallel_degree: torchtitan 0.2.2 refuses it with the attention of flavor {}",
                   flavor);
}

}  // namespace wt
