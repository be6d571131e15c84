// Adapters in PEFT's files. tests/python/adapter_test.py compares them with PEFT itself.
#include "trainer/safetensors/adapter.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/yaml.hpp"
#include "configs/files/adapted_modules.hpp"
#include "configs/files/run.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/safetensors/merge_adapter.hpp"
#include "trainer/safetensors/narrow_floats.hpp"
#include "trainer/safetensors/pretrained_files.hpp"
#include "trainer/safetensors/safetensors.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using namespace wt;
using namespace wt::test;
using nlohmann::json;

namespace {

/// r = 1 beside one weight (2, 3).
Adapter small() {
  return {{.rank = 1, .alpha = 2, .target_modules = {"q_proj"}},
          "base",
          {{"model.layers.0.self_attn.q_proj", {2, 3, {1, 2, 3}, {10, -1}}}}};
}

LoraSpec spec(const std::string& text) { return read_peft_config(YamlMap::from_text(text, "run.yaml")); }

const std::string kName = "base_model.model.model.layers.0.self_attn.q_proj.lora_";

}  // namespace

TEST_CASE("an adapter adds scale times B A") {
  std::vector<float> weight{1, 1, 1, 1, 1, 1};
  merge_factors(weight, small().modules.begin()->second, 2);
  CHECK(weight == std::vector<float>{21, 41, 61, -1, -3, -5});
  LoraFactors zero = small().modules.begin()->second;
  zero.b = {0, 0};  // as adapters begin
  const std::vector<float> before = weight;
  merge_factors(weight, zero, 2);
  CHECK(weight == before);
}

TEST_CASE("an adapter is read back as it was written, under PEFT's names") {
  const TempDirectory folder;
  write_adapter(folder / "a", small());
  const StoredFile stored = read_safetensors(folder / "a/adapter_model.safetensors");
  CHECK(stored.tensors.at(kName + "A.weight").shape == std::vector<std::int64_t>{1, 3});
  CHECK(stored.tensors.at(kName + "B.weight").shape == std::vector<std::int64_t>{2, 1});
  const Adapter found = read_adapter(folder / "a");
  CHECK(found.spec == small().spec);
  CHECK(found.base == "base");
  const LoraFactors& factors = found.modules.at("model.layers.0.self_attn.q_proj");
  CHECK(factors.a == small().modules.begin()->second.a);
  CHECK(factors.b == small().modules.begin()->second.b);
  CHECK(factors.in == 3);
  CHECK(factors.out == 2);
}

TEST_CASE("an adapter is merged into weights of its model alone, into a folder that is not there") {
  const TempDirectory folder;
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  const std::vector<float> ones(6, 1);
  fs::create_directories(folder / "base");
  const auto write_base = [&](const std::string& name, std::vector<std::int64_t> shape) {
    write_safetensors(folder / "base/model.safetensors",
                      {{name, "F32", shape, ones.data(), {}}, {"other", "F32", {6}, ones.data(), {}}});
  };
  write_base(q, {2, 3});
  write_adapter(folder / "a", small());
  const auto refusal = [&] {
    return usage_error([&] { merge_adapter(folder / "base", folder / "a", folder / "out"); });
  };
  CHECK_THAT(refusal(), Contains("base: found no config.json"));
  write_bytes(folder / "base/config.json", R"({"torch_dtype": "bfloat16", "x": 1})");
  write_bytes(folder / "base/tokenizer.json", "t");
  const MergedAdapter merged = merge_adapter(folder / "base", folder / "a", folder / "out");
  CHECK(merged.modules == 1);
  CHECK(merged.tensors == 2);
  CHECK(merged.parameters == 12);
  const auto stored = read_safetensors(folder / "out/model.safetensors");
  CHECK(widened_values(stored.tensors.at(q), q) == std::vector<float>{21, 41, 61, -1, -3, -5});
  CHECK(widened_values(stored.tensors.at("other"), "other") == ones);
  CHECK(read_bytes(folder / "out/tokenizer.json") == "t");
  CHECK(json::parse(read_bytes(folder / "out/config.json")) == json{{"torch_dtype", "float32"}, {"x", 1}});

  CHECK_THAT(refusal(), Contains("out: found something there, needs a folder that is not there yet"));
  fs::remove_all(folder / "out");
  write_base(q, {3, 2});
  CHECK_THAT(refusal(), Contains("the adapter is of another model"));
  write_base("model.layers.1.self_attn.q_proj.weight", {2, 3});
  CHECK_THAT(refusal(), Contains("found factors of model.layers.0.self_attn.q_proj, which"));
  write_base(q, {2, 3});
  const std::vector<double> wide(6, 1);
  write_safetensors(folder / "base/model.safetensors", {{q, "F64", {2, 3}, wide.data(), {}}});
  CHECK_THAT(refusal(), Contains("F64"));
  CHECK_FALSE(fs::exists(folder / "out"));  // what it had begun is gone
  fs::remove(folder / "base/model.safetensors");
  CHECK_THAT(refusal(), Contains("model.safetensors"));
}

