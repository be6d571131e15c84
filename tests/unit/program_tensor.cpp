// Tensor and sequence parallelism in the step program, against Megatron's closed forms.
#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/compose/tensor_slice.hpp"
#include "sim/program/memory/memory_replay.hpp"

using namespace wt;

namespace {

/// GPT as in Megatron-LM: gelu, layernorm with biases, as many key as query heads.
ModelSpec gpt(std::int64_t layers = 4) {
  ModelSpec m;
  m.name = "gpt", m.layers = layers, m.d_model = 256, m.heads = 8, m.kv_heads = 8, m.head_dim = 32, m.ffn = 1024,
  m.vocab = 512;
  m.norm = Norm::layernorm, m.norm_bias = true, m.activation = Activation::gelu;
  return m;
}

ModelSpec mixture() {
  ModelSpec m = gpt(3);
  m.name = "mixture", m.norm = Norm::rmsnorm, m.norm_bias = false, m.activation = Activation::swiglu;
  m.kv_heads = 2, m.experts = 8, m.top_k = 2, m.dense_layers = 1, m.dense_ffn = 512, m.shared_ffn = 128;
  return m;
}

Layout tensor_layout(std::int64_t tensor, bool sequence, Layout layout = {}) {
  layout.tensor = tensor, layout.sequence_parallel = sequence;
  return layout;
}

constexpr std::int64_t kSeq = 128;

Program program_of(const ModelSpec& model, const Layout& layout, std::int64_t microbatches = 1) {
  return build_program_set(model, layout, {kSeq, microbatches, Precision::bf16, false}).programs[0];
}

double flops_of(const Program& program, const std::vector<Kernel>& kernels, double rows = 0) {
  double sum = 0;
  for (const OpInstance& instance : unroll(program))
    for (const WorkItem& item : instance.op->work)
      if (std::find(kernels.begin(), kernels.end(), item.kernel) != kernels.end()) sum += item.flops(rows);
  return sum;
}

/// Bytes of a kind on the tensor axis by (name without direction, direction suffix).
double tensor_bytes(const Program& program, OpKind kind, const std::string& in_name = "") {
  double sum = 0;
  for (const OpInstance& instance : unroll(program))
    if (instance.op->collective_kind() && instance.op->collective.axis == Axis::tensor && instance.op->kind == kind &&
        instance.layer >= 0 && instance.op->name.find(in_name) != std::string::npos)
      sum += instance.op->collective.bytes.fixed;
  return sum;
}

/// Bytes that a further layer keeps from forward to backward.
double kept_bytes(ModelSpec model, const Layout& layout) {
  double live[2];
  for (const std::int64_t layers : {2, 3}) {
    model.layers = layers;
    const Program program = program_of(model, layout);
    const auto ops = unroll(program);
    const MemoryReplay memory = replay_memory(program, [](int, int) { return 0.0; });
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].id() == "mb0.head") live[layers - 2] = memory.live_bytes[i] - memory.resident_bytes;
  }
  return live[1] - live[0];
}

const std::vector<Kernel> kProducts{Kernel::gemm, Kernel::grouped_gemm, Kernel::attention, Kernel::cross_entropy};

}  // namespace

TEST_CASE("a tensor group's products are the model's; under sequence parallelism so is what stands between") {
  for (const std::int64_t tensor : {2, 4, 8}) {
    const double whole = flops_of(program_of(gpt(), {}), kProducts);
    for (const bool sequence : {false, true}) {
      const Program part = program_of(gpt(), tensor_layout(tensor, sequence));
      CHECK(static_cast<double>(tensor) * flops_of(part, kProducts) == Approx(whole).epsilon(1e-12));
    }
    const auto norms = [&](const Layout& layout) { return flops_of(program_of(gpt(), layout), {Kernel::layernorm}); };
    CHECK(static_cast<double>(tensor) * norms(tensor_layout(tensor, true)) == Approx(norms({})).epsilon(1e-12));
    CHECK(norms(tensor_layout(tensor, false)) == Approx(norms({})).epsilon(1e-12));
  }
  for (const std::int64_t tensor : {2, 4}) {
    const Program whole = program_of(mixture(), {}), part = program_of(mixture(), tensor_layout(tensor, true));
    CHECK(static_cast<double>(tensor) *
              flops_of(part, {Kernel::grouped_gemm, Kernel::attention, Kernel::cross_entropy}) ==
          Approx(flops_of(whole, {Kernel::grouped_gemm, Kernel::attention, Kernel::cross_entropy})).epsilon(1e-12));
  }
}

