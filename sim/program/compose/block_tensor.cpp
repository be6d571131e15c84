// Tensor and sequence parallelism of a block: the work between its products, and the collectives around them. With
// whole activations, attention and FFN each have one all-reduce in forward and one in backward (Shoeybi et al. 2019,
// figure 3). With activations divided by tokens, each has a gather before it and a reduce-scatter after it (Korthikanti
// et al. 2022, figure 5). Results are needed at once, so these are ops of the compute lane.
#include "sim/program/compose/block_ops.hpp"
#include "sim/program/compose/group_ops.hpp"

namespace wt {

Op BlockOps::share(const std::string& name, Direction direction, OpKind kind, Amount bytes) const {
  Op o = op(name + suffix(direction), Action::share_tensor, direction);
  collective(o, kind, Axis::tensor, bytes);
  return o;
}

void BlockOps::add_gather(Nodes& out, const std::string& product, Direction direction) const {
  if (!sequence()) return;
  Op o = share(product + ".gather", direction, OpKind::all_gather, fixed(sizes_.whole_x));
  o.allocates = {{product + ".gathered", fixed(sizes_.whole_x)}};
  out.push_back(o);
  if (direction != Direction::backward) return;
  // Gathers the product's input again, for its weight's gradient, while the input's gradient is computed.
  Op regather = share(product + ".regather", direction, OpKind::all_gather, fixed(sizes_.whole_x));
  regather.lane = Lane::tensor;
  regather.waits = {{o.name}};
  regather.allocates = {{product + ".regathered", fixed(sizes_.whole_x)}};
  out.push_back(regather);
}

void BlockOps::add_sum(Nodes& out, const std::string& product, Direction direction) const {
  Op o = share(product + ".sum", direction, sequence() ? OpKind::reduce_scatter : OpKind::all_reduce,
               fixed(sizes_.whole_x));
  if (sequence() && direction == Direction::backward) o.waits = {{product + ".regather.bwd"}};
  o.frees = {{product + ".partial"}, {product + ".regathered"}};
  out.push_back(o);
}

void BlockOps::add_whole(Op& product, const std::string& name) const {
  if (!sequence()) return;
  product.frees.push_back({name + ".gathered"});
  product.allocates.push_back({name + ".partial", fixed(sizes_.whole_x)});
}

Op BlockOps::before_products(Direction direction, const LayerRecompute& recompute) const {
  const Amount tokens = fixed(sizes_.own_tokens);
  Op o = op("pre" + suffix(direction), Action::attention, direction, Group::dense);
  o.work = {item(norm_kernel(), direction, tokens, {model_.d_model})};
  if (direction == Direction::backward && recompute.norm)
    o.work.push_back(item(norm_kernel(), Direction::forward, tokens, {model_.d_model}));
  o.waits = {{unshard_name(Group::dense, direction)}};
  add_module(o, direction, recompute);
  return o;
}

Op BlockOps::between_products(Direction direction, const LayerRecompute& recompute) const {
  Op o = op("mix" + suffix(direction), Action::attention, direction, Group::dense);
  o.work = between_work(direction);
  if (direction != Direction::backward) return o;
  if (recompute.norm)
    o.work.push_back(item(norm_kernel(), Direction::forward, fixed(sizes_.own_tokens), {model_.d_model}));
  o.waits = {{unshard_name(Group::dense, direction)}};
  if (remote()) o.waits.push_back({"dispatch.bwd"});
  return o;
}

void BlockOps::add_ffn(Nodes& out, Direction direction, const LayerRecompute& recompute) const {
  if (!tensor()) {
    out.push_back(ffn(direction, recompute));
    return;
  }
  using Parallel = AttentionSpec::Parallel;
  const bool backward = direction == Direction::backward;
  Op product = ffn(direction, recompute);
  if (mixer_alone()) {
    out.push_back(product);
  } else {
    add_gather(out, "ffn", direction);
    add_whole(product, "ffn");
    out.push_back(product);
    // After a shared norm, the gradients of both inputs are summed together, after attention's backward.
    if (!backward || model_.attention.parallel != Parallel::one_norm) add_sum(out, "ffn", direction);
  }
  if (direction != Direction::forward) return;
  Op add = op("ffn.add.fwd", Action::ffn, direction, Group::dense);
  add.work = {item(Kernel::add, direction, fixed(sizes_.own_tokens), {model_.d_model})};
  out.push_back(add);
}

Amount BlockOps::sent_rows() const {
  const double ranks = cut_experts() ? as_double(layout_.tensor) : 1;
  return {sizes_.row_block.fixed / ranks, sizes_.row_block.per_row / ranks};
}

void BlockOps::add_experts(Nodes& out, Direction direction, const LayerRecompute& recompute) const {
  if (!cut_experts() ||
      (direction == Direction::recompute && !recompute.exchanges_again())) {  // experts only, from rows that were kept
    out.push_back(experts(direction, recompute));
    return;
  }
  const bool backward = direction == Direction::backward;
  const std::string s = suffix(direction);
  Op gather = share("rows.gather", direction, OpKind::all_gather, sizes_.row_block);
  gather.allocates = {{"rows.gathered", sizes_.row_block}};
  gather.frees = backward ? std::vector<Ref>{{"collected.rows.gradient"}, {"expert.output.gradient"}}
                          : std::vector<Ref>{{"routed.rows"}, {"received.rows"}};
  if (remote()) gather.waits = {{(backward ? "collect" : "dispatch") + s}};
  out.push_back(gather);
  Op product = experts(direction, recompute);
  product.frees.push_back({"rows.gathered"});
  out.push_back(product);
  Op scatter = share("rows.scatter", direction, OpKind::reduce_scatter, sizes_.row_block);
  scatter.allocates = {{backward   ? "own.expert.input.gradient"
                        : remote() ? "own.expert.output"
                                   : "collected.rows",
                        sent_rows()}};
  scatter.frees = {{backward ? "expert.input.gradient" : "expert.output"}};
  out.push_back(scatter);
}

void BlockOps::add_embed(Nodes& out, Direction direction, const std::string& gradient) const {
  if (direction == Direction::forward) {
    Op lookup = embed_forward();
    if (sequence()) lookup.allocates.push_back({"embed.partial", fixed(sizes_.whole_x)});
    out.push_back(lookup);
    if (tensor()) add_sum(out, "embed", direction);
    return;
  }
  if (sequence()) {
    Op gather = share("embed.gather", direction, OpKind::all_gather, fixed(sizes_.whole_x));
    gather.allocates = {{"embed.gathered", fixed(sizes_.whole_x)}};
    out.push_back(gather);
  }
  out.push_back(embed_backward(gradient));
  if (sequence()) std::get<Op>(out.back()).frees.push_back({"embed.gathered"});
}

void BlockOps::add_head(Nodes& out) const {
  if (!tensor()) {
    out.push_back(head());
    return;
  }
  const auto norm = [&](Direction direction) {
    Op o = op("head.norm" + suffix(direction), Action::head_loss, Direction::forward, Group::head);
    o.work = {item(norm_kernel(), direction, fixed(losses() * sizes_.own_tokens), {model_.d_model})};
    o.waits = {{"head.unshard.fwd"}, {"data"}};
    return o;
  };
  out.push_back(norm(Direction::forward));
  if (sequence()) {
    Op gather = share("head.gather", Direction::forward, OpKind::all_gather, fixed(losses() * sizes_.whole_x));
    gather.allocates = {{"head.gathered", gather.collective.bytes}};
    out.push_back(gather);
  }
  // For each token the largest logit, the sum of exponentials and the target's logit, all fp32.
  out.push_back(share("head.loss", Direction::forward, OpKind::all_reduce, fixed(losses() * 3 * 4 * sizes_.tokens)));
  Op product = head();
  add_whole(product, "head");
  out.push_back(product);
  add_sum(out, "head", Direction::forward);
  std::get<Op>(out.back()).collective.bytes.fixed *= losses();
  out.push_back(norm(Direction::backward));
}

}  // namespace wt
