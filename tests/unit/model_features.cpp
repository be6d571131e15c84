// Shapes that models of today have: experts in some layers alone, attention windows and sinks, biases of experts, and
// multi-token prediction. What they count, what the step program makes of them, and who refuses them.
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/yaml.hpp"
#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"
#include "sim/cost/kernels/attention_times.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Contains;
using test::usage_error;

namespace {

ModelSpec small() {
  ModelSpec m;
  m.name = "small";
  m.layers = 4, m.d_model = 64, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.ffn = 32, m.experts = 8, m.top_k = 2;
  m.dense_ffn = 96, m.shared_ffn = 32, m.vocab = 128;
  return m;
}

ModelSpec hugging_face(const std::string& json) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "config.json", json);
  return read_model(folder.path().string());
}

ModelSpec from_text(const std::string& text) {
  YamlMap map = YamlMap::from_text(text, "model.yaml");
  ModelSpec model = model_from_yaml(map);
  map.finish();
  return model;
}

std::string yaml_of(const ModelSpec& model) {
  YAML::Emitter out;
  model_to_yaml(model, out);
  return out.c_str();
}

constexpr std::int64_t kSeq = 64;

ProgramSet programs_of(const ModelSpec& model, const Layout& layout) {
  return build_program_set(model, layout, {kSeq, 2, Precision::bf16, false});
}

/// FLOPs of products and attention in a microbatch's forward pass; heads compute forward and backward in one op.
double forward_flops(const ProgramSet& set, double rows) {
  double sum = 0;
  for (const Program& program : set.programs)
    for (const OpInstance& instance : unroll(program))
      if (instance.microbatch == 0)
        for (const WorkItem& item : instance.op->work)
          if (item.pass == Pass::forward &&
              (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm || item.kernel == Kernel::attention))
            sum += item.flops(rows);
  return sum;
}

Layout pipeline_of(std::int64_t stages) {
  Layout layout;
  layout.pipeline = stages;
  layout.reshard_after_forward = layout.reduce_every_microbatch = false;
  return layout;
}

const std::string kWidths =
    R"("hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "intermediate_size": 96)";

std::vector<std::int64_t> layers_with_experts(const ModelSpec& m) {
  std::vector<std::int64_t> out;
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    if (m.moe(layer)) out.push_back(layer);
  return out;
}

}  // namespace

TEST_CASE("parameters of models of 2024 and 2025 are those that their authors publish") {
  struct Published {
    const char* name;
    double total, active;
    int left_out;  ///< of the active ones: the input embedding, the output projection, too
  };
  // gpt-oss: model card, table 1. DeepSeek-V3: README_WEIGHTS.md. Kimi-K2: the checkpoint's tensors and the report.
  // Qwen3, Llama-4, GLM-4.5: model cards, which round to 1 B; of Llama-4 without the vision part.
  for (const Published& p : {Published{"gpt-oss-20b", 20.91e9, 3.61e9, 1},
                             {"gpt-oss-120b", 116.83e9, 5.13e9, 1},
                             {"deepseek-v3", 671e9, 36.6e9, 1},
                             {"kimi-k2", 1026.47e9, 32.6e9, 0},
                             {"qwen3-235b-a22b", 235e9, 22e9, 0},
                             {"llama4-maverick", 400e9, 17e9, 0},
                             {"llama4-scout", 108e9, 17e9, 0},
                             {"glm-4.5-air", 106e9, 12e9, 2}}) {
    ModelSpec m = read_model(p.name);
    m.mtp_layers = 0;  // published without
    INFO(p.name << " " << m.total_parameters() << " " << m.active_parameters());
    CHECK(static_cast<double>(m.total_parameters()) == Approx(p.total).epsilon(0.01));
    const double active = static_cast<double>(m.active_parameters() - p.left_out * m.embedding_parameters());
    CHECK(active == Approx(p.active).epsilon(0.03));
  }
  const ModelSpec v3 = read_model("deepseek-v3");
  ModelSpec main = v3;
  main.mtp_layers = 0;
  CHECK(static_cast<double>(v3.total_parameters() - main.total_parameters()) == Approx(11.5e9).epsilon(0.01));
}