TEST_CASE("another kind of adapter is refused by the key that says so") {
  const auto fails = [](const std::string& key, const json& value) {
    json config = adapter_config(small().spec, "base");
    config[key] = value;
    return usage_error([&] { lora_of_adapter_config(config, "adapter_config.json"); });
  };
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"peft_type", "IA3"},
                                                                            {"task_type", "SEQ_CLS"},
                                                                            {"bias", "all"},
                                                                            {"use_dora", true},
                                                                            {"use_rslora", true},
                                                                            {"rank_pattern", {{"q_proj", 4}}},
                                                                            {"alpha_pattern", {{"q_proj", 4}}},
                                                                            {"modules_to_save", {"lm_head"}},
                                                                            {"target_parameters", {"w1"}},
                                                                            {"init_lora_weights", "pissa"},
                                                                            {"fan_in_fan_out", true},
                                                                            {"r", 0},
                                                                            {"r", 1.5},
                                                                            {"lora_alpha", 0},
                                                                            {"target_modules", "all-linear"},
                                                                            {"of_tomorrow", 1}}) {
    INFO(key);
    CHECK_THAT(fails(key, value), Contains("adapter_config.json: /" + key));
  }
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"use_dora", false},
                                                                            {"rank_pattern", json::object()},
                                                                            {"modules_to_save", nullptr},
                                                                            {"lora_dropout", 0.1},
                                                                            {"peft_version", "0.21.2"},
                                                                            {"of_tomorrow", nullptr},
                                                                            {"init_lora_weights", "gaussian"}})
    CHECK(fails(key, value) == "no error");
  CHECK_THAT(fails("target_modules", json::array()), Contains("found no target_modules"));
  CHECK_THAT(usage_error([] { lora_of_adapter_config(json::object(), "adapter_config.json"); }), Contains("peft_type"));
}

TEST_CASE("tensors that make up no adapter are refused by their names") {
  const TempDirectory folder;
  const std::vector<float> values(6, 1.0F);
  const auto fails = [&](const std::vector<OutgoingTensor>& tensors) {
    write_safetensors(folder / "adapter_model.safetensors", tensors);
    write_bytes(folder / "adapter_config.json", adapter_config(small().spec, "").dump());
    return usage_error([&] { read_adapter(folder.path()); });
  };
  const OutgoingTensor a{kName + "A.weight", "F32", {1, 3}, values.data(), {}},
      b{kName + "B.weight", "F32", {2, 1}, values.data(), {}};
  CHECK(fails({a, b}) == "no error");
  CHECK_THAT(fails({a}), Contains("has one factor, needs lora_A and lora_B"));
  CHECK_THAT(fails({}), Contains("found no factors"));
  OutgoingTensor other = a;
  other.shape = {2, 3};
  CHECK_THAT(fails({other, b}), Contains("needs (r, in) with r = 1"));
  other = a, other.key = "model.embed_tokens.weight";
  CHECK_THAT(fails({other}), Contains("found no factor, allowed are names"));
  other = a, other.key = "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight";
  CHECK_THAT(fails({other}), Contains("is none of target_modules"));
  other = a, other.dtype = "I32";
  CHECK_THAT(fails({other, b}), Contains("found type I32"));
  const std::vector<float> broken(3, std::numeric_limits<float>::quiet_NaN());
  other = a, other.values = broken.data();
  CHECK_THAT(fails({other, b}), Contains("not finite"));
  fs::resize_file(folder / "adapter_model.safetensors", 40);
  CHECK_THAT(usage_error([&] { read_adapter(folder.path()); }), Contains("adapter_model.safetensors"));
}

