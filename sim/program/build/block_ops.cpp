#include "sim/program/build/block_ops.hpp"

#include <algorithm>

#include "sim/program/build/group_ops.hpp"

namespace wt {

std::vector<WorkItem> BlockOps::projection_work(Direction direction) const {
  const auto& m = model_;
  const AttentionSpec& a = m.attention;
  const Amount tokens = fixed(sizes_.tokens);
  const std::int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  std::vector<WorkItem> work;
  const auto add = [&](Kernel kernel, Amount rows, std::array<std::int64_t, 4> dims) {
    work.push_back(item(kernel, direction, rows, dims));
  };
  const auto norm = [&](double rows, std::int64_t width) { add(Kernel::rmsnorm, fixed(rows), {width}); };
  if (!tensor()) add(norm_kernel(), tokens, {m.d_model});
  if (a.mla.on()) {
    const std::int64_t up = m.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim);
    if (a.mla.q_lora_rank > 0) {
      add(Kernel::gemm, tokens, {a.mla.q_lora_rank, m.d_model});
      norm(sizes_.tokens, a.mla.q_lora_rank);
    }
    add(Kernel::gemm, tokens, {q, a.mla.q_lora_rank > 0 ? a.mla.q_lora_rank : m.d_model});
    add(Kernel::gemm, tokens, {a.mla.kv_lora_rank + a.mla.qk_rope_head_dim, m.d_model});
    norm(sizes_.tokens, a.mla.kv_lora_rank);
    add(Kernel::gemm, tokens, {up, a.mla.kv_lora_rank});
    add(Kernel::copy, fixed(sizes_.qkv / sizes_.word), {});  // heads put together, their rotary parts turned
  } else {
    add(Kernel::gemm, tokens, {q + 2 * kv, m.d_model});
    if (a.qk_norm == AttentionSpec::QkNorm::head) norm(sizes_.tokens * as_double(m.heads + m.kv_heads), m.head_dim);
    if (a.qk_norm == AttentionSpec::QkNorm::full) norm(sizes_.tokens, q), norm(sizes_.tokens, kv);
    if (a.clip_qkv > 0) add(Kernel::add, tokens, {q + 2 * kv});
    add(Kernel::rope, tokens, {q + kv});
  }
  if (const std::int64_t biases = m.qkv_biases(); biases > 0) add(Kernel::bias, tokens, {biases});
  return work;
}

std::vector<WorkItem> BlockOps::attention_work(Direction direction) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.tokens);
  std::vector<WorkItem> work;
  if (!context_parallel()) work = projection_work(direction);
  const auto add = [&](Kernel kernel, Amount rows, std::array<std::int64_t, 4> dims) {
    work.push_back(item(kernel, direction, rows, dims));
  };
  if (context_parallel()) add(Kernel::copy, fixed(sizes_.kv_gathered / sizes_.word), {});
  work.push_back(core_work(direction));
  add(Kernel::gemm, tokens, {m.d_model, m.heads * m.v_head_dim()});
  if (!tensor())
    for (const WorkItem& each : between_work(direction)) work.push_back(each);
  return work;
}

void BlockOps::add_module(Op& o, Direction direction, const LayerRecompute& recompute) const {
  if (!model_.mtp(layer_)) return;
  const std::int64_t d = model_.d_model;
  const Amount tokens = fixed(sizes_.own_tokens);
  // The tensor ranks share the tokens of the projection, not its weight.
  std::vector<WorkItem> work{item(Kernel::embedding, direction, tokens, {d}),
                             item(norm_kernel(), direction, tokens, {d}), item(norm_kernel(), direction, tokens, {d}),
                             item(Kernel::gemm, direction, tokens, {d, 2 * d})};
  if (direction == Direction::backward) {
    work.push_back(
        item(Kernel::add, direction, tokens, {d}));  // the hidden state's gradient, with that of its own head
    o.work.insert(o.work.end(), work.begin(), work.end());
    o.frees.push_back({"module.input"});
    o.frees.push_back({"module.saved"});
    return;
  }
  o.work.insert(o.work.begin(), work.begin(), work.end());
  const bool first = direction == Direction::forward;
  if (first) {
    o.waits.push_back({model_.tied ? "head.unshard.fwd" : "embedding.unshard.fwd"});
    o.allocates.push_back({"module.input", fixed(sizes_.x)});  // the embedding
  }
  // Both normalised inputs, and the projection's output.
  if (!first || !recompute.recomputes_attention()) o.allocates.push_back({"module.saved", fixed(3 * sizes_.x)});
}