TEST_CASE("parameters are those that transformers 4.57 counts in its own models") {
  const std::string small =
      R"("hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128, "intermediate_size": 96, )";
  const std::string experts = R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, )";
  const auto count = [&](const std::string& keys) { return hugging_face("{" + small + keys + "}").total_parameters(); };
  CHECK(count(R"("model_type": "gpt_oss", "head_dim": 16, "num_local_experts": 8, "num_experts_per_tok": 2)") ==
        666992);
  CHECK(count(R"("model_type": "llama4_text", "head_dim": 16, "intermediate_size_mlp": 160, "num_local_experts": 8,
                 "num_experts_per_tok": 1, "moe_layers": [1, 3])") == 460352);
  CHECK(count(R"("model_type": "glm4_moe", "head_dim": 16, "moe_intermediate_size": 32, "n_routed_experts": 8,
                 "num_experts_per_tok": 2, "n_shared_experts": 2, "first_k_dense_replace": 1, "attention_bias": true,
                 "use_qk_norm": true)") == 271040);
  CHECK(count(experts +
              R"("model_type": "qwen3_moe", "head_dim": 16, "decoder_sparse_step": 2, "mlp_only_layers": [3])") ==
        171200);
  // The gate of shared experts, of one layer d_model weights, is left out.
  CHECK(count(experts +
              R"("model_type": "qwen2_moe", "decoder_sparse_step": 2, "shared_expert_intermediate_size": 48)") ==
        221376 - 2 * 64);
  CHECK(count(R"("model_type": "mistral")") == 139840);
  CHECK(count(R"("model_type": "llama", "mlp_bias": true)") == 140864);
  CHECK(read_model("gpt-oss-20b").total_parameters() == 20914757184);
  CHECK(read_model("gpt-oss-120b").total_parameters() == 116829156672);
}

TEST_CASE("experts are in the layers that each family's config.json says") {
  using Layers = std::vector<std::int64_t>;
  const std::string qwen =
      R"({"model_type": "qwen3_moe", "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2, )" +
      kWidths;
  CHECK(layers_with_experts(hugging_face(qwen + R"(, "decoder_sparse_step": 2})")) == Layers{1, 3, 5, 7});
  CHECK(layers_with_experts(hugging_face(qwen + R"(, "decoder_sparse_step": 2, "mlp_only_layers": [3]})")) ==
        Layers{1, 5, 7});
  CHECK(hugging_face(qwen + R"(, "mlp_only_layers": []})").moe_pattern.repeats.empty());
  const std::string llama4 =
      R"({"model_type": "llama4", "text_config": {"intermediate_size_mlp": 48, "num_local_experts": 8, )" + kWidths;
  const ModelSpec maverick = hugging_face(llama4 + R"(, "interleave_moe_layer_step": 2}})");
  CHECK(layers_with_experts(maverick) == Layers{1, 3, 5, 7});
  CHECK(maverick.ffn_width(0) == 48);
  CHECK(maverick.ffn_width(1) == 96);  // shared expert
  CHECK(maverick.vocab == 100);
  CHECK(layers_with_experts(hugging_face(llama4 + R"(, "moe_layers": [2, 6]}})")) == Layers{2, 6});
  CHECK(maverick.attention.chunk == 8192);
  CHECK(maverick.local_attention(2));
  CHECK_FALSE(maverick.local_attention(3));
  CHECK(hugging_face(llama4 + R"(, "no_rope_layers": [0, 1, 1, 1, 1, 1, 1, 1]}})").local_attention(3));
  const std::string latent =
      R"({"model_type": "deepseek_v3", "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8,
          "moe_intermediate_size": 32, "num_experts_per_tok": 2, "first_k_dense_replace": 3, "moe_layer_freq": 2, "num_nextn_predict_layers": 1, )";
  const ModelSpec deepseek = hugging_face(latent + kWidths + "}");
  CHECK(layers_with_experts(deepseek) == Layers{4, 6});
  CHECK(deepseek.mtp_layers == 1);
  CHECK_FALSE(deepseek.moe(8));  // a module is as the last layer
  CHECK(deepseek.moe_layers() == 2);

  const std::string ours =
      "name: m\nn_layers: 6\nd_model: 64\nn_heads: 4\nvocab_size: 100\nffn_config: "
      "{ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, dense_ffn_hidden_size: 64, ";
  CHECK(layers_with_experts(from_text(ours + "moe_layer_freq: 3}")) == Layers{0, 3});  // Megatron's number
  CHECK(layers_with_experts(from_text(ours + "moe_layer_freq: [0, 1]}")) == Layers{1, 3, 5});
  CHECK(layers_with_experts(from_text(ours + "moe_layer_freq: [0, 1], first_k_dense: 2}")) == Layers{3, 5});
  CHECK_THAT(usage_error([&] { from_text(ours + "moe_layer_freq: [0, 2]}"); }),
             Contains("found 2, allowed are 0 and 1"));
  CHECK_THAT(usage_error([&] { from_text(ours + "moe_layer_freq: [0]}"); }), Contains("found no layer with experts"));
  CHECK_THAT(usage_error([&] { from_text(ours + "moe_layer_freq: x}"); }), Contains("moe_layer_freq"));
  CHECK_THAT(usage_error([&] { hugging_face(qwen + R"(, "mlp_only_layers": [9]})"); }),
             Contains("mlp_only_layers: found 9, reads numbers of layers"));
}

