#include "bench/suites/problems.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "configs/base/error.hpp"
#include "trainer/model/attention.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr std::int64_t kPool = 1 << 22;

std::int64_t rows_of(const WorkItem& item) { return std::llround(item.rows.fixed); }
at::ScalarType type_of(const WorkItem& item) { return item.precision == Precision::fp32 ? at::kFloat : at::kBFloat16; }

Tensor random_integers(std::int64_t bound, std::int64_t count, std::uint64_t seed) {
  return at::randint(bound, {count}, at::make_generator<at::CPUGeneratorImpl>(seed),
                     at::TensorOptions().dtype(at::kLong));
}

KernelProblem gemm(const WorkItem& item, NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), item.dims[1]}, type_of(item)),
              normal.take({item.dims[0], item.dims[1]}, type_of(item))};
  p.run = p.reference = [](const Tensors& in) { return Tensors{at::mm(in[0], in[1].t())}; };
  p.through_autograd = true;
  return p;
}

/// One library product per group, written to the group's rows of the output.
Tensor product_a_group(const Tensor& rows, const Tensor& weight, const std::vector<std::int64_t>& counts) {
  const at::NoGradGuard no_grad;
  Tensor out = at::empty({rows.size(0), weight.size(1)}, rows.options());
  std::int64_t begin = 0;
  for (std::size_t g = 0; g < counts.size(); begin += counts[g++]) {
    Tensor part = out.narrow(0, begin, counts[g]);
    at::mm_out(part, rows.narrow(0, begin, counts[g]), weight.select(0, static_cast<std::int64_t>(g)).t());
  }
  return out;
}