WorkItem BlockOps::core_work(Direction direction) const {
  // Under context parallelism every rank has its share of each sequence's work: pieces from both ends.
  const Amount sequences = fixed(as_double(layout_.microbatch) / as_double(layout_.context));
  WorkItem core =
      item(Kernel::attention, direction, sequences, {options_.seq, model_.heads, model_.kv_heads, model_.head_dim});
  if (!model_.local_attention(layer_)) return core;
  if (const std::int64_t chunk = model_.attention.chunk; chunk > 0 && chunk < options_.seq) {
    core.rows.fixed *= as_double(options_.seq) / as_double(chunk);  // each chunk is a sequence of its own
    core.dims[0] = chunk;
  }
  core.window = model_.attention.window < options_.seq ? model_.attention.window : 0;
  return core;
}

std::vector<WorkItem> BlockOps::between_work(Direction direction) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.own_tokens);
  std::vector<WorkItem> work;
  const auto add = [&](Kernel kernel, Amount rows, std::array<std::int64_t, 4> dims) {
    work.push_back(item(kernel, direction, rows, dims));
  };
  if (m.attention.bias == AttentionSpec::Bias::all) add(Kernel::bias, tokens, {m.d_model});
  add(Kernel::add, tokens, {m.d_model});
  if (m.attention.parallel != AttentionSpec::Parallel::one_norm) add(norm_kernel(), tokens, {m.d_model});
  if (!moe()) return work;
  work.push_back(make_item(Kernel::gemm, direction == Direction::backward ? Pass::backward : Pass::forward,
                           Precision::fp32, tokens, {m.experts, m.d_model}));
  if (m.ffn_bias) add(Kernel::bias, tokens, {m.experts});
  add(Kernel::router, tokens, {m.experts, m.top_k});
  add(Kernel::permute, fixed(sizes_.own_tokens * as_double(m.top_k)), {m.d_model});
  return work;
}

void BlockOps::leave_products(Op& o) {
  std::erase_if(o.work, [](const WorkItem& item) { return item.kernel == Kernel::attention; });
  for (WorkItem& item : o.work)
    if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm)
      item.dims[0] = std::max<std::int64_t>(1, item.dims[0] / 2);
}

