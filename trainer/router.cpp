#include "trainer/router.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "configs/spec/error.hpp"
#include "sim/program/expert_copies.hpp"
#include "trainer/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check(WtStatus status) {
  if (status != WT_OK) throw_error(Code::runtime, "{}", wt_kernel_error());
}

/// What the fused kernel does: softmax, the k best, weights as they are or divided by their sum.
bool plain(const RouterSpec& spec, const Tensor& bias) {
  return spec.score == RouterSpec::Score::softmax && spec.groups == 1 && spec.scale == 1.0 && spec.capacity_factor == 0 &&
         spec.forced == RouterSpec::Forced::none && !bias.defined();
}

/// Rows of every sequence that chose each expert, (sequences, E) fp32.
Tensor counts_of(const Tensor& index, std::int64_t experts, std::int64_t seq) {
  const std::int64_t sequences = index.size(0) / seq, k = index.size(1);
  Tensor out = at::zeros({sequences, experts}, at::kFloat);
  const std::int64_t* chosen = index.data_ptr<std::int64_t>();
  for (std::int64_t s = 0; s < sequences; ++s)
    for (std::int64_t i = s * seq * k; i < (s + 1) * seq * k; ++i) out.data_ptr<float>()[s * experts + chosen[i]] += 1.0f;
  return out;
}

/// Gradient of the load-balancing loss with respect to the scores it is made of: rows of the sequence that chose the expert.
Tensor aux_gradient(const Tensor& sequence_counts, const RouterLossScale& scale) {
  const Tensor rows = sequence_counts * static_cast<float>(scale.aux);
  // repeat_interleave copies; a single expanded sequence would be a view that backward writes through.
  return rows.repeat_interleave(scale.seq, 0);
}

/// Experts by turns, or k different ones a token by Zipf's law (Gumbel noise on log weights, the same in every call).
Tensor forced_choice(const RouterSpec& spec, std::int64_t tokens, std::int64_t experts, std::int64_t k) {
  if (spec.forced == RouterSpec::Forced::balanced) return at::arange(tokens * k, at::kLong).remainder_(experts).view({tokens, k});
  std::mt19937_64 generator(20240117);
  std::uniform_real_distribution<double> uniform(1e-12, 1.0);
  Tensor noisy = at::empty({tokens, experts}, at::kFloat);
  float* value = noisy.data_ptr<float>();
  for (std::int64_t i = 0; i < tokens * experts; ++i)
    value[i] = static_cast<float>(-spec.zipf_exponent * std::log(static_cast<double>(i % experts + 1)) - std::log(-std::log(uniform(generator))));
  return std::get<1>(noisy.topk(k, 1));
}

/// The k best of (scores + bias), of the best groups alone; ties go to the lowest expert.
Tensor best_experts(const Tensor& scores, std::int64_t k, const RouterSpec& spec, const Tensor& bias) {
  const std::int64_t tokens = scores.size(0), experts = scores.size(1), per_group = experts / spec.groups;
  Tensor judged = bias.defined() ? scores + bias : scores;
  if (spec.groups > 1) {
    const Tensor grouped = judged.view({tokens, spec.groups, per_group});
    const std::int64_t counted = spec.group_worth == RouterSpec::GroupWorth::best ? 1 : std::min<std::int64_t>(2, per_group);
    const Tensor worth = std::get<0>(grouped.topk(counted, 2)).sum(2);
    const Tensor kept = std::get<1>(worth.sort(true, 1, true)).narrow(1, 0, spec.top_groups);
    const Tensor closed = at::ones({tokens, spec.groups}, scores.options().dtype(at::kBool)).scatter_(1, kept, false);
    judged = grouped.masked_fill(closed.unsqueeze(2), -std::numeric_limits<float>::infinity()).view({tokens, experts});
  }
  return std::get<1>(judged.sort(true, 1, true)).narrow(1, 0, k).contiguous();
}

/// (T, k) 1 for rows that their expert still takes, in the order of tokens; undefined where nothing is dropped.
Tensor taken_rows(const Tensor& index, std::int64_t experts, double capacity_factor) {
  if (capacity_factor == 0) return {};
  const std::int64_t rows = index.numel();
  const auto capacity = static_cast<std::int64_t>(capacity_factor * static_cast<double>(rows) / static_cast<double>(experts));
  Tensor taken = at::empty(index.sizes(), at::kFloat);
  std::vector<std::int64_t> load(static_cast<std::size_t>(experts), 0);
  for (std::int64_t i = 0; i < rows; ++i)
    taken.data_ptr<float>()[i] = load[static_cast<std::size_t>(index.data_ptr<std::int64_t>()[i])]++ < capacity ? 1.0f : 0.0f;
  return taken;
}