TEST_CASE("a run file's peft_config is LLM Foundry's") {
  const LoraSpec found = spec(
      "{peft_type: LORA, task_type: CAUSAL_LM, r: 64, lora_alpha: 128, lora_dropout: 0.0, target_modules: [Wqkv]}");
  CHECK(found.rank == 64);
  CHECK(found.scale() == 2);
  CHECK(found.targets("transformer.blocks.0.norm_attn_norm.attn.Wqkv"));
  CHECK_FALSE(found.targets("transformer.blocks.0.notWqkv"));
  CHECK(spec("{target_modules: [a]}").rank == 8);  // PEFT's defaults
  CHECK(spec("{target_modules: [a]}").alpha == 8);
  const auto fails = [](const std::string& text) {
    return usage_error([&] { spec("{target_modules: [a], " + text + "}"); });
  };
  for (const char* key :
       {"use_dora: true", "use_rslora: true", "rank_pattern: {}", "alpha_pattern: {}", "modules_to_save: [a]"})
    CHECK_THAT(fails(key), Contains(std::string(key).substr(0, std::string(key).find(':'))) && Contains("take it out"));
  CHECK_THAT(fails("lora_dropout: 0.1"), Contains("found dropout"));
  CHECK_THAT(fails("peft_type: IA3"), Contains("IA3"));
  CHECK_THAT(fails("bias: all"), Contains("all"));
  CHECK_THAT(fails("r: 0"), Contains("r"));
  CHECK_THAT(fails("rank: 4"), Contains("rank"));
  CHECK_THAT(usage_error([] { spec("{r: 4}"); }), Contains("target_modules") && Contains("q_proj"));
}

TEST_CASE("targets are projections of attention by their family's names") {
  const ModelSpec model = read_run("configs/runs/tiny-moe.yaml").model;
  const auto modules = [&](const std::vector<std::string>& targets) {
    return adapted_modules(model, {.rank = 4, .alpha = 8, .target_modules = targets});
  };
  const std::vector<AdaptedModule> found = modules({"q_proj"});
  REQUIRE(found.size() == static_cast<std::size_t>(model.layers));
  CHECK(found[0].name == "model.layers.0.self_attn.q_proj");
  CHECK(found[0].out == model.heads * model.head_dim);
  CHECK(found[0].in == model.d_model);
  CHECK(modules({"layers.1.self_attn.v_proj", "o_proj"}).size() == static_cast<std::size_t>(model.layers) + 1);
  const auto fails = [&](const char* target) { return usage_error([&] { modules({"q_proj", target}); }); };
  CHECK_THAT(fails("Wqkv"), Contains("found Wqkv") && Contains("k_proj, o_proj, q_proj, v_proj"));
  CHECK_THAT(fails("gate"), Contains("found gate"));
  CHECK_THAT(fails("proj"), Contains("found proj"));
}

TEST_CASE("halves and bfloat16 are widened exactly") {
  CHECK(float_of_half(0x3C00) == 1.0F);
  CHECK(float_of_half(0xC000) == -2.0F);
  CHECK(float_of_half(0x7BFF) == 65504.0F);  // the largest
  CHECK(float_of_half(0x0400) == 0x1p-14F);  // the least normal
  CHECK(float_of_half(0x0001) == 0x1p-24F);  // the least
  CHECK(float_of_half(0x83FF) == -1023 * 0x1p-24F);
  CHECK(std::signbit(float_of_half(0x8000)));
  CHECK(float_of_half(0x7C00) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(float_of_half(0x7C01)));
  CHECK(float_of_bfloat16(0x3F80) == 1.0F);
  CHECK(float_of_bfloat16(0xC040) == -3.0F);
}