Op BlockOps::attention(Direction direction, const LayerRecompute& recompute) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.tokens);
  const Amount width = fixed(sizes_.own_tokens * as_double(m.d_model));
  const bool compressed = recompute.recomputes_attention() && layout_.recompute.compression != Compression::none;
  Op o = op("attn" + suffix(direction), Action::attention, direction, Group::dense);
  o.work = attention_work(direction);
  if (direction == Direction::backward) {
    if (recompute.norm && !tensor())
      for (int norm = 0; norm < 2; ++norm)
        o.work.push_back(item(norm_kernel(), Direction::forward, tokens, {m.d_model}));
    o.waits = {{remote() ? "dispatch.bwd"
                : moe()  ? "experts.bwd"
                         : "ffn.bwd"},
               {unshard_name(Group::dense, direction)}};
    o.allocates = {{"block.input.gradient", fixed(sizes_.x)}};
    o.transient = {fixed(2 * sizes_.x + std::max({sizes_.qkv, sizes_.projected, sizes_.scores}) +
                         sizes_.weight_gradient_added * sizes_.largest_dense_weight)};
    o.frees = {{"attention.saved"},
               {"routing"},
               {"row.orders"},
               {remote()        ? "routed.rows.gradient"
                : cut_experts() ? "own.expert.input.gradient"
                                : "expert.input.gradient"},
               {"ffn.input.gradient"},
               {"ffn.input"},
               {"block.input.gradient", 1}};
    if (recompute.core) o.frees.push_back({"attention.core"});
    if (recompute.products) o.frees.push_back({"attention.kept"});
    if (!tensor() && !context_parallel()) add_module(o, direction, recompute);
    if (context_parallel()) {
      o.allocates = {{"q.gradient", fixed(sizes_.q)},
                     {"gathered.kv.gradient", fixed(sizes_.kv_held)},
                     {"residual.gradient", fixed(sizes_.x)}};
      o.transient = {fixed(sizes_.x + 2 * sizes_.kv_held + sizes_.weight_gradient_added * sizes_.largest_dense_weight)};
      o.frees.push_back({"q"});
      return o;
    }
    // Layer 0's input is the embedding's output: a buffer without a layer, found where "block.output" of layer -1 is
    // not.
    o.frees.push_back(compressed ? Ref{"block.input"} : Ref{"block.output", -1});
    return o;
  }
  o.waits = {{unshard_name(Group::dense, direction)}};
  if (context_parallel() && !layout_.context_ring) o.waits.push_back({"kv.gather" + suffix(direction)});
  const bool first = direction == Direction::forward, kept = !first || !recompute.recomputes_attention();
  const bool rows_kept =
      first || recompute.block;  // else the experts' input is still there, and gone when attention comes
  double held = 0;               // by this op, when it is done
  const auto allocate = [&](const char* name, double bytes) {
    o.allocates.push_back({name, fixed(bytes)});
    held += bytes;
  };
  const bool parallel = model_.attention.parallel != AttentionSpec::Parallel::none,
             alone = recompute.attention && !first;
  const double elsewhere =
      context_parallel() ? sizes_.projection + sizes_.qkv + (recompute.norm ? 0 : sizes_.first_norm) - sizes_.kv_held
                         : 0;
  if (kept)
    allocate("attention.saved", sizes_.attention - elsewhere + (recompute.norm ? 0 : sizes_.normed) -
                                    (recompute.core ? sizes_.core : 0) +
                                    (alone && sizes_.ffn_input_shared && has_ffn() ? sizes_.x : 0) -
                                    (recompute.products ? sizes_.attention_kept : 0));
  if (recompute.products && first) allocate("attention.kept", sizes_.attention_kept);
  if (recompute.products && !first) leave_products(o);
  if (first && (!kept || parallel)) allocate("residual", sizes_.x);
  if (has_ffn() && !alone) allocate("ffn.input", sizes_.x);
  if (moe() && rows_kept) allocate("routed.rows", sizes_.routed);
  if (moe() && first) allocate("routing", sizes_.routing);
  if (context_parallel()) {
    o.frees.push_back({"kv.gathered"});
    if (!kept) o.frees.push_back({"q"});
  }
  if (compressed && (first || !context_parallel())) {
    o.work.push_back(item(Kernel::copy, Direction::forward, width));
    allocate(first ? "compressed.input" : "block.input", first ? sizes_.compressed : sizes_.x);
    o.frees.push_back(first ? Ref{"block.output", -1} : Ref{"compressed.input"});
  }
  if (!tensor() && !context_parallel()) add_module(o, direction, recompute);
  // Moments: the split into q, k and v; the attention kernel; the router's product; the rows, while the normalised ones
  // that they are taken from are still there (which fp32 products save themselves).
  const bool norms_kept = kept && !recompute.norm;
  const double normed = norms_kept && options_.precision == Precision::fp32 ? 0 : sizes_.x;
  o.transient = {
      fixed(sizes_.projected + sizes_.qkv + (norms_kept ? sizes_.x : 0) - held),
      fixed(sizes_.qkv + sizes_.core_made - held),
      fixed(normed + (norms_kept ? 0 : sizes_.normed_fp32) + sizes_.probabilities - (rows_kept ? sizes_.routed : 0)),
      fixed(normed + (rows_kept ? 0 : sizes_.routed))};
  return o;
}

