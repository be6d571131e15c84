// The order of a block's ops and of the exchanges of rows between them.
#include "configs/base/number.hpp"
#include "sim/program/compose/block_ops.hpp"
#include "sim/program/compose/group_ops.hpp"

namespace wt {

Op BlockOps::exchange(const std::string& name, Action action, Direction direction, Amount sent,
                      std::vector<Ref> waits) const {
  Op o = op(name + suffix(direction), action, direction);
  o.waits = std::move(waits);
  if (layout_.dispatcher == Dispatcher::allgather && action != Action::exchange_counts) {
    const bool to_experts = (action == Action::dispatch) == (direction != Direction::backward);
    const double tokens = sizes_.own_tokens * sizes_.word * as_double(model_.expert_width() * layout_.expert);
    collective(o, to_experts ? OpKind::all_gather : OpKind::reduce_scatter, Axis::expert, fixed(tokens));
    o.transient = {fixed(tokens)};
    return o;
  }
  collective(o, OpKind::all_to_all, Axis::expert, sent);
  if (action != Action::exchange_counts) {
    o.collective.row_bytes = sizes_.word * as_double(model_.expert_width());
    if (sends_once(layout_.dispatcher)) o.collective.rows_of_token = model_.top_k;
    // Under sequence parallelism the tensor group shares the rows that are counted.
    if (model_.router.drops() && sent.per_row == 0)
      o.collective.kept_row_bytes =
          o.collective.row_bytes * (layout_.whole_experts ? 1 : sizes_.own_tokens / sizes_.tokens);
  }
  return o;
}

std::string BlockOps::last(Direction direction) const {
  return (moe() ? "combine" : tensor() && direction == Direction::forward ? "ffn.add" : "ffn") + suffix(direction);
}

std::string BlockOps::chosen(Direction direction, const LayerRecompute& recompute) const {
  if (direction == Direction::recompute && !recompute.block)
    return recompute.moe ? "router.rec" : unshard_name(Group::dense, direction);
  return (tensor() ? "mix" : "attn") + suffix(direction);
}

void BlockOps::add_block(Nodes& out, Direction direction, const LayerRecompute& recompute) const {
  add_attention(out, direction, recompute);
  add_behind_attention(out, direction, recompute);
  if (moe() && direction == Direction::forward) out.push_back(combine(direction, recompute));
}

void BlockOps::add_behind_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const {
  const bool local = !remote();
  const std::string s = suffix(direction), ready = chosen(direction, recompute);
  if (!local) {
    if (direction == Direction::forward)
      out.push_back(exchange("counts", Action::exchange_counts, direction, fixed(8 * as_double(layout_.slots(model_))),
                             {{ready}}));
    Op dispatch = exchange("dispatch", Action::dispatch, direction, fixed(sizes_.routed),
                           {{direction == Direction::forward ? "counts" + s : ready}});
    dispatch.allocates = {{"received.rows", sent_rows()}};
    if (direction == Direction::forward) dispatch.allocates.push_back({"row.orders", sizes_.row_orders});
    dispatch.frees = {{"routed.rows"}};
    out.push_back(dispatch);
  }
  if (has_ffn()) add_ffn(out, direction, recompute);  // shared experts compute during the exchange
  if (!moe()) return;
  add_experts(out, direction, recompute);
  if (!local) {
    Op collect = exchange("collect", Action::collect, direction, sent_rows(), {{rows_ready(direction)}});
    collect.allocates = {{"collected.rows", fixed(sizes_.routed)}};
    collect.frees = {{cut_experts() ? "own.expert.output" : "expert.output"}};
    out.push_back(collect);
  }
}

void BlockOps::add_ffn_backward(Nodes& out, const LayerRecompute& recompute) const {
  const bool ffn_alone = recompute.mlp || recompute.shared_experts;
  if (!moe()) {
    if (ffn_alone) add_ffn(out, Direction::recompute, recompute);
    return add_ffn(out, Direction::backward, recompute);
  }
  if (recompute.moe) {
    out.push_back(router_again(recompute));
    add_behind_attention(out, Direction::recompute, recompute);
  }
  out.push_back(combine(Direction::backward, recompute));
  if (remote()) {
    Op collect = exchange("collect", Action::collect, Direction::backward, fixed(sizes_.routed), {{"combine.bwd"}});
    collect.allocates = {{"expert.output.gradient", sent_rows()}};
    collect.frees = {{"collected.rows.gradient"}};
    out.push_back(collect);
  }
  if (ffn_alone) add_ffn(out, Direction::recompute, recompute);
  if (has_ffn()) add_ffn(out, Direction::backward, recompute);
  if (recompute.moe_act) out.push_back(activation_again());
  if (recompute.experts) add_experts(out, Direction::recompute, recompute);
  add_experts(out, Direction::backward, recompute);
}

void BlockOps::add_dispatch_backward(Nodes& out) const {
  if (!remote()) return;
  Op dispatch =
      exchange("dispatch", Action::dispatch, Direction::backward, sent_rows(), {{rows_ready(Direction::backward)}});
  dispatch.allocates = {{"routed.rows.gradient", fixed(sizes_.routed)}};
  dispatch.frees = {{cut_experts() ? "own.expert.input.gradient" : "expert.input.gradient"}};
  out.push_back(dispatch);
}

}  // namespace wt