KernelProblem grouped_gemm(const WorkItem& item, const RunSpec& run, NormalPool& normal, GroupedAs as) {
  const std::int64_t n = item.dims[0], k = item.dims[1], groups = item.dims[2];
  const auto counts = expert_rows(run.model, rows_of(item), groups, normal.seed());
  std::vector<std::int32_t> ends(counts.size());
  std::partial_sum(counts.begin(), counts.end(), ends.begin());
  const Tensor offsets = at::tensor(ends, at::TensorOptions().dtype(at::kInt)).to(normal.device());
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), k}, type_of(item)), normal.take({groups, n, k}, type_of(item))};
  std::optional<GroupedBy> by;
  if (as == GroupedAs::library) by = GroupedBy::library;
  if (as == GroupedAs::own) by = GroupedBy::own;
  p.run = [offsets, by](const Tensors& in) { return Tensors{grouped_product(in[0], in[1], offsets, true, by)}; };
  if (as == GroupedAs::loop)
    p.run = [counts](const Tensors& in) { return Tensors{product_a_group(in[0], in[1], counts)}; };
  p.reference = [counts](const Tensors& in) {
    Tensors parts;
    std::int64_t begin = 0;
    for (std::size_t g = 0; g < counts.size(); begin += counts[g++])
      parts.push_back(at::mm(in[0].narrow(0, begin, counts[g]), in[1].select(0, static_cast<std::int64_t>(g)).t()));
    return Tensors{at::cat(parts)};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem attention(const WorkItem& item, NormalPool& normal) {
  if (item.window > 0)
    throw_usage("attention in a window of {}: found in the run's model, measured is attention without one",
                item.window);
  const std::int64_t batch = rows_of(item), seq = item.dims[0], heads = item.dims[1], kv = item.dims[2],
                     hd = item.dims[3];
  KernelProblem p;
  p.inputs = {normal.take({batch, heads, seq, hd}, type_of(item)), normal.take({batch, kv, seq, hd}, type_of(item)),
              normal.take({batch, kv, seq, hd}, type_of(item))};
  p.backend = attention_backend(p.inputs[0], p.inputs[1], p.inputs[2]);
  p.run = [heads, kv](const Tensors& in) {
    return Tensors{at::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, true, std::nullopt, heads != kv)};
  };
  p.reference = [=](const Tensors& in) {
    const Tensor k = in[1].repeat_interleave(heads / kv, 1), v = in[2].repeat_interleave(heads / kv, 1);
    const Tensor later = at::ones({seq, seq}, in[0].options().dtype(at::kBool)).triu(1);
    const Tensor scores = at::matmul(in[0], k.transpose(-2, -1)) / std::sqrt(static_cast<double>(hd));
    return Tensors{at::matmul(scores.masked_fill(later, -INFINITY).softmax(-1), v)};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem rmsnorm(const WorkItem& item, const ModelSpec& model, NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), item.dims[0]}, type_of(item)), normal.take({item.dims[0]}, type_of(item))};
  p.run = [eps = model.norm_eps](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], eps)}; };
  p.reference = [eps = model.norm_eps](const Tensors& in) {
    return Tensors{in[0] * (in[0].square().mean(1, true) + eps).rsqrt() * in[1]};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem layernorm(const WorkItem& item, const ModelSpec& model, NormalPool& normal) {
  const std::int64_t width = item.dims[0];
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), width}, type_of(item)), normal.take({width}, type_of(item))};
  p.run = [eps = model.norm_eps, width](const Tensors& in) {
    return Tensors{at::layer_norm(in[0], {width}, in[1], std::nullopt, eps)};
  };
  p.reference = [eps = model.norm_eps](const Tensors& in) {
    const Tensor centred = in[0] - in[0].mean(1, true);
    return Tensors{centred * (centred.square().mean(1, true) + eps).rsqrt() * in[1]};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem rope(const WorkItem& item, const RunSpec& run, NormalPool& normal) {
  const ModelSpec& m = run.model;
  const std::int64_t rows = rows_of(item), heads = m.heads, kv = m.kv_heads, hd = m.head_dim;
  if (item.dims[0] != (heads + kv) * hd)
    throw_usage("rope of width {}: the run's model has {} heads of {}, allowed is their width {}", item.dims[0],
                heads + kv, hd, (heads + kv) * hd);
  const std::int64_t seq = rows % run.seq == 0 ? run.seq : rows, batch = rows / seq;
  RopeTable table = RopeTable::make(m, seq);
  table = {table.cosine.to(normal.device()), table.sine.to(normal.device())};
  KernelProblem p;
  p.inputs = {normal.take({rows, (heads + 2 * kv) * hd}, type_of(item))};
  p.run = [=](const Tensors& in) { return rope_split(in[0], table, batch, heads, kv); };
  p.reference = [=](const Tensors& in) {
    const Tensor all = in[0].view({batch, seq, heads + 2 * kv, hd}).transpose(1, 2);
    const Tensor turned = all.narrow(1, 0, heads + kv), cosine = table.cosine.to(in[0].options()),
                 sine = table.sine.to(in[0].options());
    const Tensor a = turned.narrow(3, 0, hd / 2), b = turned.narrow(3, hd / 2, hd / 2);
    const Tensor out = at::cat({a * cosine - b * sine, b * cosine + a * sine}, 3);
    return Tensors{out.narrow(1, 0, heads), out.narrow(1, heads, kv), all.narrow(1, heads + kv, kv)};
  };
  p.through_autograd = true;
  return p;
}

/// Scores for the choice: unchanged in the best groups, -infinity in the others.
Tensor of_best_groups(const Tensor& judged, const RouterSpec& spec) {
  if (spec.groups == 1) return judged;
  const std::int64_t each = judged.size(1) / spec.groups,
                     best = spec.group_score == RouterSpec::GroupScore::best ? 1 : std::min<std::int64_t>(2, each);
  const Tensor worth = std::get<0>(judged.view({-1, spec.groups, each}).topk(best, 2)).sum(2);
  const Tensor taken = at::zeros_like(worth, at::kBool).scatter_(1, std::get<1>(worth.topk(spec.top_groups, 1)), true);
  return judged.masked_fill(taken.logical_not().repeat_interleave(each, 1), -INFINITY);
}

/// The run's router without forced choices and dropped rows.
KernelProblem router(const WorkItem& item, const RunSpec& run, NormalPool& normal) {
  const std::int64_t rows = rows_of(item), experts = item.dims[0], k = item.dims[1];
  RouterSpec spec = run.model.router;
  spec.forced = RouterSpec::Forced::none, spec.capacity_factor = 0;
  const bool sigmoid = spec.score == RouterSpec::Score::sigmoid;
  const RouterLossScale scale{0.01 / static_cast<double>(rows),
                              run.model.router.z_loss_weight > 0 ? 0.001 / static_cast<double>(rows) : 0,
                              rows % run.seq == 0 ? run.seq : rows};
  KernelProblem p;
  p.inputs = {normal.take({rows, experts}, at::kFloat)};
  const Tensor bias = spec.bias_update_rate > 0 ? 0.05 * normal.take({experts}, at::kFloat) : Tensor();
  p.run = [=](const Tensors& in) {
    RouterChoice choice;
    RouterLoss loss;
    const Tensor weights = route(in[0], k, spec, scale, bias, choice, loss);
    sort_by_slot(choice, {});
    return Tensors{weights};
  };
  p.reference = [=](const Tensors& in) {
    const Tensor scores = sigmoid ? in[0].sigmoid() : in[0].softmax(1);
    const Tensor judged = bias.defined() ? scores.detach() + bias.to(in[0].device(), at::kDouble) : scores.detach();
    const Tensor index = std::get<1>(of_best_groups(judged, spec).topk(k, 1)), values = scores.gather(1, index);
    const Tensor chosen = at::zeros_like(judged).scatter_(1, index, 1.0),
                 shares = sigmoid ? scores / scores.sum(1, true) : scores;
    const Tensor counts = chosen.view({rows / scale.seq, scale.seq, experts}).sum(1, true);
    const Tensor aux = (shares.view({rows / scale.seq, scale.seq, experts}) * counts).sum() * scale.aux;
    const Tensor z = in[0].logsumexp(1).square().sum() * scale.z;
    return Tensors{spec.scale * (spec.normalize ? values / values.sum(1, true) : values), aux + z};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem permute_rows(const WorkItem& item, const RunSpec& run, NormalPool& normal) {
  const std::int64_t rows = rows_of(item), k = rows % run.model.top_k == 0 ? run.model.top_k : 1;
  RouterChoice choice;  // rows in the order of random choices sorted by expert
  choice.index = random_integers(run.model.experts, rows, normal.seed());
  choice.order = at::empty({rows}, at::kLong);
  choice.inverse = at::empty({rows}, at::kLong);
  check_kernel(wt_sort_by_expert({-1, nullptr}, choice.index.data_ptr<std::int64_t>(), nullptr, rows, run.model.experts,
                                 choice.order.data_ptr<std::int64_t>(), choice.inverse.data_ptr<std::int64_t>(),
                                 nullptr));
  choice.order = choice.order.to(normal.device());
  choice.inverse = choice.inverse.to(normal.device());
  KernelProblem p;
  p.inputs = {normal.take({rows / k, item.dims[0]}, type_of(item))};
  p.run = [=](const Tensors& in) { return Tensors{permute(in[0], choice, k)}; };
  p.reference = [=](const Tensors& in) {
    return Tensors{in[0].index_select(0, choice.order.to(in[0].device()).floor_divide(k))};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem swiglu_rows(const WorkItem& item, NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), 2 * item.dims[0]}, type_of(item))};
  p.run = [](const Tensors& in) { return Tensors{swiglu(in[0])}; };
  p.reference = [](const Tensors& in) {
    const auto halves = in[0].chunk(2, 1);
    return Tensors{halves[0] * halves[0].sigmoid() * halves[1]};
  };
  p.through_autograd = true;
  return p;
}

KernelProblem gelu_rows(const WorkItem& item, NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), item.dims[0]}, type_of(item))};
  p.run = [](const Tensors& in) { return Tensors{at::gelu(in[0])}; };
  p.reference = [](const Tensors& in) { return Tensors{0.5 * in[0] * (1 + (in[0] / std::sqrt(2.0)).erf())}; };
  p.through_autograd = true;
  return p;
}