TEST_CASE("windows are read from each family's config.json") {
  const std::string oss =
      R"({"model_type": "gpt_oss", "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": 16, )" + kWidths;
  const ModelSpec gpt_oss = hugging_face(oss + "}");
  CHECK(gpt_oss.local_attention(0));
  CHECK_FALSE(gpt_oss.local_attention(1));
  CHECK(gpt_oss.attention.window == 16);
  CHECK(gpt_oss.attention.sinks);
  CHECK(gpt_oss.ffn_bias);
  CHECK(gpt_oss.activation == Activation::clamped_swiglu);
  std::string types = R"("full_attention")";
  for (int layer = 1; layer < 8; ++layer) types += R"(, "sliding_attention")";
  const ModelSpec listed = hugging_face(oss + R"(, "layer_types": [)" + types + "]}");
  CHECK_FALSE(listed.local_attention(0));
  CHECK(listed.local_attention(7));
  CHECK_THAT(usage_error([&] { hugging_face(oss + R"(, "layer_types": ["full_attention"]})"); }),
             Contains("layer_types"));
  const std::string mistral = R"({"model_type": "mistral", )" + kWidths;
  CHECK(hugging_face(mistral + R"(, "sliding_window": 32})").attention.window == 32);
  CHECK(hugging_face(mistral + R"(, "sliding_window": null})").untrainable().empty());
  CHECK(hugging_face(mistral + "}").attention.window == 4096);
  const std::string qwen2 = R"({"model_type": "qwen2", "sliding_window": 32, )" + kWidths;
  CHECK(hugging_face(qwen2 + R"(, "use_sliding_window": false})").attention.window == 0);
  const ModelSpec upper = hugging_face(qwen2 + R"(, "use_sliding_window": true, "max_window_layers": 6})");
  CHECK_FALSE(upper.local_attention(5));
  CHECK(upper.local_attention(6));
}

TEST_CASE("a window of w keys leaves as many score pairs as counting gives") {
  ModelSpec m = small();
  const auto counted = [](std::int64_t seq, std::int64_t window) {
    double pairs = 0;
    for (std::int64_t query = 0; query < seq; ++query) pairs += static_cast<double>(std::min(query + 1, window));
    return pairs / static_cast<double>(seq);
  };
  CHECK(m.mean_keys(0, 4096) == 2048);
  m.attention.window = 128, m.attention.local = {{true, false}};
  CHECK(m.mean_keys(0, 4096) == Approx(counted(4096, 128)).margin(0.5));
  CHECK(m.mean_keys(1, 4096) == 2048);
  CHECK(m.mean_keys(0, 128) == 64);
  CHECK(m.mean_keys(0, 100) == 50);
  ModelSpec chunks = small();
  chunks.attention.chunk = 512;
  CHECK(chunks.mean_keys(0, 4096) == 256);
  const WorkItem all = make_item(Kernel::attention, Pass::forward, Precision::bf16, {2, 0}, {4096, 4, 2, 16});
  WorkItem window = all;
  window.window = 128;
  CHECK(window.flops(0) / all.flops(0) == Approx(m.mean_keys(0, 4096) / 2048));
  window.window = 4096;
  CHECK(window.flops(0) == all.flops(0));
  CHECK(all.shape(0).count("window") == 0);
}

TEST_CASE("a window shortens a fused kernel by less than its FLOPs, and an unfused one not at all") {
  const DataSheet gpu = *data_sheet("H100-SXM-80GB");
  WorkItem item = make_item(Kernel::attention, Pass::forward, Precision::bf16, {2, 0}, {8192, 32, 8, 128});
  const double full_s = attention_time_s(item, gpu), unfused_s = unfused_attention(item, gpu).products_s,
               full_flops = item.flops(0);
  double before_s = full_s;
  for (const std::int64_t window : {8191, 4096, 1024, 128}) {
    item.window = window;
    const double now_s = attention_time_s(item, gpu);
    CHECK(now_s <= before_s);
    CHECK(now_s / full_s >= item.flops(0) / full_flops);
    CHECK(unfused_attention(item, gpu).products_s == unfused_s);
    before_s = now_s;
  }
  CHECK(before_s < full_s / 8);
}