Op BlockOps::project(Direction direction, const LayerRecompute& recompute) const {
  const bool compressed = recompute.recomputes_attention() && layout_.recompute.compression != Compression::none;
  Op o = op("project" + suffix(direction), Action::project, direction, Group::dense);
  o.work = projection_work(direction);
  o.waits = {{unshard_name(Group::dense, direction)}};
  if (direction == Direction::backward) {
    if (recompute.norm && !tensor())
      o.work.push_back(item(norm_kernel(), Direction::forward, fixed(sizes_.tokens), {model_.d_model}));
    o.waits.push_back({"kv.reduce.bwd"});
    o.allocates = {{"block.input.gradient", fixed(sizes_.x)}};
    o.transient = {fixed(sizes_.x + std::max(sizes_.qkv, sizes_.projected) + sizes_.largest_dense_weight)};
    o.frees = {{"project.saved"},
               {"q.gradient"},
               {"kv.gradient"},
               {"residual.gradient"},
               compressed ? Ref{"block.input"} : Ref{"block.output", -1}};
    if (!tensor()) add_module(o, direction, recompute);
    return o;
  }
  const bool first = direction == Direction::forward, kept = !first || !recompute.recomputes_attention();
  const double saved = sizes_.projection + (recompute.norm ? 0 : sizes_.first_norm);
  if (compressed && !first) {
    o.work.push_back(item(Kernel::copy, Direction::forward, fixed(sizes_.own_tokens * as_double(model_.d_model))));
    o.allocates.push_back({"block.input", fixed(sizes_.x)});
    o.frees.push_back({"compressed.input"});
  }
  if (kept) o.allocates.push_back({"project.saved", fixed(saved)});
  o.allocates.push_back({"q", fixed(sizes_.q)});
  o.allocates.push_back({"kv", fixed(sizes_.kv)});
  // Before the split into q, k and v the product is there; after it keys and values twice, to lie side by side.
  o.transient = {fixed(sizes_.projected + (kept ? 0 : saved)), fixed(sizes_.kv)};
  if (!tensor()) add_module(o, direction, recompute);
  return o;
}

void BlockOps::add_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const {
  const bool backward = direction == Direction::backward;
  const bool summed_later = model_.attention.parallel != AttentionSpec::Parallel::none && !backward;  // with the FFN
  if (tensor()) {
    out.push_back(backward ? between_products(direction, recompute) : before_products(direction, recompute));
    add_gather(out, "attn", direction);
  }
  if (context_parallel() && !backward) {
    out.push_back(project(direction, recompute));
    out.push_back(gather_kv(direction));
  }
  if (recompute.core && backward) out.push_back(recomputed_core());
  Op core = attention(direction, recompute);
  if (tensor()) add_whole(core, "attn");
  if (layout_.context_ring && backward) add_ring_backward(out, core.waits);
  out.push_back(core);
  if (layout_.context_ring) out.push_back(ring_end(direction));
  if (context_parallel() && backward) {
    if (!layout_.context_ring) out.push_back(reduce_kv());
    out.push_back(project(direction, recompute));
  }
  if (tensor()) {
    if (!summed_later) add_sum(out, "attn", direction);
    out.push_back(backward ? before_products(direction, recompute) : between_products(direction, recompute));
  }
  if (context_parallel() && direction == Direction::forward && balances()) {
    Op o = op("balance.fwd", Action::reduce_balance, direction);
    collective(o, OpKind::all_reduce, Axis::context, fixed(4 * as_double(layout_.microbatch * model_.experts)));
    o.waits = {{chosen(direction)}};
    out.push_back(o);
  }
}