KernelProblem bias(const WorkItem& item, NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item), item.dims[0]}, type_of(item))};
  if (item.pass == Pass::forward) {
    p.inputs.push_back(normal.take({item.dims[0]}, type_of(item)));
    p.run = [](const Tensors& in) { return Tensors{in[0].add_(in[1])}; };
    p.reference = [](const Tensors& in) { return Tensors{in[0] + in[1]}; };
  } else {
    p.run = [](const Tensors& in) { return Tensors{in[0].sum(0)}; };
    p.reference = [](const Tensors& in) { return Tensors{in[0].sum(0)}; };
  }
  return p;
}

/// Residual addition, gradient accumulation, and autograd's sum for the residual's gradient: all in place.
KernelProblem add(const WorkItem& item, NormalPool& normal) {
  KernelProblem p;
  for (int i = 0; i < 2; ++i) p.inputs.push_back(normal.take({rows_of(item), item.dims[0]}, type_of(item)));
  p.run = [](const Tensors& in) { return Tensors{in[0].add_(in[1])}; };
  p.reference = [](const Tensors& in) { return Tensors{in[0] + in[1]}; };
  p.cold = true;
  p.still_warm = {1};  // the addend was just computed; the other operand is older
  return p;
}

KernelProblem embedding(const WorkItem& item, const RunSpec& run, NormalPool& normal) {
  const std::int64_t rows = rows_of(item), width = item.dims[0], vocab = run.model.vocab;
  const Tensor tokens = random_integers(vocab, rows, normal.seed()).to(normal.device());
  KernelProblem p;
  p.cold = true;
  if (item.pass == Pass::forward) p.still_warm = {0};  // gathered by the previous op
  if (item.pass == Pass::forward) {
    p.inputs = {normal.take({vocab, width}, type_of(item))};
    p.run = [tokens](const Tensors& in) { return Tensors{in[0].index_select(0, tokens)}; };
    p.reference = [tokens, vocab](const Tensors& in) {
      return Tensors{at::mm(at::one_hot(tokens.to(in[0].device()), vocab).to(at::kDouble), in[0])};
    };
  } else {
    p.inputs = {normal.take({vocab, width}, at::kFloat), normal.take({rows, width}, type_of(item))};
    p.run = [tokens](const Tensors& in) { return Tensors{in[0].index_add_(0, tokens, in[1].to(at::kFloat))}; };
    p.reference = [tokens, vocab](const Tensors& in) {
      return Tensors{in[0] + at::mm(at::one_hot(tokens.to(in[0].device()), vocab).to(at::kDouble).t(), in[1])};
    };
  }
  return p;
}