TEST_CASE("parameters of all tensor ranks are the model's, and the norms' copies") {
  for (const std::int64_t tensor : {2, 4, 8}) {
    const ModelSpec whole = gpt(), slice = tensor_slice(whole, tensor);
    const std::int64_t norms = (2 * whole.layers + 1) * whole.norm_parameters();
    CHECK(tensor * (slice.total_parameters() - norms) + norms == whole.total_parameters());
  }
  const ModelSpec whole = mixture(), slice = tensor_slice(whole, 2);
  CHECK(2 * slice.expert_parameters() == whole.expert_parameters());
  CHECK(tensor_slice(whole, 8).kv_heads == 1);  // ranks of a pair hold the same one
  ModelSpec odd = gpt();
  odd.vocab = 50257;
  CHECK(tensor_slice(odd, 8).vocab == 6283);
}

TEST_CASE("a layer's collectives: four all-reduces of tokens x width, or as many bytes in gathers and scatters") {
  const ModelSpec m = gpt();
  const double x = static_cast<double>(kSeq * m.d_model) * 2, layers = static_cast<double>(m.layers);
  const Program whole = program_of(m, tensor_layout(4, false)), cut = program_of(m, tensor_layout(4, true));
  CHECK(tensor_bytes(whole, OpKind::all_reduce) == 4 * x * layers);
  CHECK(tensor_bytes(whole, OpKind::all_gather) + tensor_bytes(whole, OpKind::reduce_scatter) == 0);
  CHECK(tensor_bytes(cut, OpKind::all_reduce) == 0);
  CHECK(tensor_bytes(cut, OpKind::all_gather, ".gather") == 4 * x * layers);
  CHECK(tensor_bytes(cut, OpKind::reduce_scatter) == 4 * x * layers);
  // Korthikanti et al. 2022, section 4.2.2: the inputs of both products are gathered again, beside the backward
  // products.
  CHECK(tensor_bytes(cut, OpKind::all_gather, ".regather") == 2 * x * layers);
  // The whole block again: its two collectives forward once more (six all-reduces in all).
  Layout again = tensor_layout(4, false);
  again.recompute = Recompute::block;
  CHECK(tensor_bytes(program_of(m, again), OpKind::all_reduce) == 6 * x * layers);
  // Falcon: attention and FFN read one norm's output and are summed together, forward and backward.
  ModelSpec falcon = m;
  falcon.attention.parallel = AttentionSpec::Parallel::one_norm;
  CHECK(tensor_bytes(program_of(falcon, tensor_layout(4, false)), OpKind::all_reduce) == 2 * x * layers);
}

TEST_CASE("activations of a layer are cut as in Korthikanti et al. 2022") {
  // Their sbh (34 + 5 a s / h) bytes have two dropout masks (2 sbh) and attention's scores, which this kernel does not
  // keep; it keeps its output by head (2 sbh), a logsumexp a head (fp32), and the norms their mean and deviation.
  const ModelSpec m = gpt();
  const double sb = static_cast<double>(kSeq), sbh = sb * static_cast<double>(m.d_model),
               a = static_cast<double>(m.heads);
  CHECK(kept_bytes(m, {}) == Approx(34 * sbh + 4 * a * sb + 8 * sb));
  for (const std::int64_t tensor : {2, 4, 8}) {
    const double t = static_cast<double>(tensor);
    CHECK(kept_bytes(m, tensor_layout(tensor, false)) == Approx(sbh * (8 + 26 / t) + 4 * a * sb / t + 8 * sb));
    CHECK(kept_bytes(m, tensor_layout(tensor, true)) == Approx((34 * sbh + 4 * a * sb + 8 * sb) / t));
    Layout block = tensor_layout(tensor, true);
    block.recompute = Recompute::block;
    CHECK(kept_bytes(m, block) ==
          Approx(2 * sbh / t));  // the layer's input alone, equation 5 cut by sequence parallelism
  }
}

TEST_CASE("a step with tensor parallelism gives its memory back, and resident memory is the slice's") {
  for (const ModelSpec& model : {gpt(), mixture()})
    for (const char* policy : {"none", "block", "attention", "experts"})
      for (const std::int64_t expert : {1, 2}) {
        if (model.experts == 0 && (expert > 1 || std::string(policy) == "experts")) continue;
        Layout layout = tensor_layout(2, true, Layout{1, 2, expert, 1, recompute_from_string(policy), {}});
        const Program program = program_of(model, layout, 2);
        const MemoryReplay memory = replay_memory(program, [](int, int) { return 300.0; });
        INFO(model.name << " " << layout.name() << " " << policy);
        CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
        CHECK(memory.peak_bytes > memory.resident_bytes);
        Layout half = layout;
        half.tensor = 1, half.sequence_parallel = false;
        const Program sliced = program_of(tensor_slice(model, 2), half, 2);
        CHECK(memory.resident_bytes == Approx(replay_memory(sliced, [](int, int) { return 300.0; }).resident_bytes));
      }
}

