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

/// (T, k) whether its expert accepts a row, in the order of tokens; undefined if nothing is dropped.
Tensor kept_rows(const Tensor& index, std::int64_t experts, const RouterSpec& spec) {
  if (!spec.drops()) return {};
  const std::int64_t rows = index.numel();
  Tensor order = at::empty({rows}, index.options()), inverse = at::empty_like(order),
         counts = at::empty({experts}, index.options());
  sort_rows(index, experts, order, inverse, counts);
  const Tensor first = counts.cumsum(0) - counts;  // sorted row at which an expert begins
  return (inverse - first.index_select(0, index.view({-1}))).lt(spec.capacity(rows, experts)).view(index.sizes());
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
    if (!decided) choice->kept = kept_rows(index, experts, *spec);
    if (choice->kept.defined()) weights *= choice->kept;
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
    ctx->save_for_backward({scores, index, scale->z > 0 ? logits : Tensor(), choice->kept});
    ctx->saved_data["spec"] = reinterpret_cast<std::int64_t>(spec);
    ctx->saved_data["aux"] = aux;
    ctx->saved_data["z"] = scale->z;
    ctx->saved_data["seq"] = seq;
    ctx->saved_data["counts"] = choice->sequence_counts;
    return weights;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &scores = saved[0], &index = saved[1], &logits = saved[2], &kept = saved[3];
    const auto& spec = *reinterpret_cast<const RouterSpec*>(ctx->saved_data["spec"].toInt());
    Tensor dweights = gradients[0].contiguous();
    if (kept.defined()) dweights = dweights * kept;
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
  const Tensor index = choice.index.cpu(), kept = choice.kept.defined() ? choice.kept.cpu() : Tensor();
  const std::int64_t* const expert = index.data_ptr<std::int64_t>();
  const auto dropped = [&](std::int64_t i) { return kept.defined() && !kept.data_ptr<bool>()[i]; };
  std::vector<double> rows(slots.lowest_slot.size(), 0.0);
  for (std::int64_t i = 0; i < index.numel(); ++i)
    if (!dropped(i)) rows[at(expert[i])] += 1;
  Layout layout;
  layout.placement = {slots.experts};
  std::vector<double> left = rows_per_slot(layout, 0, rows);
  std::vector<std::int64_t> next = slots.lowest_slot, slot_of_row;
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    std::int64_t& slot = next[at(expert[i])];
    if (!dropped(i)) {
      while (left[at(slot)] == 0 || slots.experts[at(slot)] != expert[i]) ++slot;
      left[at(slot)] -= 1;
    }
    slot_of_row.push_back(slot);
  }
  return at::tensor(slot_of_row, at::kLong).to(choice.index.device());
}

}  // namespace

void sort_by_slot(RouterChoice& choice, const SlotMap& slots) {
  const std::int64_t rows = choice.index.numel(), experts = choice.expert_counts.numel();
  const std::int64_t n = slots.experts.empty() ? experts : static_cast<std::int64_t>(slots.experts.size());
  const bool copies = n > experts;
  Tensor sorted_by = copies ? deal_to_copies(choice, slots) : choice.index,
         renamed = copies ? Tensor() : slots.slot_of_expert;
  std::int64_t places = n;
  if (choice.kept.defined()) {  // dropped rows are sorted behind all others, as those of one more slot, and left out
    if (renamed.defined()) sorted_by = renamed.index_select(0, sorted_by.view({-1})), renamed.reset();
    sorted_by = at::where(choice.kept.view({-1}), sorted_by.view({-1}), places++);
  }
  choice.order = at::empty({rows}, choice.index.options());
  choice.inverse = at::empty_like(choice.order);
  choice.slot_counts = at::empty({places}, choice.index.options());
  sort_rows(sorted_by, places, choice.order, choice.inverse, choice.slot_counts, renamed);
  if (!choice.kept.defined()) return;
  choice.order = choice.order.narrow(0, 0, rows - choice.slot_counts[n].item<std::int64_t>());
  choice.inverse.masked_fill_(choice.kept.view({-1}).logical_not(), std::int64_t{WT_DROPPED});
  choice.slot_counts = choice.slot_counts.narrow(0, 0, n);
}

void update_router_bias(Tensor& bias, const Tensor& rows, double rate) {
  const Tensor delta = (rows.mean(1, true) - rows).sign_().mul_(rate);
  bias.add_(delta - delta.mean(1, true));
}

}  // namespace wt