KernelProblem cross_entropy(const WorkItem& item, NormalPool& normal) {
  const std::int64_t rows = rows_of(item), vocab = item.dims[0];
  const Tensor targets = random_integers(vocab, rows, normal.seed()).to(normal.device());
  KernelProblem p;
  p.inputs = {normal.take({rows, vocab}, type_of(item))};
  p.run = [=](const Tensors& in) {
    Tensor logits = in[0];
    const Tensor loss = at::zeros({}, logits.options().dtype(at::kDouble));
    cross_entropy_in_place(logits, targets, 1.0 / static_cast<double>(rows), loss);
    return Tensors{logits, loss};
  };
  p.reference = [=](const Tensors& in) {
    const Tensor hot = at::one_hot(targets.to(in[0].device()), vocab).to(at::kDouble);
    return Tensors{(in[0].softmax(1) - hot) / static_cast<double>(rows), -(in[0].log_softmax(1) * hot).sum()};
  };
  p.share = 0.5;
  return p;
}

KernelProblem adamw(const WorkItem& item, const RunSpec& run, NormalPool& normal) {
  const OptimizerSpec o = run.optimizer;
  const std::int64_t n = rows_of(item);
  KernelProblem p;
  for (int i = 0; i < 4; ++i) p.inputs.push_back(normal.take({n}, at::kFloat));
  p.inputs[2].square_();
  p.cold = true;
  p.run = [=](const Tensors& in) {
    check_kernel(wt_adamw(stream_of(in[0]), in[0].data_ptr<float>(), in[1].data_ptr<float>(), in[2].data_ptr<float>(),
                          in[3].data_ptr<float>(), n, o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, 10, 0.5f));
    return Tensors{in[0], in[1], in[2]};
  };
  p.reference = [=](const Tensors& in) {
    const Tensor g = 0.5 * in[3], m = o.beta1 * in[1] + (1 - o.beta1) * g, v = o.beta2 * in[2] + (1 - o.beta2) * g * g;
    const Tensor step = m / (1 - std::pow(o.beta1, 10)) / ((v / (1 - std::pow(o.beta2, 10))).sqrt() + o.eps);
    return Tensors{in[0] * (1 - o.lr * o.weight_decay) - o.lr * step, m, v};
  };
  return p;
}

