#include "trainer/model/segments.hpp"

#include <algorithm>
#include <numeric>

#include "configs/files/memory_facts.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

Tensor leaf(const Tensor& value) { return value.detach().requires_grad_(true); }

using torch::autograd::Edge;

/// The tensor's gradient edge; none where no graph was kept.
Edge end_of(const Tensor& tensor) {
  return tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor) : Edge{};
}

/// The module's norm before the shared head, under the name of the head's own norm.
Slot head_norm_of(const Slot& dense) {
  constexpr std::string_view kPrefix = "shared_head.";
  Slot out;
  for (std::size_t i = 0; i < dense.leaves.size(); ++i) {
    if (!dense.names[i].starts_with(kPrefix)) continue;
    out.names.push_back(dense.names[i].substr(kPrefix.size()));
    out.leaves.push_back(leaf(dense.leaves[i].detach().clone()));
    out.leaves.back().mutable_grad() = at::zeros_like(out.leaves.back(), at::kFloat);
  }
  return out;
}

void backward(std::vector<Edge> roots, std::vector<Tensor> gradients) {
  torch::autograd::Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false, /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

}  // namespace

Segments::Segments(const ModelSpec& model, const Layout& layout, std::int64_t seq, std::int64_t global_sequences,
                   at::ScalarType type, std::int64_t context_rank, at::Device device, bool last_target_missing,
                   std::int64_t loss_chunks)
    : model_(model),
      layout_(layout),
      seq_(seq / layout.context),
      sequences_(static_cast<double>(global_sequences)),
      length_(static_cast<double>(seq)),
      with_target_(length_ - (last_target_missing ? 1 : 0)),
      context_rank_(context_rank),
      loss_chunks_(loss_chunks),
      type_(type),
      positions_(Positions::make(model, seq, layout.context, context_rank).to(device, type)) {
  const double layers = static_cast<double>(model.moe_layers());
  router_scale_.of_microbatch = model.router.aux_of_microbatch;
  router_scale_.seq = seq_;
  router_scale_.whole_sequences = layout.context == 1;
  router_scale_.aux = model.router.aux_loss_weight * static_cast<double>(model.experts) /
                      (layers * static_cast<double>(model.top_k) * sequences_ * length_ *
                       (model.router.aux_of_microbatch ? 1.0 : length_));
  router_scale_.z = model.router.z_loss_weight / (layers * sequences_ * length_);
  for (const auto& experts : layout.placement) slots_.push_back(SlotMap::make(experts, model.experts, device));
  if (slots_.empty()) slots_.resize(static_cast<std::size_t>(model.blocks()));
}

Compression Segments::compression(const LayerRecompute& recompute, std::int64_t layer) const {
  return recompute.recomputes_attention() && !model_.mtp(layer) ? layout_.recompute.compression : Compression::none;
}

Tensor Segments::begin_block(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                             const LayerRecompute& recompute) const {
  const bool first = direction == Direction::forward, keep_graph = !first || !recompute.recomputes_attention();
  if (const Compression packed = compression(recompute, layer); !first && packed != Compression::none)
    s.input = unpack_rows(s.packed, packed, type_), s.packed = {};
  if (keep_graph) s.input = leaf(s.input);
  if (!model_.mtp(layer)) return s.input;
  if (first) s.module.head_norm = head_norm_of(dense);
  if (keep_graph) s.module.embedding = leaf(s.module.embedding);
  const Tensor both =
      at::cat({norm(s.module.embedding, dense, "enorm", model_), norm(s.input, dense, "hnorm", model_)}, 1);
  return product(both, dense, "eh_proj");
}

void Segments::project(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                       const LayerRecompute& recompute) const {
  const at::AutoGradMode mode(direction != Direction::forward || !recompute.recomputes_attention());
  const Tensor input = begin_block(s, dense, layer, direction, recompute);
  if (model_.mtp(layer)) s.module.projected = input.detach(), s.module.projected_end = end_of(input);
  Qkv qkv = project_qkv(input, dense, model_, positions_, input.size(0) / seq_, recompute.norm);
  s.q_end = end_of(qkv.q), s.k_end = end_of(qkv.k), s.v_end = end_of(qkv.v);
  s.q = qkv.q.detach();
  s.kv = at::stack({qkv.k.detach(), qkv.v.detach()});
  if (qkv.normed.defined()) s.ffn_input_end = end_of(qkv.normed), s.ffn_input = qkv.normed.detach();
}

