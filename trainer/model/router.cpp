#include "trainer/model/router.hpp"

#include <cmath>
#include <random>

#include "sim/program/compose/expert_copies.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

WtRouterSpec kernel_spec(const RouterSpec& spec, std::int64_t tokens, std::int64_t experts, std::int64_t k,
                         std::int64_t sequence, bool given) {
  WtRouterSpec out{};
  out.T = tokens, out.E = experts, out.k = k, out.sequence = sequence, out.given = given;
  out.score = spec.score == RouterSpec::Score::softmax ? WT_SOFTMAX : WT_SIGMOID;
  out.groups = spec.groups, out.top_groups = spec.top_groups;
  out.group_best = spec.group_score == RouterSpec::GroupScore::best ? 1 : 2;
  out.normalize = spec.normalize, out.scale = static_cast<float>(spec.scale);
  return out;
}

/// Experts round robin, or k different ones per token by Zipf's law (Gumbel noise on log weights, the same every time).
Tensor forced_choice(const RouterSpec& spec, std::int64_t tokens, std::int64_t experts, std::int64_t k,
                     at::Device device) {
  if (spec.forced == RouterSpec::Forced::balanced)
    return at::arange(tokens * k, at::TensorOptions().dtype(at::kLong).device(device))
        .remainder_(experts)
        .view({tokens, k});
  std::mt19937_64 generator(20240117);
  std::uniform_real_distribution<double> uniform(1e-12, 1.0);
  Tensor noisy = at::empty({tokens, experts}, at::kFloat);
  float* value = noisy.data_ptr<float>();
  for (std::int64_t i = 0; i < tokens * experts; ++i)
    value[i] = static_cast<float>(-spec.zipf_exponent * std::log(static_cast<double>(i % experts + 1)) -
                                  std::log(-std::log(uniform(generator))));
  return std::get<1>(noisy.topk(k, 1)).to(device);
}

/// (T, k) 1 for rows that their expert accepts, in the order of tokens; undefined where nothing is dropped.
Tensor taken_rows(const Tensor& index, std::int64_t experts, double capacity_factor) {
  if (capacity_factor == 0) return {};
  const std::int64_t rows = index.numel();
  const auto capacity =
      static_cast<std::int64_t>(capacity_factor * static_cast<double>(rows) / static_cast<double>(experts));
  Tensor order = at::empty({rows}, index.options()), inverse = at::empty_like(order),
         counts = at::empty({experts}, index.options());
  sort_rows(index, experts, order, inverse, counts);
  const Tensor first = counts.cumsum(0) - counts;  // sorted row at which an expert begins
  return (inverse - first.index_select(0, index.view({-1}))).lt(capacity).to(at::kFloat).view(index.sizes());
}

