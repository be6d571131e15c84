#include "sim/program/compose/block_ops.hpp"

#include <algorithm>

#include "sim/program/compose/group_ops.hpp"

namespace wt {

void BlockOps::leave_products(Op& o) {
  std::erase_if(o.work, [](const WorkItem& item) { return item.kernel == Kernel::attention; });
  for (WorkItem& item : o.work)
    if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm)
      item.dims[0] = std::max<std::int64_t>(1, item.dims[0] / 2);
}

Op BlockOps::ffn(Direction direction, const LayerRecompute& recompute) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.tokens);
  const std::int64_t width = m.ffn_width(layer_);
  Op o = op("ffn" + suffix(direction), Action::ffn, direction, Group::dense);
  if (!mixer_alone())
    o.work = {item(Kernel::gemm, direction, tokens, {m.ffn_rows(width), m.d_model}),
              item(m.gated() ? Kernel::swiglu : Kernel::gelu, direction, tokens, {width}),
              item(Kernel::gemm, direction, tokens, {m.d_model, width})};
  if (m.ffn_bias && !mixer_alone())
    for (const std::int64_t biases : {m.ffn_rows(width), m.d_model}) add_bias(o.work, direction, tokens, biases);
  if (m.norm_placement == NormPlacement::both && !moe() && !mixer_alone())  // experts' sum has it in combine
    o.work.push_back(item(norm_kernel(), direction, fixed(sizes_.own_tokens), {m.d_model}));
  const double saved = sizes_.ffn_saved;
  if (direction == Direction::backward) {
    o.waits = {{unshard_name(Group::dense, direction)}};
    o.allocates = {{"ffn.input.gradient", fixed(sizes_.x)}};
    // Moments: backward of the down projection, the activation, the first product, as in the experts.
    o.transient = {fixed(sizes_.ffn_activated + sizes_.ffn_down_weight - sizes_.x),
                   fixed(sizes_.ffn_gate_up + sizes_.ffn_activated - sizes_.ffn_output_saved +
                         sizes_.ffn_gate_backward - sizes_.x),
                   fixed(sizes_.ffn_gate_up_weight - sizes_.ffn_output_saved)};
    o.frees = {{"ffn.saved"}};
    if (recompute.products) o.frees.push_back({"ffn.kept"});
    if (norm_again(recompute) && !recompute.recomputes_ffn()) o.allocates.push_back({"ffn.input", fixed(sizes_.x)});
    if (!sizes_.ffn_input_shared || recompute.attention) o.frees.push_back({"ffn.input"});
    return o;
  }
  const bool first = direction == Direction::forward, kept = !first || !recompute.recomputes_ffn();
  o.waits = {{chosen(direction, recompute)}};
  if (kept) o.allocates.push_back({"ffn.saved", fixed(saved - (recompute.products ? sizes_.ffn_saved_kept : 0))});
  if (recompute.products && first) o.allocates.push_back({"ffn.kept", fixed(sizes_.ffn_kept)});
  if (!first) {
    if (recompute.products) leave_products(o);
    if (norm_again(recompute) && !recompute.moe) o.allocates.push_back({"ffn.input", fixed(sizes_.x)});
    o.transient = {fixed(sizes_.x)};  // the unused result
    if (sizes_.ffn_gate_forward > 0) o.transient.push_back(fixed(sizes_.ffn_gate_forward));
    return o;
  }
  if (!tensor()) o.work.push_back(item(Kernel::add, direction, tokens, {m.d_model}));
  o.allocates.push_back({moe() ? "shared.expert.output" : "block.output", fixed(sizes_.x)});
  o.frees = {{"residual"}};
  if (recompute.block || norm_again(recompute)) o.frees.push_back({"ffn.input"});
  if (!kept) o.transient = {fixed(saved + sizes_.ffn_gate_forward - sizes_.x)};
  if (kept && sizes_.ffn_gate_forward > 0) o.transient = {fixed(sizes_.ffn_gate_forward - sizes_.x)};
  return o;
}

