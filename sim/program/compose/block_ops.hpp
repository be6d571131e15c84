// Ops of one block and of what stands around the blocks: the segments between collectives, with their work and memory,
// and the exchanges of rows between ranks that hold different experts.
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

class BlockOps : public OpFactory {
 public:
  using OpFactory::OpFactory;

  /// Attention with the router; under context parallelism with the projections, the gather of keys and values
  /// (backward: the sum of their gradients) and the sum of the sequences' loads around it. `again`: what the layer
  /// computes again in backward.
  void add_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// Dense FFN or shared experts, with the tensor group's collectives.
  void add_ffn(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// Likewise; under sequence parallelism each tensor rank routes its own tokens, and their rows are gathered over the
  /// group.
  void add_experts(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// combine .. experts, and shared experts while gradients travel; or the dense FFN.
  void add_ffn_backward(Nodes& out, const LayerRecompute& recompute) const;
  /// Gradients of the experts' rows to the ranks of the tokens, behind it.
  void add_dispatch_backward(Nodes& out) const;
  /// The op of that direction with which a block ends: combine, or the FFN of a dense layer.
  std::string last(Direction direction) const;
  /// attention .. combine of one layer, with the exchanges where experts live elsewhere. As recompute of a whole block
  /// without combine, whose result nobody needs.
  void add_block(Nodes& out, Direction direction, const LayerRecompute& recompute) const;
  /// `gradient`: the op of layer 0 behind which the gradient of the output is there; empty = the layer's last one.
  void add_embed(Nodes& out, Direction direction, const std::string& gradient = "") const;
  void add_head(Nodes& out) const;

 private:
  /// What a rank sends back to the ranks of the tokens: its experts' rows, or under sequence parallelism its part of
  /// them.
  Amount sent_rows() const;
  /// The op after which they are there.
  std::string rows_ready(Direction direction) const {
    return (cut_experts() ? "rows.scatter" : "experts") + suffix(direction);
  }
  Op all_to_all(const std::string& name, Action action, Direction direction, Amount sent, std::vector<Ref> waits) const;
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
  /// Both factors' products, in backward with their weights' gradients.
  void add_adapters(std::vector<WorkItem>& work, bool output, Direction direction) const;
  /// The gradient of the embedding's output, where nothing before the first layer is trained: it goes with the op,
  /// unless it is sent to a stage that has the embedding alone.
  void drop_first_gradient(Op& o) const;
  /// The compute lane waits for the ring's last message.
  Op ring_end(Direction direction) const;
  /// In the op that reads the block's input: what a module of multi-token prediction computes before its block.
  void add_module(Op& o, Direction direction, const LayerRecompute& recompute) const;
  /// How often a microbatch goes through the output projection and the loss.
  double losses() const { return 1 + as_double(model_.mtp_layers); }
  /// The block keeps its input packed. Not a module of multi-token prediction: the head reads its input as well.
  bool compressed_input(const LayerRecompute& r) const {
    return r.recomputes_attention() && layout_.recompute.compression != Compression::none && !model_.mtp(layer_);
  }
  /// The attention kernel alone; of a linear mixer its convolution, chunked products and gated norm.
  std::vector<WorkItem> core_work(Direction direction) const;
  std::vector<WorkItem> linear_core_work(Direction direction) const;
  bool linear() const { return model_.linear_mixer(layer_); }
  /// The block's own norms; those of q, k and latent vectors are RMSNorm always.
  Kernel norm_kernel() const { return model_.norm == Norm::layernorm ? Kernel::layernorm : Kernel::rmsnorm; }
  /// The load-balancing loss counts rows of whole sequences.
  bool balances() const { return moe() && model_.router.aux_loss_weight > 0; }
  /// Of what recompute of `products` computes again: no attention, half of each product.
  static void leave_products(Op& o);
  std::vector<WorkItem> projection_work(Direction direction) const;
  std::vector<WorkItem> attention_work(Direction direction) const;
  /// After the output projection: bias, residual, norm, router, permutation.
  std::vector<WorkItem> between_work(Direction direction) const;
  /// Of latent attention: q, k and v from the latent vectors.
  std::vector<WorkItem> up_projection_work(Direction direction) const;
  std::vector<WorkItem> router_work(Direction direction) const;
  /// The op after which the FFN's or the experts' input is there.
  std::string chosen(Direction direction, const LayerRecompute& recompute) const;
  /// What add_block adds but for attention and combine.
  void add_behind_attention(Nodes& out, Direction direction, const LayerRecompute& recompute) const;

  // Modules computed again (block_recompute.cpp).
  Op again(const std::string& name, Action action, Group group, std::vector<WorkItem> work) const;
  Op core_again() const;
  Op up_projections_again() const;
  Op activation_again() const;
  Op router_again(const LayerRecompute& recompute) const;
  /// The FFN's input is dropped behind it and computed again before its backward.
  bool norm_again(const LayerRecompute& r) const { return r.norm && !r.attention && has_ffn() && !mixer_alone(); }
  /// Recompute of `moe` starts from rows that neither an FFN nor attention keeps.
  bool moe_input_apart(const LayerRecompute& r) const {
    return !has_ffn() && !r.norm && (options_.precision == Precision::bf16 || r.attention);
  }

  // Tensor parallelism (block_tensor.cpp).
  Op share(const std::string& name, Direction direction, OpKind kind, Amount bytes) const;
  /// Input of a product (backward: gradient of its output, and the input once more) from its parts.
  void add_gather(Nodes& out, const std::string& product, Direction direction) const;
  /// Output of a product (backward: gradient of its input), summed over the group.
  void add_sum(Nodes& out, const std::string& product, Direction direction) const;
  /// What a product holds of all tokens: frees its gathered input, allocates its output until add_sum.
  void add_whole(Op& product, const std::string& name) const;
  Op before_products(Direction direction, const LayerRecompute& recompute) const;
  Op between_products(Direction direction, const LayerRecompute& recompute) const;
};

}  // namespace wt