struct Route : torch::autograd::Function<Route> {
  static Tensor forward(AutogradContext* ctx, const Tensor& logits, std::int64_t top_k, const RouterSpec* spec,
                        const RouterLossScale* scale, const Tensor* bias_or_none, RouterChoice* choice,
                        RouterLoss* loss) {
    const Tensor& bias = *bias_or_none;
    TORCH_CHECK(logits.is_contiguous() && scale->seq > 0 && (!bias.defined() || bias.device() == logits.device()),
                "route: needs contiguous logits, a bias on their device and sequences of at least one token");
    const std::int64_t tokens = logits.size(0), experts = logits.size(1),
                       seq = scale->of_microbatch ? tokens : scale->seq, sequences = tokens / seq;
    const double aux = scale->of_microbatch ? scale->aux / static_cast<double>(tokens) : scale->aux;
    const bool decided = choice->index.defined();  // in recompute the saved choice is used
    Tensor index;
    if (decided)
      index = choice->index;
    else if (choice->forced.defined())
      index = choice->forced.clone(), choice->forced.reset();  // moves it into counted memory
    else if (spec->forced != RouterSpec::Forced::none)
      index = forced_choice(*spec, tokens, experts, top_k, logits.device());
    const bool given = index.defined();
    TORCH_CHECK(!given || (index.is_contiguous() && index.device() == logits.device()),
                "route: needs contiguous choices on the logits' device");
    if (!given) index = at::empty({tokens, top_k}, logits.options().dtype(at::kLong));
    Tensor scores = at::empty_like(logits), weights = at::empty({tokens, top_k}, logits.options()), counts, share_sums,
           lse_squares;
    if (!decided) {
      counts = at::empty({sequences, experts}, index.options());
      share_sums = at::empty({sequences, experts}, logits.options().dtype(at::kDouble));
      if (scale->z > 0) lse_squares = at::empty({sequences}, share_sums.options());
    }
    check_kernel(wt_router_forward(stream_of(logits), kernel_spec(*spec, tokens, experts, top_k, seq, given),
                                   logits.data_ptr<float>(), bias.defined() ? bias.data_ptr<float>() : nullptr,
                                   index.data_ptr<std::int64_t>(), scores.data_ptr<float>(), weights.data_ptr<float>(),
                                   counts.defined() ? counts.data_ptr<std::int64_t>() : nullptr,
                                   share_sums.defined() ? share_sums.data_ptr<double>() : nullptr,
                                   lse_squares.defined() ? lse_squares.data_ptr<double>() : nullptr));
    if (const Tensor taken = taken_rows(index, experts, spec->capacity_factor); taken.defined()) weights *= taken;
    if (!decided) {
      choice->index = index;
      choice->sequence_counts = counts.to(at::kFloat);
      choice->expert_counts = counts.sum(0);
      if (scale->whole_sequences)
        add_loss(loss->aux, (counts * share_sums).sum() * aux);
      else
        choice->score_sums = share_sums;
      if (scale->z > 0) add_loss(loss->z, lse_squares.sum() * scale->z);
    }
    ctx->save_for_backward({scores, index, scale->z > 0 ? logits : Tensor()});
    ctx->saved_data["spec"] = reinterpret_cast<std::int64_t>(spec);
    ctx->saved_data["aux"] = aux;
    ctx->saved_data["z"] = scale->z;
    ctx->saved_data["seq"] = seq;
    ctx->saved_data["counts"] = choice->sequence_counts;
    return weights;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &scores = saved[0], &index = saved[1], &logits = saved[2];
    const auto& spec = *reinterpret_cast<const RouterSpec*>(ctx->saved_data["spec"].toInt());
    Tensor dweights = gradients[0].contiguous();
    if (const Tensor taken = taken_rows(index, scores.size(1), spec.capacity_factor); taken.defined())
      dweights = dweights * taken;
    const Tensor dshare_sums =
        ctx->saved_data["counts"].toTensor() * static_cast<float>(ctx->saved_data["aux"].toDouble());
    Tensor out = at::empty_like(scores);
    check_kernel(wt_router_backward(
        stream_of(dweights),
        kernel_spec(spec, scores.size(0), scores.size(1), index.size(1), ctx->saved_data["seq"].toInt(), true),
        dweights.data_ptr<float>(), scores.data_ptr<float>(), index.data_ptr<std::int64_t>(),
        dshare_sums.data_ptr<float>(), logits.defined() ? logits.data_ptr<float>() : nullptr,
        static_cast<float>(ctx->saved_data["z"].toDouble()), out.data_ptr<float>()));
    return {out, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

void add_loss(Tensor& total, const Tensor& part) {
  if (total.defined())
    total += part;
  else
    total = part;
}

Tensor route(const Tensor& logits, std::int64_t top_k, const RouterSpec& spec, const RouterLossScale& scale,
             const Tensor& bias, RouterChoice& choice, RouterLoss& loss) {
  return Route::apply(logits, top_k, &spec, &scale, &bias, &choice, &loss);
}

SlotMap SlotMap::make(std::vector<std::int64_t> experts_of_slots, std::int64_t experts, at::Device device) {
  SlotMap out{std::move(experts_of_slots), {}, {}};
  if (out.experts.empty()) return out;
  out.lowest_slot.resize(static_cast<std::size_t>(experts));
  for (std::size_t slot = out.experts.size(); slot-- > 0;)
    out.lowest_slot[static_cast<std::size_t>(out.experts[slot])] = static_cast<std::int64_t>(slot);
  out.slot_of_expert = at::tensor(out.lowest_slot, at::kLong).to(device);
  return out;
}

namespace {

/// The slot of every row where experts have copies: the copies share an expert's rows, in order.
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
