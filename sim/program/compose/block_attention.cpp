// Attention of a block with its surroundings: projections, output product, residual, norms, router, and the work of a
// multi-token prediction module before its block.
#include "sim/program/compose/block_ops.hpp"

#include <algorithm>

#include "sim/program/compose/group_ops.hpp"

namespace wt {

std::vector<WorkItem> BlockOps::up_projection_work(Direction direction) const {
  const AttentionSpec& a = model_.attention;
  const Amount tokens = fixed(sizes_.tokens);
  return {item(Kernel::gemm, direction, tokens,
               {model_.heads * model_.head_dim, a.mla.q_lora_rank > 0 ? a.mla.q_lora_rank : model_.d_model}),
          item(Kernel::gemm, direction, tokens,
               {model_.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim), a.mla.kv_lora_rank}),
          // Joins the heads and rotates their rotary parts.
          item(Kernel::copy, direction, fixed(sizes_.qkv / sizes_.word))};
}

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
  if (linear()) {
    add(Kernel::gemm, tokens, {m.linear.input_rows(), m.d_model});
    if (m.linear.second_projections() > 0)  // gate and decay
      add(Kernel::gemm, tokens, {m.linear.key_width() + m.linear.value_width(), m.linear.key_head_dim});
    return work;
  }
  if (a.mla.on()) {
    if (a.mla.q_lora_rank > 0) {
      add(Kernel::gemm, tokens, {a.mla.q_lora_rank, m.d_model});
      norm(sizes_.tokens, a.mla.q_lora_rank);
    }
    add(Kernel::gemm, tokens, {a.mla.kv_lora_rank + a.mla.qk_rope_head_dim, m.d_model});
    norm(sizes_.tokens, a.mla.kv_lora_rank);
    for (const WorkItem& each : up_projection_work(direction)) work.push_back(each);
  } else {
    const std::int64_t queries = (a.output_gate ? 2 : 1) * q, rows = (a.shared_kv ? 1 : 2) * kv;
    if (const std::int64_t low = a.mla.q_lora_rank; low > 0) {
      add(Kernel::gemm, tokens, {low + rows, m.d_model});
      norm(sizes_.tokens, low);
      add(Kernel::gemm, tokens, {queries, low});
    } else {
      add(Kernel::gemm, tokens, {queries + rows, m.d_model});
    }
    add_adapters(work, false, direction);
    if (a.qk_norm == AttentionSpec::QkNorm::head) norm(sizes_.tokens * as_double(m.heads + m.kv_heads), m.head_dim);
    if (a.qk_norm == AttentionSpec::QkNorm::full) norm(sizes_.tokens, q), norm(sizes_.tokens, kv);
    if (a.clip_qkv > 0) add(Kernel::add, tokens, {q + 2 * kv});
    add(Kernel::rope, tokens, {q + kv});
  }
  if (const std::int64_t biases = m.qkv_biases(); biases > 0) add_bias(work, direction, tokens, biases);
  if (a.indexer.on()) {
    const IndexerSpec& index = a.indexer;
    const std::int64_t from = a.mla.q_lora_rank > 0 ? a.mla.q_lora_rank : m.d_model;
    add(Kernel::gemm, tokens, {index.heads * index.head_dim, from});
    add(Kernel::gemm, tokens, {index.head_dim + index.heads, m.d_model});
  }
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
  for (const WorkItem& each : core_work(direction)) work.push_back(each);
  if (m.attention.output_gate && !linear()) add(Kernel::swiglu, tokens, {m.heads * m.v_head_dim()});
  const std::int64_t values = linear() ? m.linear.value_width() : m.heads * m.v_head_dim();
  if (const std::int64_t rank = m.attention.out_rank; rank > 0 && !linear()) {
    add(Kernel::gemm, fixed(sizes_.tokens * as_double(m.attention.out_groups)),
        {rank, values / m.attention.out_groups});
    add(Kernel::gemm, tokens, {m.d_model, m.attention.out_groups * rank});
  } else {
    add(Kernel::gemm, tokens, {m.d_model, values});
  }
  add_adapters(work, true, direction);
  if (!tensor())
    for (const WorkItem& each : between_work(direction)) work.push_back(each);
  return work;
}