void Segments::attention(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                         const LayerRecompute& recompute, const Tensor& router_bias, RouterLoss& loss) const {
  const bool first = direction == Direction::forward, keep_graph = !first || !recompute.recomputes_attention();
  const at::AutoGradMode mode(keep_graph);
  Qkv qkv;
  Tensor input;  // as the residual adds it
  if (layout_.context == 1) {
    input = begin_block(s, dense, layer, direction, recompute);
    qkv = project_qkv(input, dense, model_, positions_, input.size(0) / seq_, recompute.norm);
  } else {
    const Tensor kv = in_sequence_order(s.kv_gathered);
    s.kv_gathered.reset();
    qkv = {std::move(s.q), kv.select(0, 0), kv.select(0, 1), {}};
    input = model_.mtp(layer) ? std::move(s.module.projected) : s.input;
    if (keep_graph) {
      qkv.q = s.q = leaf(qkv.q), qkv.k = s.k = leaf(qkv.k), qkv.v = s.v = leaf(qkv.v);
      input = s.residual_input = leaf(input);
    }
  }
  Tensor attended = attend(qkv.q, qkv.k, qkv.v, dense, model_, positions_, layer, documents_);
  qkv.q.reset(), qkv.k.reset(), qkv.v.reset();
  Tensor residual = product(attended, dense, "attention.output").add_(input);
  attended.reset();
  Tensor normed;  // input of the FFN
  if (model_.moe(layer)) {
    Projected router =
        norm_then_product(residual, dense, "ffn_norm", dense["router.weight"], model_, at::kFloat, recompute.norm);
    normed = router.normed;
    if (const Tensor bias = dense.find("router.logit_bias"); bias.defined())
      router.product.add_(bias);  // in place, because backward does not read the product
    const Tensor weights =
        route(router.product, model_.top_k, model_.router, router_scale_, router_bias, s.choice, loss);
    if (!s.choice.order.defined()) sort_by_slot(s.choice, slots_[static_cast<std::size_t>(layer)]);
    const Tensor rows = permute(normed, s.choice, model_.top_k);
    s.weights_end = end_of(weights), s.rows_end = end_of(rows);
    s.weights = weights.detach();
    if (first || recompute.block) s.rows = rows.detach();
  } else if (model_.attention.parallel == AttentionSpec::Parallel::one_norm) {
    normed = qkv.normed;  // under context parallelism, project() has already set the FFN's input
  } else {
    const bool parallel = model_.attention.parallel != AttentionSpec::Parallel::none;
    normed = norm(parallel ? input : residual, dense, "ffn_norm", model_);
  }
  if (model_.ffn_width(layer) > 0 && normed.defined()) {
    s.ffn_input_end = end_of(normed);
    if (first || recompute.block) s.ffn_input = normed.detach();
  }
  s.residual_end = end_of(residual);
  if (first) s.residual = residual.detach();
  if (const Compression packed = compression(recompute, layer); first && packed != Compression::none)
    s.packed = pack_rows(s.input, packed), s.input.reset();
}

void Segments::ffn(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                   const LayerRecompute& recompute) const {
  const bool first = direction == Direction::forward, keep_graph = !first || !recompute.block;
  const at::AutoGradMode mode(keep_graph);
  if (keep_graph) s.ffn_input = leaf(s.ffn_input);
  const std::string part = model_.moe(layer) ? "shared_experts." : "ffn.";
  Tensor first_product = product(s.ffn_input, dense, part + (model_.gated() ? "gate_up" : "up"));
  if (!keep_graph) s.ffn_input.reset();
  const Tensor activated = activate(first_product, model_.activation);
  first_product.reset();
  const Tensor out = product(activated, dense, part + "down");
  s.ffn_output_end = end_of(out);
  if (!first) return;
  const at::NoGradGuard no_grad;
  s.residual = out.detach().add_(s.residual);  // in place, because the product does not read its output again
}

void Segments::ffn_backward(LayerState& s) const {
  backward({std::move(s.ffn_output_end)}, {s.output_gradient});
  s.ffn_input_gradient = s.ffn_input.grad();
  s.ffn_input.reset();
}