Op BlockOps::ffn(Direction direction, const LayerRecompute& recompute) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.tokens);
  const std::int64_t width = m.ffn_width(layer_);
  Op o = op("ffn" + suffix(direction), Action::ffn, direction, Group::dense);
  o.work = {item(Kernel::gemm, direction, tokens, {m.ffn_rows(width), m.d_model}),
            item(m.activation == Activation::gelu ? Kernel::gelu : Kernel::swiglu, direction, tokens, {width}),
            item(Kernel::gemm, direction, tokens, {m.d_model, width})};
  if (m.ffn_bias)
    for (const std::int64_t biases : {m.ffn_rows(width), m.d_model})
      o.work.push_back(item(Kernel::bias, direction, tokens, {biases}));
  const double saved = sizes_.ffn_saved;
  if (direction == Direction::backward) {
    o.waits = {{unshard_name(Group::dense, direction)}};
    o.allocates = {{"ffn.input.gradient", fixed(sizes_.x)}};
    // Through the down projection, the activation, the first product, as in the experts.
    o.transient = {fixed(sizes_.ffn_activated + sizes_.ffn_down_weight - sizes_.x),
                   fixed(sizes_.ffn_gate_up - sizes_.x), fixed(sizes_.ffn_gate_up_weight - sizes_.ffn_activated)};
    o.frees = {{"ffn.saved"}};
    if (recompute.products) o.frees.push_back({"ffn.kept"});
    if (!sizes_.ffn_input_shared || recompute.attention) o.frees.push_back({"ffn.input"});
    return o;
  }
  const bool first = direction == Direction::forward, kept = !first || !recompute.block;
  o.waits = {{chosen(direction)}};
  if (kept) o.allocates.push_back({"ffn.saved", fixed(saved - (recompute.products ? sizes_.ffn_saved_kept : 0))});
  if (recompute.products && first) o.allocates.push_back({"ffn.kept", fixed(sizes_.ffn_kept)});
  if (!first) {
    if (recompute.products) leave_products(o);
    o.transient = {fixed(sizes_.x)};  // the result, which nobody needs
    return o;
  }
  if (!tensor()) o.work.push_back(item(Kernel::add, direction, tokens, {m.d_model}));
  o.allocates.push_back({moe() ? "shared.expert.output" : "block.output", fixed(sizes_.x)});
  o.frees = {{"residual"}};
  if (!kept) {
    o.frees.push_back({"ffn.input"});
    o.transient = {fixed(saved - sizes_.x)};
  }
  return o;
}

Op BlockOps::experts(Direction direction, const LayerRecompute& recompute) const {
  const auto& m = model_;
  const std::int64_t local_experts = layout_.slots_per_rank(m);
  const Amount rows = sizes_.rows;
  const bool local = layout_.expert == 1 && !cut_experts(), backward = direction == Direction::backward,
             first = direction == Direction::forward;
  const bool output = first || recompute.block;  // alone, backward needs no output again: combine keeps its own
  Op o = op("experts" + suffix(direction), Action::experts, direction, Group::expert);
  o.work = {item(Kernel::grouped_gemm, direction, rows, {2 * m.ffn, m.d_model, local_experts}),
            item(Kernel::swiglu, direction, rows, {m.ffn})};
  if (backward || output)
    o.work.push_back(item(Kernel::grouped_gemm, direction, rows, {m.d_model, m.ffn, local_experts}));
  if (m.ffn_bias)
    for (const std::int64_t biases : {2 * m.ffn, m.d_model})
      o.work.push_back(item(Kernel::bias, direction, rows, {biases}));
  if (!local && (backward || output))
    for (int sorts = 0; sorts < 2; ++sorts) o.work.push_back(item(Kernel::permute, direction, rows, {m.d_model}));
  o.waits = {{unshard_name(Group::expert, direction)}};
  if (backward) {
    o.waits.push_back({remote() ? "collect.bwd" : "combine.bwd"});
    o.allocates = {{"expert.input.gradient", sizes_.row_block}};
    // Through the down projection, the addition of its weight's gradient, through SwiGLU, through gate and up, and
    // again the addition; what each has used is given back after it. The CPU's bf16 product copies both of its inputs
    // first (measured; transport_scratch marks that machine).
    const bool copies = options_.transport_scratch && options_.precision == Precision::bf16;
    const Amount inputs = copies ? sum(sizes_.activated, sizes_.row_block) : Amount{};
    const double added = sizes_.weight_gradient_added;
    o.transient = {difference(sum(sum(sizes_.activated, inputs), fixed(sizes_.expert_down_weight)), sizes_.row_block),
                   difference(sum(sizes_.activated, fixed(added * sizes_.expert_down_weight)), sizes_.row_block),
                   difference(sizes_.gate_up, sizes_.row_block),
                   difference(fixed(sizes_.expert_gate_up_weight), sizes_.activated),
                   difference(fixed(added * sizes_.expert_gate_up_weight), sum(sizes_.activated, sizes_.gate_up))};
    o.frees = {{"experts.saved"},
               {local ? "routed.rows" : "expert.input"},
               {local ? "collected.rows.gradient" : "expert.output.gradient"}};
    if (recompute.products) o.frees.push_back({"experts.kept"});
    return o;
  }
  const Amount saved = sizes_.experts_saved;
  const bool kept = !first || !recompute.recomputes_experts(), input_kept = !first || !recompute.block;
  if (kept)
    o.allocates.push_back({"experts.saved", recompute.products ? difference(saved, sizes_.experts_kept) : saved});
  if (recompute.products && first) o.allocates.push_back({"experts.kept", sizes_.experts_kept});
  if (recompute.products && !first) leave_products(o);
  if (!output) return o;
  o.waits.push_back({remote() ? "dispatch" + suffix(direction) : chosen(direction)});
  if (local) {
    o.allocates.push_back({"collected.rows", sizes_.row_block});
    if (!input_kept) o.frees = {{"routed.rows"}};
  } else {  // rows sorted by expert, and outputs sorted back for sending
    if (input_kept) o.allocates.push_back({"expert.input", sizes_.row_block});
    o.allocates.push_back({"expert.output", sizes_.row_block});
    o.frees = {{"received.rows"}};
  }
  if (!kept) {  // SwiGLU, then the down product; what is not kept is given back as soon as it was read
    const Amount there = local && input_kept ? sizes_.row_block : sum(sizes_.row_block, sizes_.row_block);
    o.transient = {difference(saved, there), difference(sum(sizes_.activated, sizes_.row_block), there)};
    if (!input_kept) o.transient.push_back(difference(sizes_.gate_up, sizes_.row_block));
  }
  return o;
}