void BlockOps::add_module(Op& o, Direction direction, const LayerRecompute& recompute) const {
  if (!model_.mtp(layer_)) return;
  const std::int64_t d = model_.d_model;
  const Amount tokens = fixed(sizes_.own_tokens);
  // The tensor ranks divide the tokens of this projection, not its weight.
  std::vector<WorkItem> work{item(Kernel::embedding, direction, tokens, {d}),
                             item(norm_kernel(), direction, tokens, {d}), item(norm_kernel(), direction, tokens, {d}),
                             item(Kernel::gemm, direction, tokens, {d, 2 * d})};
  if (direction == Direction::backward) {
    work.push_back(
        item(Kernel::add, direction, tokens, {d}));  // sum of the hidden state's gradient and that from its own head
    o.work.insert(o.work.end(), work.begin(), work.end());
    o.frees.push_back({"module.input"});
    o.frees.push_back({"module.saved"});
    if (layer_ == model_.layers) o.frees.push_back({"hidden.gradients"});
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

/// The convolution by its bytes (one value read, one written); the products of LinearMixerSpec::products, each a kernel
/// that reads and writes its operands; the output gate, and the norm after it.
std::vector<WorkItem> BlockOps::linear_core_work(Direction direction) const {
  const LinearMixerSpec& l = model_.linear;
  std::vector<WorkItem> work;
  if (l.conv_channels() > 0)
    work.push_back(item(Kernel::copy, direction, fixed(sizes_.tokens * as_double(l.conv_channels()))));
  // These products have no weights: in backward, the gradients of both operands are chunked products as well.
  for (const auto& [heads, n, k] : l.products()) {
    const Amount rows = fixed(sizes_.tokens * as_double(heads));
    work.push_back(item(Kernel::gemm, Direction::forward, rows, {n, k}));
    if (direction == Direction::backward) work.push_back(item(Kernel::gemm, Direction::forward, rows, {k, n}));
  }
  work.push_back(item(Kernel::swiglu, direction, fixed(sizes_.tokens), {l.value_width()}));
  work.push_back(item(Kernel::rmsnorm, direction, fixed(sizes_.tokens * as_double(l.value_heads)), {l.value_head_dim}));
  return work;
}

std::vector<WorkItem> BlockOps::core_work(Direction direction) const {
  if (linear()) return linear_core_work(direction);
  // Under context parallelism every rank has its share of each sequence's work: pieces from both ends.
  const Amount sequences = fixed(as_double(layout_.microbatch) / as_double(layout_.context));
  WorkItem core =
      item(Kernel::attention, direction, sequences, {options_.seq, model_.heads, model_.kv_heads, model_.head_dim});
  if (const IndexerSpec& index = model_.attention.indexer; index.on()) {
    // Scores without values: half of an attention kernel's products.
    const WorkItem scores =
        item(Kernel::attention, direction, sequences, {options_.seq, index.heads, 1, index.head_dim / 2});
    core.window = index.top_keys < options_.seq ? index.top_keys : 0;
    return {scores, core};
  }
  if (!model_.local_attention(layer_)) return {core};
  if (const std::int64_t chunk = model_.attention.chunk; chunk > 0 && chunk < options_.seq) {
    core.rows.fixed *= as_double(options_.seq) / as_double(chunk);  // chunks act as separate sequences
    core.dims[0] = chunk;
  }
  core.window = model_.attention.window < options_.seq ? model_.attention.window : 0;
  return {core};
}

std::vector<WorkItem> BlockOps::between_work(Direction direction) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.own_tokens);
  std::vector<WorkItem> work;
  const auto add = [&](Kernel kernel, Amount rows, std::array<std::int64_t, 4> dims) {
    work.push_back(item(kernel, direction, rows, dims));
  };
  if (m.attention.bias == AttentionSpec::Bias::all && !linear()) add_bias(work, direction, tokens, m.d_model);
  if (m.norm_placement == NormPlacement::both) add(norm_kernel(), tokens, {m.d_model});  // of attention's output
  if (mixer_alone()) return work;  // the residual is added in place of the FFN
  add(Kernel::add, tokens, {m.d_model});
  if (m.attention.parallel != AttentionSpec::Parallel::one_norm) add(norm_kernel(), tokens, {m.d_model});
  if (moe())
    for (const WorkItem& each : router_work(direction)) work.push_back(each);
  return work;
}

