// What training an adapter needs: its group, products with factors, and functions that leave frozen weights alone.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "tests/fixtures/usage_error.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/parameters/adapter_group.hpp"
#include "trainer/pch.hpp"

using namespace wt;
using namespace wt::test;
using at::Tensor;
using Catch::Contains;

namespace {

ModelSpec mixtral() {
  ModelSpec m;
  m.name = "mixtral", m.layers = 12, m.d_model = 24, m.heads = 4, m.kv_heads = 2, m.head_dim = 6, m.ffn = 16;
  m.experts = 4, m.top_k = 2, m.vocab = 40;
  return m;
}

ModelSpec falcon() {
  ModelSpec m = mixtral();
  m.experts = m.top_k = 0;
  m.norm = Norm::layernorm, m.norm_bias = true, m.activation = Activation::gelu;
  m.attention.parallel = AttentionSpec::Parallel::two_norms;
  return m;
}

const LoraSpec kLora{3, 6, {"q_proj", "v_proj", "o_proj"}};

Tensor numbers(std::vector<std::int64_t> shape, std::int64_t seed) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  return at::randn(shape);
}

Tensor learned(const Tensor& value) { return value.clone().requires_grad_(true); }

}  // namespace

TEST_CASE("an adapter's group has the factors of all layers in their order, and every rank has it whole") {
  const GroupLayout layout = adapter_layout(mixtral(), kLora);
  CHECK(layout.copied);
  CHECK(layout.elements == 12 * 3 * ((24 + 24) + (24 + 12) + (24 + 24)));
  CHECK((layout.shard_elements == layout.elements && layout.state_elements == layout.elements));
  REQUIRE(layout.parameters.size() == 12 * 3 * 2);
  CHECK(layout.parameters[0].name == "layers.0.attention.qkv.lora.q_proj.A");
  CHECK((layout.parameters[0].shape == std::vector<std::int64_t>{3, 24}));
  CHECK(layout.parameters[3].name == "layers.0.attention.qkv.lora.v_proj.B");
  CHECK((layout.parameters[3].shape == std::vector<std::int64_t>{12, 3}));
  CHECK(layout.parameters[5].name == "layers.0.attention.output.lora.o_proj.B");
  CHECK(layout.parameters[2 * 6].name == "layers.2.attention.qkv.lora.q_proj.A");  // not layer 10
}

TEST_CASE("its modules stand where our products have their rows") {
  const auto rows = adapted_rows(mixtral(), kLora);
  CHECK((rows[0].module == "model.layers.0.self_attn.q_proj" && rows[0].first == 0 && rows[0].out() == 24));
  CHECK((rows[1].module == "model.layers.0.self_attn.v_proj" && rows[1].first == 36 && rows[1].out() == 12));
  CHECK(rows[1].theirs.front() == 0);
  const auto fused = adapted_rows(falcon(), {3, 6, {"query_key_value"}});
  REQUIRE(fused.size() == 12);
  CHECK((fused[0].first == 0 && fused[0].out() == 24 + 2 * 12));
  // Each group of queries is followed by its key and value there.
  CHECK(fused[0].theirs[12] == 24);
  CHECK(std::set(fused[0].theirs.begin(), fused[0].theirs.end()).size() == 48);
}

TEST_CASE("factors are drawn as PEFT draws them: A uniform, B zero") {
  const ShardedGroup group = make_group(adapter_layout(mixtral(), kLora), 5);
  const double bound = 1 / std::sqrt(24.0);
  double sum = 0, squares = 0, most = 0;
  std::int64_t count = 0;
  group.layout.for_state_parts([&](const ParameterInfo& p, std::int64_t, std::int64_t n, std::int64_t at) {
    const float* values = group.master.data_ptr<float>() + at;
    for (std::int64_t i = 0; i < n; ++i) {
      if (p.name.ends_with(".B")) {
        REQUIRE(values[i] == 0);
        continue;
      }
      sum += values[i], squares += values[i] * values[i], most = std::max<double>(most, std::abs(values[i])), ++count;
    }
  });
  CHECK(most <= bound);
  CHECK(most > 0.99 * bound);
  CHECK(sum / static_cast<double>(count) == Approx(0).margin(0.01));
  CHECK(squares / static_cast<double>(count) == Approx(bound * bound / 3).epsilon(0.05));
}