Op BlockOps::experts(Direction direction, const LayerRecompute& recompute) const {
  const auto& m = model_;
  const std::int64_t local_experts = layout_.slots_per_rank(m);
  const Amount rows = sizes_.rows;
  const bool local = layout_.expert == 1 && !cut_experts(), backward = direction == Direction::backward,
             first = direction == Direction::forward;
  const bool output =
      first || recompute.exchanges_again();  // otherwise combine has kept the experts' output for backward
  Op o = op("experts" + suffix(direction), Action::experts, direction, Group::expert);
  const std::int64_t d = m.expert_width();
  o.work = {item(Kernel::grouped_gemm, direction, rows, {m.ffn_rows(m.ffn), d, local_experts}),
            item(m.gated() ? Kernel::swiglu : Kernel::gelu, direction, rows, {m.ffn})};
  if (backward || output) o.work.push_back(item(Kernel::grouped_gemm, direction, rows, {d, m.ffn, local_experts}));
  if (m.ffn_bias)
    for (const std::int64_t biases : {m.ffn_rows(m.ffn), d}) add_bias(o.work, direction, rows, biases);
  if (!local && (backward || output))
    for (int sorts = 0; sorts < 2; ++sorts) o.work.push_back(item(Kernel::permute, direction, rows, {d}));
  o.waits = {{unshard_name(Group::expert, direction)}};
  if (backward) {
    o.waits.push_back({remote() ? "collect.bwd" : "combine.bwd"});
    o.allocates = {{"expert.input.gradient", sizes_.row_block}};
    // Moments: backward of the down projection, the addition of its weight's gradient, backward of SwiGLU, backward of
    // gate and up, and the addition of their weights' gradients. Each frees its inputs afterwards. A CPU's bf16 product
    // first copies both inputs (measured); transport_scratch means that machine.
    const bool copies = options_.transport_scratch && options_.precision == Precision::bf16;
    const Amount inputs = copies ? sum(sizes_.experts_output_saved, sizes_.row_block) : Amount{},
                 unsaved = difference(sizes_.activated, sizes_.experts_output_saved);
    const double added = sizes_.weight_gradient_added;
    o.transient = {
        difference(sum(sum(sizes_.activated, inputs), fixed(sizes_.expert_down_weight)), sizes_.row_block),
        difference(sum(sizes_.activated, fixed(added * sizes_.expert_down_weight)), sizes_.row_block),
        difference(sum(sum(sizes_.gate_up, unsaved), sizes_.gate_backward), sizes_.row_block),
        difference(fixed(sizes_.expert_gate_up_weight), sizes_.experts_output_saved),
        difference(fixed(added * sizes_.expert_gate_up_weight), sum(sizes_.experts_output_saved, sizes_.gate_up))};
    o.frees = {{"experts.saved"},
               {local ? "routed.rows" : "expert.input"},
               {local ? "collected.rows.gradient" : "expert.output.gradient"}};
    if (recompute.products) o.frees.push_back({"experts.kept"});
    if (recompute.moe_act) o.frees.push_back({"experts.activation"});
    return o;
  }
  const Amount saved = sizes_.experts_saved;
  const bool kept = !first || !recompute.recomputes_experts(), input_kept = !first || !recompute.exchanges_again();
  const Amount elsewhere = recompute.products  ? sizes_.experts_kept
                           : recompute.moe_act ? sizes_.experts_activation
                                               : Amount{};
  if (kept) o.allocates.push_back({"experts.saved", difference(saved, elsewhere)});
  if (recompute.products && first) o.allocates.push_back({"experts.kept", sizes_.experts_kept});
  if (recompute.products && !first) leave_products(o);
  const bool gates = sizes_.gate_forward.fixed > 0 || sizes_.gate_forward.per_row > 0;
  if (gates && kept)
    o.transient.push_back(output ? difference(sizes_.gate_forward, sizes_.row_block) : sizes_.gate_forward);
  if (!output) return o;
  o.waits.push_back({remote() ? "dispatch" + suffix(direction) : chosen(direction, recompute)});
  if (local) {
    o.allocates.push_back({"collected.rows", sizes_.row_block});
    if (!input_kept) o.frees = {{"routed.rows"}};
  } else {  // sorts rows by expert, and sorts outputs back for sending
    if (input_kept) o.allocates.push_back({"expert.input", sizes_.row_block});
    o.allocates.push_back({"expert.output", sizes_.row_block});
    o.frees = {{"received.rows"}};
  }
  if (!kept) {  // SwiGLU, then the down product; tensors are freed as soon as they have been read
    const Amount there = local && input_kept ? sizes_.row_block : sum(sizes_.row_block, sizes_.row_block);
    o.transient = {difference(sum(saved, sizes_.gate_forward), there),
                   difference(sum(sizes_.activated, sizes_.row_block), there)};
    if (!input_kept) o.transient.push_back(difference(sizes_.gate_up, sizes_.row_block));
  }
  return o;
}

Op BlockOps::combine(Direction direction, const LayerRecompute& recompute) const {
  const Amount routed_rows = fixed(sizes_.permuted), tokens = fixed(sizes_.own_tokens);
  const std::int64_t d = model_.d_model, latent = model_.moe_latent;
  Op o = op("combine" + suffix(direction), Action::combine, direction);
  o.work = {item(Kernel::permute, direction, routed_rows, {model_.expert_width()})};
  if (latent > 0) o.work.push_back(item(Kernel::gemm, direction, tokens, {d, latent}));
  if (model_.norm_placement == NormPlacement::both) o.work.push_back(item(norm_kernel(), direction, tokens, {d}));
  o.work.push_back(item(Kernel::add, direction, tokens, {d}));
  if (direction == Direction::backward) {
    if (recompute.exchanges_again() && layout_.expert > 1) o.waits = {{"collect.rec"}};
    o.allocates = {{"collected.rows.gradient", fixed(sizes_.routed)}};
    o.frees = {{"collected.rows"}};
  } else {
    o.waits = {{remote() ? "collect" + suffix(direction) : rows_ready(direction)}};
    if (context_parallel() && balances()) o.waits.push_back({"balance.fwd"});
    o.allocates = {{"block.output", fixed(sizes_.x)}};
    o.frees = {{has_ffn() ? "shared.expert.output" : "residual"}};
    if (recompute.exchanges_again()) o.frees.push_back({"collected.rows"});
  }
  return o;
}