Tensor scores_of(const Tensor& logits, const RouterSpec& spec) {
  return spec.score == RouterSpec::Score::softmax ? logits.softmax(1) : logits.sigmoid();
}
/// What the load-balancing loss sums.
Tensor shares_of(const Tensor& scores, const RouterSpec& spec) {
  return spec.score == RouterSpec::Score::softmax ? scores : scores / scores.sum(1, true);
}

constexpr double kTiny = 1e-20;  ///< torchtitan's guard against a sum of zero

Tensor weights_of(const Tensor& scores, const Tensor& index, const RouterSpec& spec) {
  Tensor weights = scores.gather(1, index);
  if (spec.normalize) weights = weights / (weights.sum(1, true) + kTiny);
  if (spec.scale != 1.0) weights = weights * spec.scale;
  if (const Tensor taken = taken_rows(index, scores.size(1), spec.capacity_factor); taken.defined()) weights = weights * taken;
  return weights;
}

struct Route : torch::autograd::Function<Route> {
  static Tensor forward(AutogradContext* ctx, const Tensor& logits, std::int64_t top_k, const RouterSpec* spec,
                        const RouterLossScale* scale, const Tensor* bias_or_none, RouterChoice* choice, RouterLoss* loss) {
    const Tensor& bias = *bias_or_none;
    const std::int64_t tokens = logits.size(0), experts = logits.size(1);
    const bool fused = plain(*spec, bias), decided = choice->index.defined(), forced = !decided && choice->forced.defined();
    Tensor scores, weights, index;
    if (fused) {
      scores = at::empty_like(logits), weights = at::empty({tokens, top_k}, logits.options());
      index = at::empty({tokens, top_k}, logits.options().dtype(at::kLong));
      std::vector<std::int64_t> counts(static_cast<std::size_t>(experts));
      check(wt_router_forward(stream_of(logits), logits.data_ptr<float>(), tokens, experts, top_k, spec->normalize ? 1 : 0,
                              scores.data_ptr<float>(), weights.data_ptr<float>(), index.data_ptr<std::int64_t>(), counts.data()));
    } else {
      scores = scores_of(logits, *spec);
      if (!decided && !forced) index = spec->forced == RouterSpec::Forced::none ? best_experts(scores, top_k, *spec, bias) : forced_choice(*spec, tokens, experts, top_k);
    }
    if (decided) index = choice->index;  // recompute: the saved choice decides
    if (forced) index = choice->forced.clone();  // into counted memory
    if (decided || forced || !fused) weights = weights_of(scores, index, *spec);
    if (!decided) {
      choice->index = index;
      choice->expert_counts.assign(static_cast<std::size_t>(experts), 0);
      for (std::int64_t i = 0; i < index.numel(); ++i) ++choice->expert_counts[static_cast<std::size_t>(index.data_ptr<std::int64_t>()[i])];
      choice->sequence_counts = counts_of(index, experts, scale->seq);
      if (scale->whole_sequences)
        loss->aux += (aux_gradient(choice->sequence_counts, *scale) * shares_of(scores, *spec)).sum(at::kDouble).item<double>();
      else
        choice->score_sums = shares_of(scores, *spec).view({-1, scale->seq, experts}).sum(1);
      if (scale->z > 0) loss->z += scale->z * logits.logsumexp(1).square().sum(at::kDouble).item<double>();
    }
    ctx->save_for_backward({scores, index, weights, scale->z > 0 ? logits : Tensor()});
    ctx->saved_data["spec"] = reinterpret_cast<std::int64_t>(spec);
    ctx->saved_data["fused"] = fused;
    ctx->saved_data["aux"] = scale->aux;
    ctx->saved_data["z"] = scale->z;
    ctx->saved_data["seq"] = scale->seq;
    ctx->saved_data["counts"] = choice->sequence_counts;
    return weights;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &scores = saved[0], &index = saved[1], &weights = saved[2];
    const auto& spec = *reinterpret_cast<const RouterSpec*>(ctx->saved_data["spec"].toInt());
    RouterLossScale scale;
    scale.aux = ctx->saved_data["aux"].toDouble();
    scale.z = ctx->saved_data["z"].toDouble();
    scale.seq = ctx->saved_data["seq"].toInt();
    const Tensor dweights = gradients[0].contiguous();
    Tensor out = aux_gradient(ctx->saved_data["counts"].toTensor(), scale);
    if (ctx->saved_data["fused"].toBool()) {
      check(wt_router_backward(stream_of(dweights), dweights.data_ptr<float>(), scores.data_ptr<float>(),
                               index.data_ptr<std::int64_t>(), weights.data_ptr<float>(), out.data_ptr<float>(), scores.size(0),
                               scores.size(1), index.size(1), spec.normalize ? 1 : 0, out.data_ptr<float>()));
    } else {
      out = through_scores(scores, through_shares(scores, out, spec) + through_weights(scores, index, dweights, spec), spec);
    }
    if (scale.z > 0) {
      const Tensor probabilities = spec.score == RouterSpec::Score::softmax ? scores : saved[3].softmax(1);
      out += probabilities * (2.0 * scale.z * saved[3].logsumexp(1, true));
    }
    return {out, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// Gradient of the scores from that of the chosen weights, (T, E).
  static Tensor through_weights(const Tensor& scores, const Tensor& index, Tensor dweights, const RouterSpec& spec) {
    if (const Tensor taken = taken_rows(index, scores.size(1), spec.capacity_factor); taken.defined()) dweights = dweights * taken;
    if (spec.scale != 1.0) dweights = dweights * spec.scale;
    if (spec.normalize) {
      const Tensor chosen = scores.gather(1, index), total = chosen.sum(1, true) + kTiny;
      dweights = (dweights - (dweights * chosen).sum(1, true) / total) / total;
    }
    return at::zeros_like(scores).scatter_(1, index, dweights);
  }
  static Tensor through_shares(const Tensor& scores, const Tensor& dshares, const RouterSpec& spec) {
    if (spec.score == RouterSpec::Score::softmax) return dshares;
    const Tensor total = scores.sum(1, true);
    return (dshares - (dshares * scores).sum(1, true) / total) / total;
  }
  static Tensor through_scores(const Tensor& scores, const Tensor& dscores, const RouterSpec& spec) {
    if (spec.score == RouterSpec::Score::sigmoid) return dscores * scores * (1 - scores);
    return scores * (dscores - (dscores * scores).sum(1, true));
  }
};

}  // namespace

Tensor route(const Tensor& logits, std::int64_t top_k, const RouterSpec& spec, const RouterLossScale& scale, const Tensor& bias,
             RouterChoice& choice, RouterLoss& loss) {
  if (!logits.is_cpu())
    throw_error(Code::runtime, "route: found a tensor on {}, allowed is cpu (its counts and sums are host memory); call wt_router_forward of kernels.h instead",
                logits.device().str());
  return Route::apply(logits, top_k, &spec, &scale, &bias, &choice, &loss);
}

void sort_by_slot(RouterChoice& choice, const std::vector<std::int64_t>& slots) {
  const std::int64_t rows = choice.index.numel(), experts = static_cast<std::int64_t>(choice.expert_counts.size());
  const std::int64_t n = slots.empty() ? experts : static_cast<std::int64_t>(slots.size());
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  choice.order = at::empty({rows}, at::kLong);
  choice.inverse = at::empty({rows}, at::kLong);
  choice.slot_counts.assign(at(n), 0);
  std::vector<std::int64_t> slot_of_expert(at(slots.empty() ? 0 : experts)), slot_of_row;
  for (std::int64_t slot = n - 1; slot >= 0 && !slots.empty(); --slot) slot_of_expert[at(slots[at(slot)])] = slot;
  if (n > experts) {  // copies: the rows of an expert go to its slots in turn, each taking its part of them
    Layout layout;
    layout.placement = {slots};
    std::vector<double> left = rows_per_slot(layout, 0, {choice.expert_counts.begin(), choice.expert_counts.end()});
    const std::int64_t* expert = choice.index.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t& slot = slot_of_expert[at(expert[i])];
      while (left[at(slot)] == 0 || slots[at(slot)] != expert[i]) ++slot;
      left[at(slot)] -= 1;
      slot_of_row.push_back(slot);
    }
  }
  const bool copies = n > experts;
  check(wt_sort_by_expert(stream_of(choice.index), copies ? slot_of_row.data() : choice.index.data_ptr<std::int64_t>(),
                          copies || slots.empty() ? nullptr : slot_of_expert.data(), rows, n, choice.order.data_ptr<std::int64_t>(),
                          choice.inverse.data_ptr<std::int64_t>(), choice.slot_counts.data()));
}

void update_router_bias(Tensor& bias, const Tensor& rows, double rate) {
  const Tensor delta = (rows.mean(1, true) - rows).sign_().mul_(rate);
  bias.add_(delta - delta.mean(1, true));
}

}  // namespace wt