TEST_CASE("a frozen group has masters alone") {
  const ShardedGroup group = make_group(group_layout(mixtral(), {}, Group::dense, 0, 0), 5, at::kCPU, Moments::none);
  CHECK(group.frozen());
  CHECK_FALSE(group.state_gradient().defined());
  CHECK(group.states().size() == 1);
  CHECK(at::equal(group.master, make_group(group_layout(mixtral(), {}, Group::dense, 0, 0), 5).master));
}

TEST_CASE("an adapter that is written from a group fills one again") {
  for (const auto& [model, lora] : {std::pair{mixtral(), kLora}, {falcon(), LoraSpec{3, 6, {"query_key_value"}}}}) {
    ShardedGroup group = make_group(adapter_layout(model, lora), 5), other = make_group(adapter_layout(model, lora), 6);
    group.master.copy_(numbers({group.layout.elements}, 2));
    const Adapter adapter = adapter_from(group, model, lora, "base");
    CHECK(adapter.base == "base");
    check_adapter(adapter, model, lora, "it");
    fill_from_adapter(other, adapter, model, lora);
    CHECK(at::equal(group.master, other.master));
  }
  const ShardedGroup group = make_group(adapter_layout(mixtral(), kLora), 5);
  const Adapter adapter = adapter_from(group, mixtral(), kLora, "");
  const auto refused = [&](const LoraSpec& lora) {
    return usage_error([&] { check_adapter(adapter, mixtral(), lora, "it"); });
  };
  CHECK_THAT(refused({2, 6, kLora.target_modules}), Contains("found r 3") && Contains("says 2"));
  CHECK_THAT(refused({3, 6, {"k_proj"}}), Contains("no factors of model.layers.0.self_attn.k_proj"));
  CHECK_THAT(refused({3, 6, {"q_proj"}}), Contains("factors of 36 modules, the run's peft_config names 12"));
}

TEST_CASE("a product with factors is that of the weight with them added, forward and backward") {
  const Tensor x = learned(numbers({7, 5}, 1)), weight = numbers({9, 5}, 2), a = learned(numbers({2, 5}, 3)),
               b = learned(numbers({4, 2}, 4)), gradient = numbers({7, 9}, 5);
  const Tensor y = add_low_rank(at::mm(x, weight.t()), x, a, b, 3, 0.5);
  y.backward(gradient);
  const Tensor x2 = learned(x.detach()), a2 = learned(a.detach()), b2 = learned(b.detach());
  const Tensor low = at::cat({at::zeros({3, 5}), at::mm(b2, a2) * 0.5, at::zeros({2, 5})});
  const Tensor expected = at::mm(x2, (weight + low).t());
  expected.backward(gradient);
  CHECK(at::allclose(y, expected, 1e-5, 1e-5));
  for (const auto& [found, wanted] : {std::pair{x.grad(), x2.grad()}, {a.grad(), a2.grad()}, {b.grad(), b2.grad()}})
    CHECK(at::allclose(found, wanted, 1e-4, 1e-5));
}

TEST_CASE("frozen weights get no gradient, and inputs the same one") {
  const Tensor gain = at::ones({8}), weight = numbers({6, 8}, 2), gradient = numbers({5, 6}, 3);
  const Tensor experts = numbers({2, 4, 8}, 4), rows = numbers({5, 8}, 6), of_rows = numbers({5, 4}, 7);
  const Tensor offsets = at::tensor({2, 5}, at::kInt);
  std::vector<std::vector<Tensor>> inputs;
  for (const bool frozen : {false, true})
    for (const bool again : {false, true}) {
      const Tensor x = learned(rows), w = weight.clone().requires_grad_(!frozen),
                   e = experts.clone().requires_grad_(!frozen), r = learned(rows);
      norm_product(x, gain, w, 1e-5, at::kFloat, again).product.backward(gradient);
      grouped_product(r, e, offsets, true).backward(of_rows);
      CHECK(w.grad().defined() != frozen);
      CHECK(e.grad().defined() != frozen);
      inputs.push_back({x.grad(), r.grad()});
    }
  for (const auto& found : inputs)
    for (std::size_t i = 0; i < 2; ++i) CHECK(at::equal(found[i], inputs[0][i]));
}