void Segments::plan_rows(LayerState& s) const {
  const std::int64_t ranks = layout_.expert, local = layout_.slots_per_rank(model_);
  const Tensor rows = at::stack({s.choice.slot_counts.view({ranks, local}).sum(1), s.received_counts.sum(1)}).cpu();
  const std::int64_t* sent = rows.data_ptr<std::int64_t>();
  s.sent_rows.assign(sent, sent + ranks);
  s.received_rows.assign(sent + ranks, sent + 2 * ranks);
  const std::int64_t total = std::accumulate(s.received_rows.begin(), s.received_rows.end(), std::int64_t{0});
  const auto options = s.received_counts.options();
  // Rows arrive by rank, and by expert within a rank. These orders sort them by expert, and back.
  const Tensor expert =
      at::repeat_interleave(at::arange(local, options).repeat({ranks}), s.received_counts.view({-1}), 0, total);
  s.to_expert_major = at::empty({total}, options);
  s.to_rank_major = at::empty({total}, options);
  sort_rows(expert, local, s.to_expert_major, s.to_rank_major);
}

void Segments::experts(LayerState& s, const Slot& expert, Direction direction, const LayerRecompute& recompute) const {
  const bool first = direction == Direction::forward, keep_graph = !first || !recompute.recomputes_experts();
  const bool output = first || recompute.block;  // otherwise combine has kept its output, which backward can use
  const at::AutoGradMode mode(keep_graph);
  const bool local = layout_.expert == 1;
  if (output) {
    s.expert_input = local ? std::move(s.rows) : gather_rows(s.received, s.to_expert_major);
    s.rows.reset(), s.received.reset();
  }
  if (keep_graph) s.expert_input = leaf(s.expert_input);
  const Tensor offsets = (local ? s.choice.slot_counts : s.received_counts.sum(0)).cumsum(0).to(at::kInt);
  const auto grouped = [&](const Tensor& rows, const std::string& name, bool compute) {
    return grouped_product(rows, expert[name + ".weight"], offsets, compute, {}, expert.find(name + ".bias"));
  };
  Tensor gate_up = grouped(s.expert_input, model_.gated() ? "experts.gate_up" : "experts.up", true);
  if (first && recompute.block) s.expert_input.reset();
  Tensor activated = activate(gate_up, model_.activation);
  gate_up.reset();
  const Tensor out = grouped(activated, "experts.down", output);
  activated.reset();
  s.output_end = end_of(out);
  if (!output) return;
  if (local) {
    s.collected = out.detach();
  } else {
    const at::NoGradGuard no_grad;
    s.outgoing = gather_rows(out.detach(), s.to_rank_major);
  }
}

Tensor Segments::combine_rows(LayerState& s, const LayerRecompute& recompute) const {
  const at::NoGradGuard no_grad;
  Tensor out = combine(s.collected, s.choice, s.weights, s.residual);
  s.residual.reset();
  if (recompute.block) s.collected.reset();
  return out;
}

void Segments::combine_rows_backward(LayerState& s) const {
  const at::NoGradGuard no_grad;
  std::tie(s.collected_gradient, s.weights_gradient) =
      combine_backward(s.output_gradient, s.collected, s.choice, s.weights);
  s.collected.reset();
}

void Segments::experts_backward(LayerState& s) const {
  const bool local = layout_.expert == 1;
  Tensor gradient = local ? std::move(s.collected_gradient) : gather_rows(s.incoming_gradient, s.to_expert_major);
  s.incoming_gradient.reset();
  backward({std::move(s.output_end)}, {std::move(gradient)});
  Tensor out = s.expert_input.grad();
  s.expert_input.reset();
  if (local) {
    s.rows_gradient = out;
  } else {
    s.expert_input_gradient = gather_rows(out, s.to_rank_major);
  }
}

Tensor Segments::attention_backward(LayerState& s) const {
  std::vector<Edge> roots;
  std::vector<Tensor> gradients;
  const auto add = [&](Edge& end, Tensor& gradient) {
    if (!gradient.defined()) return;
    roots.push_back(std::move(end));
    gradients.push_back(std::move(gradient));
  };
  add(s.residual_end, s.output_gradient), add(s.rows_end, s.rows_gradient), add(s.weights_end, s.weights_gradient);
  const bool context_parallel = layout_.context > 1,
             handed_on = model_.attention.parallel == AttentionSpec::Parallel::one_norm;
  if (!context_parallel || !handed_on) add(s.ffn_input_end, s.ffn_input_gradient);
  backward(std::move(roots), std::move(gradients));
  if (context_parallel) {
    s.q_gradient = s.q.grad(), s.residual_input_gradient = s.residual_input.grad();
    s.kv_gathered_gradient = in_rank_order(s.k.grad(), s.v.grad(), layout_.context);
    s.q.reset(), s.k.reset(), s.v.reset(), s.residual_input.reset();
    return {};
  }
  Tensor gradient = s.input.grad();
  s = LayerState{};
  return gradient;
}