Op BlockOps::attention(Direction direction, const LayerRecompute& recompute) const {
  const auto& m = model_;
  const Amount tokens = fixed(sizes_.tokens);
  const Amount width = fixed(sizes_.own_tokens * as_double(m.d_model));
  const bool compressed = compressed_input(recompute);
  Op o = op("attn" + suffix(direction), Action::attention, direction, Group::dense);
  o.work = attention_work(direction);
  if (direction == Direction::backward) {
    if (recompute.norm && !tensor())
      for (int norm = 0; norm < (mixer_alone() ? 1 : 2); ++norm)
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
    if (recompute.mla_up_proj) o.frees.push_back({"attention.up"});
    if (recompute.moe) o.frees.insert(o.frees.end(), {{"router.saved"}, {"moe.input"}});
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
    // Layer 0's input is the embedding's output: a buffer without a layer, which a Ref finds because "block.output" of
    // layer -1 does not exist.
    o.frees.push_back(compressed ? Ref{"block.input"} : Ref{"block.output", -1});
    drop_first_gradient(o);
    return o;
  }
  o.waits = {{unshard_name(Group::dense, direction)}};
  if (context_parallel() && !layout_.context_ring) o.waits.push_back({"kv.gather" + suffix(direction)});
  const bool first = direction == Direction::forward, kept = !first || !recompute.recomputes_attention();
  const bool rows_kept =
      first || recompute.block;  // if attention alone is recomputed, the experts have already used and freed their rows
  double held = 0;               // bytes of this op's allocations
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
    allocate("attention.saved",
             sizes_.attention - elsewhere + (recompute.norm ? 0 : sizes_.normed) - (recompute.core ? sizes_.core : 0) -
                 (recompute.mla_up_proj ? sizes_.up_projected : 0) - (recompute.moe ? sizes_.probabilities : 0) -
                 (recompute.moe && !recompute.norm ? sizes_.router_input_copied : 0) +
                 (alone && sizes_.ffn_input_shared && has_ffn() ? sizes_.x : 0) -
                 (recompute.products ? sizes_.attention_kept : 0));
  if (recompute.products && first) allocate("attention.kept", sizes_.attention_kept);
  if (recompute.products && !first) leave_products(o);
  if (first && (!kept || parallel)) allocate("residual", sizes_.x);
  if (has_ffn() && !alone) allocate("ffn.input", mixer_alone() ? 0 : sizes_.x);
  if (first && recompute.moe && moe_input_apart(recompute)) allocate("moe.input", sizes_.x);
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
  // Moments: splitting into q, k and v; the attention kernel; the router's product; creating the routed rows while the
  // normalised ones still exist (fp32 products save those themselves).
  const bool norms_kept = kept && !recompute.norm;
  const bool router_kept = norms_kept && !frozen(), rows_normed = norms_kept && sizes_.projection_input_kept;
  const double normed = router_kept && options_.precision == Precision::fp32 ? 0 : sizes_.x;
  o.transient = {fixed(sizes_.projected + sizes_.qkv + (rows_normed ? sizes_.x : 0) - held),
                 fixed(sizes_.qkv + sizes_.core_made - held),
                 fixed(normed + (router_kept && !recompute.moe ? 0 : sizes_.normed_fp32) +
                       (recompute.moe ? 2 : 1) * sizes_.probabilities - (rows_kept ? sizes_.routed : 0)),
                 fixed(normed + (rows_kept ? 0 : sizes_.routed))};
  return o;
}

Op BlockOps::project(Direction direction, const LayerRecompute& recompute) const {
  const bool compressed = compressed_input(recompute);
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
    drop_first_gradient(o);
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
  // Before the split into q, k and v the product's output exists. After the split, keys and values exist twice.
  o.transient = {fixed(sizes_.projected + (kept ? 0 : saved)), fixed(sizes_.kv)};
  if (!tensor()) add_module(o, direction, recompute);
  return o;
}

void BlockOps::add_adapters(std::vector<WorkItem>& work, bool output, Direction direction) const {
  if (!frozen()) return;
  const Pass pass = direction == Direction::backward ? Pass::backward : Pass::forward;
  for (const AdaptedProduct& each : options_.lora->products) {
    if (each.layer != layer_ || each.output != output) continue;
    for (const auto& [n, k] : {std::pair{options_.lora->rank, each.in}, {each.out, options_.lora->rank}})
      work.push_back(make_item(Kernel::gemm, pass, options_.precision, fixed(sizes_.tokens), {n, k}));
  }
}

void BlockOps::drop_first_gradient(Op& o) const {
  if (!frozen() || layer_ > 0 || layout_.layers_of_chunks(model_.layers).front() == 0) return;
  std::erase_if(o.allocates, [](const Buffer& buffer) { return buffer.name == "block.input.gradient"; });
  for (Amount& moment : o.transient) moment.fixed += sizes_.x;  // the op still makes it, but only transiently
}

void BlockOps::add_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const {
  const bool backward = direction == Direction::backward;
  const bool summed_later = model_.attention.parallel != AttentionSpec::Parallel::none && !backward;  // after the FFN
  if (tensor()) {
    out.push_back(backward ? between_products(direction, recompute) : before_products(direction, recompute));
    add_gather(out, "attn", direction);
  }
  if (context_parallel() && !backward) {
    out.push_back(project(direction, recompute));
    out.push_back(gather_kv(direction));
  }
  if (recompute.mla_up_proj && backward) out.push_back(up_projections_again());
  if (recompute.core && backward) out.push_back(core_again());
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
    o.waits = {{chosen(direction, recompute)}};
    out.push_back(o);
  }
}

}  // namespace wt
