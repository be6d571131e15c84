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
  if (!index.is_cpu())  // a scatter would add in any order, which deterministic algorithms forbid
    return index.view({sequences, seq * k, 1}).eq(at::arange(experts, index.options())).sum(1, false, at::kFloat);
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
Tensor forced_choice(const RouterSpec& spec, std::int64_t tokens, std::int64_t experts, std::int64_t k, at::Device device) {
  if (spec.forced == RouterSpec::Forced::balanced)
    return at::arange(tokens * k, at::TensorOptions().dtype(at::kLong).device(device)).remainder_(experts).view({tokens, k});
  std::mt19937_64 generator(20240117);
  std::uniform_real_distribution<double> uniform(1e-12, 1.0);
  Tensor noisy = at::empty({tokens, experts}, at::kFloat);
  float* value = noisy.data_ptr<float>();
  for (std::int64_t i = 0; i < tokens * experts; ++i)
    value[i] = static_cast<float>(-spec.zipf_exponent * std::log(static_cast<double>(i % experts + 1)) - std::log(-std::log(uniform(generator))));
  return std::get<1>(noisy.topk(k, 1)).to(device);
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
  Tensor order = at::empty({rows}, index.options()), inverse = at::empty_like(order), counts = at::empty({experts}, index.options());
  sort_rows(index, experts, order, inverse, counts);
  const Tensor first = counts.cumsum(0) - counts;  // sorted row where an expert begins
  return (inverse - first.index_select(0, index.view({-1}))).lt(capacity).to(at::kFloat).view(index.sizes());
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
      Tensor counts = at::empty({experts}, index.options());
      check(wt_router_forward(stream_of(logits), logits.data_ptr<float>(), tokens, experts, top_k, spec->normalize ? 1 : 0,
                              scores.data_ptr<float>(), weights.data_ptr<float>(), index.data_ptr<std::int64_t>(),
                              counts.data_ptr<std::int64_t>()));
    } else {
      scores = scores_of(logits, *spec);
      if (!decided && !forced) index = spec->forced == RouterSpec::Forced::none ? best_experts(scores, top_k, *spec, bias) : forced_choice(*spec, tokens, experts, top_k, logits.device());
    }
    if (decided) index = choice->index;  // recompute: the saved choice decides
    if (forced) index = choice->forced.clone(), choice->forced.reset();  // into counted memory
    if (decided || forced || !fused) weights = weights_of(scores, index, *spec);
    if (!decided) {
      choice->index = index;
      choice->sequence_counts = counts_of(index, experts, scale->seq);
      choice->expert_counts = choice->sequence_counts.sum(0).to(at::kLong);
      if (scale->whole_sequences)
        add_loss(loss->aux, (aux_gradient(choice->sequence_counts, *scale) * shares_of(scores, *spec)).sum(at::kDouble));
      else
        choice->score_sums = shares_of(scores, *spec).view({-1, scale->seq, experts}).sum(1);
      if (scale->z > 0) add_loss(loss->z, logits.logsumexp(1).square().sum(at::kDouble) * scale->z);
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

void add_loss(Tensor& total, const Tensor& part) {
  if (total.defined()) total += part;
  else total = part;
}

Tensor route(const Tensor& logits, std::int64_t top_k, const RouterSpec& spec, const RouterLossScale& scale, const Tensor& bias,
             RouterChoice& choice, RouterLoss& loss) {
  return Route::apply(logits, top_k, &spec, &scale, &bias, &choice, &loss);
}

SlotMap SlotMap::make(std::vector<std::int64_t> experts_of_slots, std::int64_t experts, at::Device device) {
  SlotMap out{std::move(experts_of_slots), {}, {}};
  if (out.experts.empty()) return out;
  out.lowest_slot.resize(static_cast<std::size_t>(experts));
  for (std::size_t slot = out.experts.size(); slot-- > 0;) out.lowest_slot[static_cast<std::size_t>(out.experts[slot])] = static_cast<std::int64_t>(slot);
  out.slot_of_expert = at::tensor(out.lowest_slot, at::kLong).to(device);
  return out;
}

namespace {

/// The slot of every row where experts have copies: each takes its part of them, in turn.
Tensor deal_to_copies(const RouterChoice& choice, const SlotMap& slots) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const Tensor counts = choice.expert_counts.cpu(), index = choice.index.cpu();
  const std::int64_t *rows = counts.data_ptr<std::int64_t>(), *expert = index.data_ptr<std::int64_t>();
  Layout layout;
  layout.placement = {slots.experts};
  std::vector<double> left = rows_per_slot(layout, 0, {rows, rows + counts.numel()});
  std::vector<std::int64_t> next = slots.lowest_slot, slot_of_row;
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    std::int64_t& slot = next[at(expert[i])];
    while (left[at(slot)] == 0 || slots.experts[at(slot)] != expert[i]) ++slot;
    left[at(slot)] -= 1;
    slot_of_row.push_back(slot);
  }
  return at::tensor(slot_of_row, at::kLong).to(choice.index.device());
}

}  // namespace

void sort_by_slot(RouterChoice& choice, const SlotMap& slots) {
  const std::int64_t rows = choice.index.numel(), experts = choice.expert_counts.numel();
  const std::int64_t n = slots.experts.empty() ? experts : static_cast<std::int64_t>(slots.experts.size());
  const bool copies = n > experts;
  const Tensor sorted_by = copies ? deal_to_copies(choice, slots) : choice.index;
  choice.order = at::empty({rows}, choice.index.options());
  choice.inverse = at::empty_like(choice.order);
  choice.slot_counts = at::empty({n}, choice.index.options());
  sort_rows(sorted_by, n, choice.order, choice.inverse, choice.slot_counts, copies ? Tensor() : slots.slot_of_expert);
}

void update_router_bias(Tensor& bias, const Tensor& rows, double rate) {
  const Tensor delta = (rows.mean(1, true) - rows).sign_().mul_(rate);
  bias.add_(delta - delta.mean(1, true));
}

}  // namespace wt