void check_flops(const ModelSpec& m) {
  INFO(yaml_of(m));
  const double counted = m.flops_per_token(kSeq) / 3 * kSeq;
  CHECK(forward_flops(programs_of(m, {}), 0) == Approx(counted).epsilon(1e-12));
}

TEST_CASE("the step program computes the FLOPs that the model counts") {
  const auto check = check_flops;
  ModelSpec m = small();
  check(m);
  m.moe_pattern = {{false, true}}, check(m);
  m.attention.window = 8, m.attention.local = {{true, false}}, check(m);
  m.attention.sinks = m.ffn_bias = true, check(m);
  m.mtp_layers = 2, check(m);
  m.attention.window = 0, m.attention.chunk = 16, check(m);
}

TEST_CASE("sparse attention, products in two steps and latent experts compute what the model counts") {
  ModelSpec m = small();
  m.attention.indexer = {16, 2, 8}, check_flops(m);
  m.attention.mla.q_lora_rank = 24, check_flops(m);
  m.attention.shared_kv = true, check_flops(m);
  m.attention.out_rank = 8, m.attention.out_groups = 2, check_flops(m);
  m.moe_latent = 16, check_flops(m);
}

TEST_CASE("latent experts exchange narrower rows, and norms on both sides are computed and keep their inputs") {
  const auto sent = [](const ModelSpec& m) {
    Layout layout;
    layout.shard = layout.expert = 2;
    double bytes = 0;
    const ProgramSet set = programs_of(m, layout);
    for (const OpInstance& instance : unroll(set.programs[0]))
      if (instance.op->name == "dispatch.fwd") bytes += instance.op->collective.row_bytes;
    return bytes;
  };
  const auto norms = [](const ModelSpec& m) {
    int count = 0;
    const ProgramSet set = programs_of(m, {});
    for (const OpInstance& instance : unroll(set.programs[0]))
      for (const WorkItem& item : instance.op->work)
        count += item.kernel == Kernel::rmsnorm && instance.microbatch == 0 && item.pass == Pass::forward &&
                         item.dims[0] == 64
                     ? 1
                     : 0;
    return count;
  };
  const auto peak = [](const ModelSpec& m) {
    return replay_memory(programs_of(m, {}).programs[0], [](int, int) { return 64.0; }).peak_bytes;
  };
  ModelSpec m = small();
  m.dense_layers = 2;
  const double whole = sent(m), before = peak(m);
  const int twice = norms(m);
  m.moe_latent = 16;
  CHECK(sent(m) == whole / 4);
  m.moe_latent = 0, m.norm_placement = NormPlacement::both;
  CHECK(norms(m) == twice + 2 * 4);
  CHECK(peak(m) > before);
}

TEST_CASE("biases and sinks are counted and computed") {
  ModelSpec m = small();
  m.moe_pattern = {{false, true}};
  const std::int64_t before = m.total_parameters();
  m.attention.sinks = true;
  CHECK(m.total_parameters() - before == 4 * 4);
  m.ffn_bias = true;
  // Two dense layers; in the others routers, experts and the shared expert.
  CHECK(m.total_parameters() - before == 4 * 4 + 2 * (2 * 96 + 64) + 2 * (8 + 9 * (2 * 32 + 64)));
  int biases = 0;
  const ProgramSet set = programs_of(m, {});  // instances point into it
  for (const OpInstance& instance : unroll(set.programs[0]))
    for (const WorkItem& item : instance.op->work)
      biases += item.kernel == Kernel::bias && instance.microbatch == 0 && item.pass == Pass::forward ? 1 : 0;
  CHECK(biases == 4 * 2 + 2 * 2 + 2);  // FFN of each layer, experts, router
}