/// Casts a master shard into the gathered buffer.
KernelProblem copy(const WorkItem& item, NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows_of(item)}, at::kFloat), normal.take({rows_of(item)}, type_of(item))};
  p.cold = true;
  p.still_warm = {1};  // the buffer that every layer is gathered into
  p.run = [](const Tensors& in) { return Tensors{in[1].copy_(in[0])}; };
  p.reference = [](const Tensors& in) { return Tensors{in[0]}; };
  return p;
}

}  // namespace

NormalPool::NormalPool(std::uint64_t seed, at::Device device) : seed_(seed) {
  values_ = at::randn({kPool}, at::make_generator<at::CPUGeneratorImpl>(seed), at::TensorOptions().dtype(at::kFloat))
                .to(device);
}

Tensor NormalPool::take(std::vector<std::int64_t> shape, at::ScalarType type) {
  Tensor out = at::empty(shape, values_.options().dtype(type)), flat = out.view({-1});
  for (std::int64_t done = 0; done < flat.numel();) {
    const std::int64_t n = std::min(flat.numel() - done, kPool - at_);
    flat.narrow(0, done, n).copy_(values_.narrow(0, at_, n));
    done += n;
    at_ = (at_ + n) % kPool;
  }
  return out;
}

KernelProblem make_problem(const WorkItem& item, const RunSpec& run, NormalPool& normal, GroupedAs as) {
  switch (item.kernel) {
    case Kernel::gemm:
      return gemm(item, normal);
    case Kernel::grouped_gemm:
      return grouped_gemm(item, run, normal, as);
    case Kernel::attention:
      return attention(item, normal);
    case Kernel::rmsnorm:
      return rmsnorm(item, run.model, normal);
    case Kernel::rope:
      return rope(item, run, normal);
    case Kernel::router:
      return router(item, run, normal);
    case Kernel::permute:
      return permute_rows(item, run, normal);
    case Kernel::swiglu:
      return swiglu_rows(item, normal);
    case Kernel::add:
      return add(item, normal);
    case Kernel::embedding:
      return embedding(item, run, normal);
    case Kernel::cross_entropy:
      return cross_entropy(item, normal);
    case Kernel::adamw:
      return adamw(item, run, normal);
    case Kernel::copy:
      return copy(item, normal);
    case Kernel::layernorm:
      return layernorm(item, run.model, normal);
    case Kernel::gelu:
      return gelu_rows(item, normal);
    case Kernel::bias:
      return bias(item, normal);
    case Kernel::host_copy:
    case Kernel::host_adamw:
      break;
  }
  throw_usage("work item {}: no benchmark for it", to_string(item.kernel));
}

}  // namespace wt
