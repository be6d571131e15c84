// Ops of one block, and of embedding and head: the segments between collectives with their work and memory, and the
// exchanges of rows between ranks with different experts.
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

class BlockOps : public OpFactory {
 public:
  using OpFactory::OpFactory;

  /// Attention with the router. Under context parallelism also the projections, the gather of keys and values
  /// (backward: the sum of their gradients) and the sum of the sequences' loads. `recompute`: what the layer recomputes
  /// in backward.
  void add_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// Dense FFN or shared experts, with the tensor group's collectives.
  void add_ffn(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// Experts with the tensor group's collectives. Under sequence parallelism each tensor rank routes its own tokens,
  /// and the group gathers their rows.
  void add_experts(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// Backward from combine to experts, with shared experts while gradients are exchanged; or the dense FFN.
  void add_ffn_backward(Nodes& out, const LayerRecompute& recompute) const;
  /// Sends gradients of the experts' rows back to the tokens' ranks, after add_ffn_backward.
  void add_dispatch_backward(Nodes& out) const;
  /// The name of a block's last op in that direction: combine, or the FFN of a dense layer.
  std::string last(Direction direction) const;
  /// One layer from attention to combine, with the exchanges if experts are on other ranks. For recompute of a whole
  /// block without combine, whose result is not needed.
  void add_block(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// `gradient`: the op of layer 0 after which the gradient of the embedding's output is ready; empty = its last op.
  void add_embed(Nodes& out, Direction direction, const std::string& gradient = "") const;
  void add_head(Nodes& out) const;

 private:
  /// Rows that a rank returns to the tokens' ranks: all rows of its experts, or its part of these under sequence
  /// parallelism.
  Amount sent_rows() const;
  /// The op after which these rows are ready.
  std::string rows_ready(Direction direction) const {
    return (cut_experts() ? "rows.scatter" : "experts") + suffix(direction);
  }
  /// An exchange of rows over the expert axis, or of their numbers. `sent`: bytes that the rank sends by all-to-all.
  Op exchange(const std::string& name, Action action, Direction direction, Amount sent, std::vector<Ref> waits) const;
  Op combine(Direction direction, const LayerRecompute& recompute) const;
  Op ffn(Direction direction, const LayerRecompute& recompute) const;
  Op experts(Direction direction, const LayerRecompute& recompute) const;
  Op embed_forward() const;
  Op embed_backward(const std::string& gradient) const;
  Op head() const;
  Op attention(Direction direction, const LayerRecompute& recompute) const;
  Op project(Direction direction, const LayerRecompute& recompute) const;
  Op gather_kv(Direction direction) const;
  Op reduce_kv() const;
  void add_ring_backward(Nodes& out, const std::vector<Ref>& waits) const;
  /// The products of both factors; in backward with their weights' gradients.
  void add_adapters(std::vector<WorkItem>& work, bool output, Direction direction) const;
  /// Removes the gradient of the embedding's output if nothing before the first layer is trained, unless the gradient
  /// is sent to a stage with only the embedding.
  void drop_first_gradient(Op& o) const;
  /// Makes the compute lane wait for the ring's last message.
  Op ring_end(Direction direction) const;
  /// Adds a multi-token prediction module's work before its block, in the op that reads the block's input.
  void add_module(Op& o, Direction direction, const LayerRecompute& recompute) const;
  /// Number of passes of a microbatch through output projection and loss.
  double losses() const { return 1 + as_double(model_.mtp_layers); }
  /// Whether the block's input is kept compressed. A module of multi-token prediction shares its input with the head.
  bool compressed_input(const LayerRecompute& r) const {
    return r.recomputes_attention() && layout_.recompute.compression != Compression::none && !model_.mtp(layer_);
  }
  /// Only the attention kernel; for a linear mixer its convolution, chunked products and gated norm.
  std::vector<WorkItem> core_work(Direction direction) const;
  std::vector<WorkItem> linear_core_work(Direction direction) const;
  bool linear() const { return model_.linear_mixer(layer_); }
  /// The block's own norms. Those of q, k and latent vectors are always RMSNorm.
  Kernel norm_kernel() const { return model_.norm == Norm::layernorm ? Kernel::layernorm : Kernel::rmsnorm; }
  /// Whether a balancing loss needs the rows of whole sequences per expert.
  bool balances() const { return moe() && model_.router.aux_loss_weight > 0; }
  /// Removes what recompute of `products` keeps: attention and half of the products.
  static void leave_products(Op& o);
  std::vector<WorkItem> projection_work(Direction direction) const;
  std::vector<WorkItem> attention_work(Direction direction) const;
  /// After the output projection: bias, residual, norm, router, permutation.
  std::vector<WorkItem> between_work(Direction direction) const;
  /// Latent attention: q, k and v from the latent vectors.
  std::vector<WorkItem> up_projection_work(Direction direction) const;
  std::vector<WorkItem> router_work(Direction direction) const;
  /// The op after which the input of the FFN or the experts is ready.
  std::string chosen(Direction direction, const LayerRecompute& recompute) const;
  /// The ops of add_block between attention and combine.
  void add_behind_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const;

  // Recompute of single modules (block_recompute.cpp).
  Op again(const std::string& name, Action action, Group group, std::vector<WorkItem> work) const;
  Op core_again() const;
  Op up_projections_again() const;
  Op activation_again() const;
  Op router_again(const LayerRecompute& recompute) const;
  /// Whether the FFN's input is freed after it and recomputed before its backward.
  bool norm_again(const LayerRecompute& r) const { return r.norm && !r.attention && has_ffn() && !mixer_alone(); }
  /// Whether recompute of `moe` must keep its input rows itself, because neither FFN nor attention keeps them.
  bool moe_input_apart(const LayerRecompute& r) const {
    return !has_ffn() && !r.norm && (options_.precision == Precision::bf16 || r.attention);
  }

  // Tensor parallelism (block_tensor.cpp).
  Op share(const std::string& name, Direction direction, OpKind kind, Amount bytes) const;
  /// Gathers the input of a product from its parts (backward: the gradient of its output, and its input again).
  void add_gather(Nodes& out, const std::string& product, Direction direction) const;
  /// Sums the output of a product over the group (backward: the gradient of its input).
  void add_sum(Nodes& out, const std::string& product, Direction direction) const;
  /// Memory of a product over all tokens: it frees its gathered input and allocates its output, which add_sum frees.
  void add_whole(Op& product, const std::string& name) const;
  Op before_products(Direction direction, const LayerRecompute& recompute) const;
  Op between_products(Direction direction, const LayerRecompute& recompute) const;
};

}  // namespace wt