TEST_CASE("a module of multi-token prediction is a projection, norms, a block and the head once more") {
  const ModelSpec plain = small();
  ModelSpec m = plain;
  m.mtp_layers = 1;
  CHECK(m.total_parameters() - plain.total_parameters() ==
        2 * 64 * 64 + 3 * 64 + plain.dense_parameters(3) + 8 * plain.expert_parameters());
  CHECK(m.flops_per_token(0) - plain.flops_per_token(0) ==
        6.0 * static_cast<double>(2 * 64 * 64 + 128 * 64 + plain.attention_parameters() + 64 * 8 +
                                  3 * plain.expert_parameters()));
  const auto losses = [](const Program& program) {
    int count = 0;
    for (const OpInstance& instance : unroll(program))
      for (const WorkItem& item : instance.op->work)
        count += item.kernel == Kernel::cross_entropy && item.pass == Pass::forward && instance.microbatch == 0 ? 1 : 0;
    return count;
  };
  CHECK(losses(programs_of(plain, {}).programs[0]) == 1);
  CHECK(losses(programs_of(m, {}).programs[0]) == 2);
  for (const bool recomputed : {false, true})
    for (const std::int64_t context : {1, 2}) {
      Layout layout;
      layout.shard = layout.context = context;
      if (recomputed) layout.recompute = recompute_from_string("block");
      const Program program = programs_of(m, layout).programs[0];
      const MemoryReplay memory = replay_memory(program, [](int, int) { return 64.0; });
      CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
    }
}

TEST_CASE("the last stage holds the modules, and a copy of the embedding") {
  ModelSpec m = small();
  m.mtp_layers = 1;
  for (const std::int64_t virtual_stages : {1, 2}) {
    Layout layout = pipeline_of(2);
    layout.virtual_stages = virtual_stages;
    const ProgramSet set = programs_of(m, layout);
    const auto weights = [](const Program& program) {
      for (const Buffer& buffer : program.resident)
        if (buffer.name == "weights") return buffer.bytes.fixed / 2;
      return 0.0;
    };
    CHECK(weights(set.programs[0]) + weights(set.programs[1]) ==
          Approx(static_cast<double>(m.total_parameters() + m.embedding_parameters())));
    std::set<std::int64_t> layers;
    int sums = 0;
    for (const OpInstance& instance : unroll(set.programs[1])) {
      layers.insert(instance.layer);
      sums += instance.op->name == "tied.sum" ? 1 : 0;
    }
    CHECK(layers.count(4) == 1);
    CHECK(sums == 1);
    for (const Program& program : set.programs) {
      const MemoryReplay memory = replay_memory(program, [](int, int) { return 64.0; });
      CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
    }
  }
  Layout zero_bubble = pipeline_of(2);
  zero_bubble.schedule = Schedule::zero_bubble;
  CHECK(programs_of(m, zero_bubble).programs.size() == 2);
  m.tied = true;
  CHECK_THAT(usage_error([&] { programs_of(m, pipeline_of(2)); }), Contains("multi-token prediction and tied"));
}

TEST_CASE("layers with and without experts take turns under every kind of layout") {
  ModelSpec m = small();
  m.layers = 6, m.moe_pattern = {{true, false, false}}, m.router.bias_update_rate = 0.001, m.mtp_layers = 1;
  std::vector<Layout> layouts(6);
  layouts[1].shard = 4, layouts[1].expert = 2;
  layouts[2].shard = layouts[2].expert = 2, layouts[2].replicate = layouts[2].optimizer_shard = 2;
  layouts[3] = pipeline_of(3);
  layouts[4].shard = 2, layouts[4].tensor = 2, layouts[4].sequence_parallel = true;
  layouts[5].shard = layouts[5].expert = 2, layouts[5].placement.assign(7, {0, 1, 2, 3, 4, 5, 6, 7, 0, 1});
  for (Layout& layout : layouts)
    for (const char* again : {"none", "block", "attention+experts"}) {
      layout.recompute = recompute_from_string(again);
      INFO(layout.name() << " " << again);
      for (const Program& program : programs_of(m, layout).programs) {
        const MemoryReplay memory = replay_memory(program, [](int, int) { return 64.0; });
        CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
      }
    }
}

TEST_CASE("our YAML says these models, too") {
  for (const char* name : {"gpt-oss-20b", "deepseek-v3", "llama4-maverick", "glm-4.5-air"}) {
    const ModelSpec m = read_model(name), again = from_text(yaml_of(m));
    CHECK(yaml_of(again) == yaml_of(m));
    CHECK(again.total_parameters() == m.total_parameters());
    CHECK(again.flops_per_token(65536) == m.flops_per_token(65536));
    CHECK(again.untrainable() == m.untrainable());
  }
}