Op BlockOps::combine(Direction direction, const LayerRecompute& recompute) const {
  const Amount routed_rows = fixed(sizes_.own_tokens * as_double(model_.top_k));
  Op o = op("combine" + suffix(direction), Action::combine, direction);
  o.work = {item(Kernel::permute, direction, routed_rows, {model_.d_model}),
            item(Kernel::add, direction, fixed(sizes_.own_tokens), {model_.d_model})};
  if (direction == Direction::backward) {
    if (recompute.block && layout_.expert > 1) o.waits = {{"collect.rec"}};
    o.allocates = {{"collected.rows.gradient", fixed(sizes_.routed)}};
    o.frees = {{"collected.rows"}};
  } else {
    o.waits = {{remote() ? "collect" + suffix(direction) : rows_ready(direction)}};
    if (context_parallel() && balances()) o.waits.push_back({"balance.fwd"});
    o.allocates = {{"block.output", fixed(sizes_.x)}};
    o.frees = {{has_ffn() ? "shared.expert.output" : "residual"}};
    if (recompute.block) o.frees.push_back({"collected.rows"});
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

Op BlockOps::embed_backward() const {
  Op o = op("embed.bwd", Action::embed, Direction::backward, Group::embedding);
  o.work = {item(Kernel::embedding, Direction::backward, fixed(sizes_.tokens), {model_.d_model})};
  o.waits = {{layer_end(), 0, 0}};
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
  o.allocates = {{"block.input.gradient", fixed(sizes_.x)}};
  if (layout_.reduce_every_microbatch) o.allocates.push_back({"head.gradient", fixed(padded(Group::head) * 4)});
  // Product, loss and its gradient; then the gradients of weight and input, the weight's only now. Our trainer has one
  // buffer of logits for all of it.
  const double weight_gradient = layout_.reduce_every_microbatch ? padded(Group::head) * 4 : 0;
  const double others = (losses() - 1) * sizes_.logits;  // of the other losses, kept from forward to backward
  o.transient = {fixed(sizes_.logits + sizes_.x - weight_gradient + others),
                 fixed(sizes_.logit_gradient + sizes_.x +
                       std::max(sizes_.x, sizes_.weight_gradient_added * sizes_.head_weight) + others)};
  o.frees = {{"head.weights"}, {"block.output", 0, static_cast<int>(model_.blocks()) - 1}};
  if (m.mtp_layers == 0 || m.tied) return o;
  o.frees.push_back({"embedding.weights"});  // the modules have read them, and give the embedding a gradient
  if (layout_.reduce_every_microbatch)
    o.allocates.push_back({"embedding.gradient", fixed(padded(Group::embedding) * 4)});
  return o;
}

}  // namespace wt