TEST_CASE("recompute of attention's core: the kernel once more, without its output and logsumexp kept") {
  Layout layout;
  layout.recompute = recompute_from_string("core");
  CHECK(!layout.trainable());
  const ModelSpec m = gpt();
  const double tokens = static_cast<double>(kSeq), width = static_cast<double>(m.d_model),
               heads = static_cast<double>(m.heads);
  CHECK(kept_bytes(m, {}) - kept_bytes(m, layout) == Approx(2 * tokens * width + 4 * tokens * heads));
  double again = 0;
  const Program program = program_of(m, layout);
  for (const OpInstance& instance : unroll(program))
    for (const WorkItem& item : instance.op->work)
      if (instance.op->direction == Direction::recompute) {
        CHECK(item.kernel == Kernel::attention);
        again += item.flops(0);
      }
  CHECK(again == Approx(static_cast<double>(m.layers) * 2 * tokens * tokens * width));
  for (const auto& [both, why] : {std::pair{"core+attention", "found attention and core of block 0"},
                                  {"block+core", "as a whole and in parts"}}) {
    layout.recompute = recompute_from_string(both);
    CHECK_THROWS_WITH(layout.check(m, "here"), Catch::Contains(why));
  }
}

TEST_CASE("recompute but for products: the block again without attention and with half of each product") {
  Layout layout, block;
  layout.recompute = recompute_from_string("products");
  block.recompute = Recompute::block;
  CHECK(!layout.trainable());
  const ModelSpec m = gpt();
  const auto again = [&](const Layout& of, Kernel kernel) {
    double flops = 0;
    const Program program = program_of(m, of);
    for (const OpInstance& instance : unroll(program))
      for (const WorkItem& item : instance.op->work)
        if (instance.op->direction == Direction::recompute && item.kernel == kernel) flops += item.flops(0);
    return flops;
  };
  CHECK(again(block, Kernel::attention) > 0);
  CHECK(again(layout, Kernel::attention) == 0);
  CHECK(again(layout, Kernel::gemm) == Approx(again(block, Kernel::gemm) / 2));
  CHECK(kept_bytes(m, block) < kept_bytes(m, layout));
  CHECK(kept_bytes(m, layout) < kept_bytes(m, {}));
}

TEST_CASE("a ring of keys and values moves what a gather moves, twice more in backward, and keeps a rank's own") {
  Layout gathered{1, 4, 1, 1, Recompute::none, {}}, ring = gathered;
  gathered.context = ring.context = 4, ring.context_ring = true;
  const ModelSpec m = gpt();
  const auto moved = [&](const Layout& layout) {
    double sum = 0;
    const Program program = program_of(m, layout);
    for (const OpInstance& instance : unroll(program))
      if (instance.op->action == Action::gather_kv && instance.op->collective_kind())
        sum += instance.op->collective.bytes.fixed;
    return sum;
  };
  CHECK(moved(ring) == Approx(1.5 * moved(gathered)));  // forward, backward: keys and values again, and their gradients
  const double kv = static_cast<double>(kSeq * 2 * m.d_model) * 2;
  CHECK(kept_bytes(m, gathered) - kept_bytes(m, ring) == Approx(kv * 3 / 4));
  for (const char* policy : {"none", "block", "attention", "core"}) {
    ring.recompute = recompute_from_string(policy);
    const MemoryReplay memory = replay_memory(program_of(m, ring, 2), [](int, int) { return 0.0; });
    CHECK(memory.live_bytes.back() == Approx(memory.resident_bytes));
  }
  ring.context = 1;
  CHECK_THROWS_WITH(ring.check(m, "here"), Catch::Contains("context_ring with context 1"));
}

TEST_CASE("tensor layouts that do not fit are refused by name") {
  const auto refused = [](const ModelSpec& model, const Layout& layout, const std::string& why) {
    CHECK_THROWS_WITH(layout.check(model, "here"), Catch::Contains(why));
  };
  refused(gpt(), tensor_layout(3, false), "tensor 3 does not divide the model's heads = 8");
  refused(gpt(), tensor_layout(1, true), "sequence_parallel with tensor 1");
  refused(gpt(), tensor_layout(0, false), "tensor 0");
  refused(mixture(), tensor_layout(2, false), "needs sequence_parallel");
  ModelSpec m = gpt();
  m.ffn = 1020;
  refused(m, tensor_layout(8, false), "FFN width = 1020");
  m = gpt();
  m.heads = 12, m.kv_heads = 3;
  refused(m, tensor_layout(4, false), "one to divide the other");
  m = gpt();
  m.attention.parallel = AttentionSpec::Parallel::two_norms;
  refused(m, tensor_layout(4, true), "parallel");
}