TEST_CASE("what the trainer has not is named, and never exported") {
  CHECK(small().untrainable().empty());
  CHECK(read_model("qwen3-235b-a22b").untrainable().empty());
  CHECK(read_model("kimi-k2").untrainable().empty());
  const auto names = [](auto change) {
    ModelSpec m = small();
    change(m);
    CHECK_THAT(usage_error([&] { family_of(m); }), Contains(m.untrainable().front()));
    return fmt::format("{}", fmt::join(m.untrainable(), ", "));
  };
  CHECK_THAT(names([](ModelSpec& m) { m.simulated_only = {"shared_expert_gate"}; }), Contains("shared_expert_gate"));
}

TEST_CASE("windows, sinks, biases and layers in turns are said in config.json as they are read there") {
  const std::string experts = R"("num_local_experts": 8, "num_experts": 8, "num_experts_per_tok": 2, )" + kWidths;
  const std::vector<std::pair<std::string, std::string>> files{
      {"gpt_oss", R"({"model_type": "gpt_oss", "sliding_window": 16, )" + experts + "}"},
      {"mistral", R"({"model_type": "mistral", "sliding_window": 32, )" + kWidths + "}"},
      {"mixtral", R"({"model_type": "mixtral", "sliding_window": 32, )" + experts + "}"},
      {"qwen2",
       R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 32, "max_window_layers": 6, )" +
           kWidths + "}"},
      {"qwen3_moe", R"({"model_type": "qwen3_moe", "use_sliding_window": true, "sliding_window": 32,
        "moe_intermediate_size": 16, "decoder_sparse_step": 2, )" +
                        experts + "}"},
      {"llama", R"({"model_type": "llama", "mlp_bias": true, )" + kWidths + "}"}};
  for (const auto& [family, file] : files) {
    INFO(family);
    const ModelSpec m = hugging_face(file);
    CHECK(m.untrainable().empty());
    CHECK(family_of(m) == family);
    CHECK(yaml_of(hugging_face(config_json(m).dump())) == yaml_of(m));
  }
  CHECK(family_of(read_model("gpt-oss-120b")) == "gpt_oss");
}

TEST_CASE("modules of multi-token prediction are said by DeepSeek-V3's config.json alone, their weight by our YAML") {
  ModelSpec m = read_model("deepseek-v3");
  CHECK(m.untrainable().empty());
  CHECK(family_of(m) == "deepseek_v3");
  m.mtp_layers = 2;
  CHECK(config_json(m).at("num_nextn_predict_layers") == 2);
  CHECK(hugging_face(config_json(m).dump()).mtp_layers == 2);
  CHECK(from_text(yaml_of(m)).mtp_loss_weight == 0.3);
  m.mtp_loss_weight = 0.1;
  CHECK(from_text(yaml_of(m)).mtp_loss_weight == 0.1);
}

TEST_CASE("what no family's config.json can say is not written") {
  const auto said = [](auto change) {
    ModelSpec m = small();
    m.shared_ffn = 0;
    REQUIRE(family_of(m) == "mixtral");
    change(m);
    m.check("m");
    CHECK(m.untrainable().empty());
    CHECK_THAT(usage_error([&] { family_of(m); }), Contains("no family's config.json can say"));
  };
  said([](ModelSpec& m) { m.attention.sinks = true; });
  said([](ModelSpec& m) { m.attention.chunk = 8; });
  said([](ModelSpec& m) { m.attention.window = 8, m.attention.local = {{true, false}}; });
  said([](ModelSpec& m) { m.ffn_bias = true; });
  said([](ModelSpec& m) { m.activation = Activation::clamped_swiglu; });
  said([](ModelSpec& m) { m.moe_pattern = {{false, true}}; });
  said([](ModelSpec& m) { m.mtp_layers = 1; });
}

TEST_CASE("impossible windows and layouts of windows are refused") {
  ModelSpec m = small();
  m.attention.window = 8;
  Layout ring;
  ring.shard = ring.context = 2;
  CHECK(programs_of(m, ring).programs.size() == 1);  // keys and values gathered
  ring.context_ring = true;
  CHECK_THAT(usage_error([&] { programs_of(m, ring); }), Contains("attention windows, sinks"));
  m.attention.chunk = 8;
  CHECK_THAT(usage_error([&] { m.check("m"); }), Contains("needs one of them above 0"));
  m.attention.window = m.attention.chunk = 0, m.attention.local = {{true, false}};
  CHECK_THAT(usage_error([&] { m.check("m"); }), Contains("sliding_window_layers: found without a window"));
}