Op BlockOps::embed_forward() const {
  Op o = op("embed.fwd", Action::embed, Direction::forward, Group::embedding);
  o.work = {item(Kernel::embedding, Direction::forward, fixed(sizes_.tokens), {model_.d_model})};
  o.waits = {{model_.tied ? "head.unshard.fwd" : "embedding.unshard.fwd"}, {"data"}};
  o.allocates = {{"block.output", fixed(sizes_.x)}};
  if (!model_.tied && model_.mtp_layers == 0) o.frees = {{"embedding.weights"}};
  return o;
}

Op BlockOps::embed_backward(const std::string& gradient) const {
  Op o = op("embed.bwd", Action::embed, Direction::backward, Group::embedding);
  o.work = {item(Kernel::embedding, Direction::backward, fixed(sizes_.tokens), {model_.d_model})};
  o.waits = {{gradient.empty() ? layer_end() : gradient, 0, 0}};
  if (layout_.reduce_every_microbatch && !model_.tied && model_.mtp_layers == 0)
    o.allocates = {{"embedding.gradient", fixed(padded(Group::embedding) * 4)}};
  o.frees = {{"block.input.gradient", 0, 0}};
  return o;
}

Op BlockOps::head() const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.tokens);
  Op o = op("head", Action::head_loss, Direction::forward, Group::head);
  for (Direction direction : {Direction::forward, Direction::backward})
    for (std::int64_t loss = 0; loss <= m.mtp_layers; ++loss) {
      if (!tensor()) o.work.push_back(item(norm_kernel(), direction, tokens, {m.d_model}));
      o.work.push_back(item(Kernel::gemm, direction, tokens, {m.vocab, m.d_model}));
      o.work.push_back(item(Kernel::cross_entropy, direction, tokens, {m.vocab}));
    }
  o.waits = {{"head.unshard.fwd"}, {"data"}};
  const bool apart =
      layout_.modules_before_head;  // gradients of their hidden states go to another stage, in one message
  o.allocates = {{"block.input.gradient", fixed((apart ? losses() : 1) * sizes_.x)}};
  const bool own_gradient = layout_.reduce_every_microbatch && !frozen();
  if (own_gradient) o.allocates.push_back({"head.gradient", fixed(padded(Group::head) * 4)});
  // Moments: product, loss and its gradient; then the gradients of weight and input. The weight's gradient is allocated
  // only in the second moment. Our trainer uses one buffer of logits for both, and has given it back in the norm's
  // backward.
  const double weight_gradient = own_gradient ? padded(Group::head) * 4 : 0;
  const bool in_turn = options_.memory.losses_in_turn;
  const double more = losses() - 1;
  // What modules read of the embedding has its gradient after the losses where these are in turn.
  const bool modules_read = m.mtp_layers > 0 && !m.tied;
  const double embedding_gradient = modules_read && layout_.reduce_every_microbatch ? padded(Group::embedding) * 4 : 0;
  // The other losses' logits, kept from forward to backward.
  const double others = in_turn ? -embedding_gradient : more * sizes_.logits;
  // With the loss in pieces, the second piece's logits are made while the first one's weight gradient is held.
  const double first_piece = sizes_.chunked_loss ? sizes_.head_weight : -weight_gradient;
  o.transient = {fixed(sizes_.logits + sizes_.x + first_piece + others),
                 fixed(sizes_.logit_gradient + sizes_.x +
                       std::max(in_turn ? 0 : sizes_.x, sizes_.weight_gradient_added * sizes_.head_weight) + others)};
  o.frees = {{"head.weights"}, {"block.output", 0, static_cast<int>(model_.blocks()) - 1}};
  // Gradients of the hidden states that the modules read. The modules' backward passes add to these gradients.
  if (in_turn && m.mtp_layers > 0 && !apart) o.allocates.push_back({"hidden.gradients", fixed(more * sizes_.x)});
  if (!modules_read) return o;
  o.frees.push_back({"embedding.weights"});  // the modules have read these weights; their gradient is allocated below
  if (layout_.reduce_every_microbatch) o.allocates.push_back({"embedding.gradient", fixed(embedding_gradient)});
  return o;
}

}  // namespace wt