Tensor Segments::project_backward(LayerState& s) const {
  std::vector<Edge> roots{std::move(s.q_end), std::move(s.k_end), std::move(s.v_end)};
  std::vector<Tensor> gradients{std::move(s.q_gradient), s.kv_gradient.select(0, 0), s.kv_gradient.select(0, 1)};
  s.kv_gradient.reset();
  if (s.ffn_input_gradient.defined())
    roots.push_back(std::move(s.ffn_input_end)), gradients.push_back(std::move(s.ffn_input_gradient));
  const bool module = s.module.projected_end.is_valid();
  if (module) roots.push_back(std::move(s.module.projected_end)), gradients.push_back(s.residual_input_gradient);
  backward(std::move(roots), std::move(gradients));
  Tensor gradient = s.input.grad();
  if (!module) gradient.add_(s.residual_input_gradient);
  s = LayerState{};
  return gradient;
}

Tensor Segments::balance_loss(const LayerState& s) const {
  return (s.choice.sequence_counts * s.choice.score_sums).sum(at::kDouble) * router_scale_.aux;
}

void Segments::for_own_positions(
    const std::function<void(std::int64_t at, std::int64_t first, std::int64_t count)>& visit) const {
  if (layout_.context == 1) return visit(0, 0, seq_);
  const std::int64_t piece = seq_ / 2;  // see context_positions
  visit(0, context_rank_ * piece, piece);
  visit(piece, (2 * layout_.context - 1 - context_rank_) * piece, piece);
}

Tensor Segments::embed(const Slot& embedding, const Tensor& tokens) const {
  const at::NoGradGuard no_grad;
  Tensor out = embedding.leaves.back().index_select(0, tokens);
  if (model_.learned_positions == 0) return out;
  const Tensor rows = out.view({-1, seq_, model_.d_model});
  for_own_positions([&](std::int64_t at, std::int64_t first, std::int64_t count) {
    rows.narrow(1, at, count).add_(embedding["positions.weight"].narrow(0, first, count));
  });
  return out;
}

void Segments::embed_backward(GradientBuffer& embedding, const Tensor& tokens, const Tensor& gradient) const {
  const at::NoGradGuard no_grad;
  embedding.leaves.back().index_add_(0, tokens, gradient.to(at::kFloat));
  if (model_.learned_positions == 0) return;
  const Tensor rows = gradient.view({-1, seq_, model_.d_model});
  for_own_positions([&](std::int64_t at, std::int64_t first, std::int64_t count) {
    const Tensor own = embedding.leaves.front().narrow(0, first, count);
    for (std::int64_t sequence = 0; sequence < rows.size(0); ++sequence)
      own.add_(rows.select(0, sequence).narrow(0, at, count));
  });
}

Tensor Segments::head(const Slot& head, const Slot& norms, const Tensor& input, const Tensor& targets,
                      std::int64_t depth, const Tensor& loss) const {
  const at::AutoGradMode mode(true);
  const Tensor x = leaf(input);
  Tensor normed = norm(x, norms, "norm", model_);
  const Edge normed_end = end_of(normed);
  // The product has no graph, so that a piece's logits, and the gradient in their place, are gone before the next's.
  const at::NoGradGuard no_grad;
  const Tensor& weight = head.leaves.back();
  // The modules' losses are averaged (DeepSeek-V3, eq. 25).
  const double share = depth == 0 ? 1.0 : model_.mtp_loss_weight / static_cast<double>(model_.mtp_layers);
  const std::int64_t tokens = normed.size(0),
                     piece = loss_piece_tokens(loss_chunks_, tokens, weight.size(0), weight.size(1));
  Tensor gradient = at::empty_like(normed);
  for (std::int64_t begin = 0; begin < tokens; begin += piece) {
    const std::int64_t count = std::min(piece, tokens - begin);
    const Tensor rows = normed.narrow(0, begin, count);
    Tensor logits = at::mm(rows, weight.t()), row_gradients = gradient.narrow(0, begin, count);
    cross_entropy_in_place(logits, targets.narrow(0, begin, count), share / loss_tokens(depth), loss);
    at::mm_out(row_gradients, logits, weight);
    if (weight.requires_grad()) weight.grad().add_(at::mm(logits.t(), rows));
  }
  normed.reset();
  backward({normed_end}, {gradient});
  return x.grad();
}

}  // namespace wt
