// The step program: one training step as data, in issue order. The trainer executes it, the simulator spends predicted
// time on it, and bounds are computed from it. No LibTorch and no SimGrid in here.
//
// A program is a tree: ops and loops over microbatches and layers. unroll() flattens it into instances whose ids
// ("mb0.L3.experts.fwd") are the same in every executor.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "sim/program/mesh.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

enum class OpKind { segment, all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, copy, host, send, receive };
enum class Lane {
  compute,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  copy,
  host,
  tensor,  ///< gathers that run in parallel with a product of the same tensor group
  // Between pipeline stages: activations towards the head, gradients back. Each lane has its own order, so that none
  // waits for another. Chunks on the path from the last stage to the first have their own lanes (Schedule::dualpipe_v).
  send_activations,
  receive_activations,
  send_gradients,
  receive_gradients,
  send_activations_back,
  receive_activations_back,
  send_gradients_back,
  receive_gradients_back
};
constexpr std::size_t kLanes = static_cast<std::size_t>(Lane::receive_gradients_back) + 1;
std::string to_string(OpKind kind);
std::string to_string(Lane lane);
/// The lane of a collective. Between replicas always `all_reduce`. In a tensor group `compute`, because the next
/// product needs the result. Otherwise the lane of its kind.
Lane lane_of(OpKind collective, Axis axis);

/// What an op does. The trainer dispatches on it. Together with direction and parameter group it identifies the op.
enum class Action {
  load_batch,  ///< host: the microbatch's tokens from the data set
  unshard,     ///< gather the group's compute weights from its shards (a copy if the shard axis has one rank)
  embed,       ///< token embedding
  project,     ///< context parallelism: norm, q/k/v, rope; `attention` is then the rest
  gather_kv,   ///< keys and values of all ranks of the context group; backward sums their gradients
  attention,   ///< norm, q/k/v, rope, attention, output projection, residual, norm; with experts router and permute
  ffn,         ///< dense FFN or shared experts, on the normed activations that attention hands on, plus the residual
  reduce_balance,    ///< rows of each sequence per expert, over the context group
  exchange_counts,   ///< rows each expert rank will receive, over the expert axis
  dispatch,          ///< permuted rows to the experts' ranks, over the expert axis
  experts,           ///< sort by expert, grouped gate/up, SwiGLU, grouped down, sort back
  collect,           ///< expert outputs back to the tokens' ranks, over the expert axis
  combine,           ///< weighted sum over the top k, residual
  head_loss,         ///< final norm, output projection, cross-entropy, and their backward
  reduce_gradients,  ///< sum the group's gradients over its shard axis; no such op if that axis has one rank
  exchange_copies,   ///< gradients of experts with copies on other ranks, over the expert axis
  add_copies,        ///< their sum, the same on every rank that holds the expert
  accumulate,        ///< add reduced gradients to the step's gradient shards
  reduce_replicas,  ///< sum gradient shards over replicas: completely, or on each replica the part whose state it keeps
  refresh,          ///< weight shards from the replicas that updated them
  reduce_loads,     ///< number of rows for each expert in this step, over the world
  update_bias,      ///< router biases by those loads
  gradient_norm,    ///< local sum of squares over all gradient shards
  reduce_norm,      ///< its sum over the ranks of one optimizer state
  optimizer,        ///< clip and AdamW on the shards
  orthogonalize,    ///< Muon's momenta, matrix by matrix; as a collective: gathers the other ranks' parts
  offload,          ///< gradients to the host, AdamW on its CPU, weights back
  offload_kept,     ///< what a layer keeps for backward, without its input, to the host; backward copies it back
  offload_input,    ///< the same of the next layer's input
  reduce_loss,      ///< loss terms over the world
  share_tensor,     ///< parts of a product's result, or of its input, between the ranks of a tensor group
  exchange_stages,  ///< activations or their gradients between pipeline stages
  restore,          ///< optimizer state that one replica has read from a checkpoint, to the others
};
enum class Direction { forward, recompute, backward };
enum class Group { none, embedding, dense, expert, head, router_bias, adapter };
std::string to_string(Action action);
std::string to_string(Group group);

/// A collective names its mesh axis. Executors derive the group instance from the rank, and number the calls per axis
/// in issue order, so that all ranks match the same calls.
struct Collective {
  Axis axis = Axis::world;
  Amount bytes;  ///< all_gather, reduce_scatter: the full buffer; all_reduce: the buffer; all_to_all: what this rank
                 ///< sends; broadcast: what the group's first rank has; send, receive: the message
  std::vector<double> sent = {};  ///< all_to_all with splits known in advance: bytes to each member
  int stages = 0;                 ///< send, receive: from this rank's coordinate on `axis` to the other's, cyclically
  /// all_to_all of routed rows by a Dispatcher that sends only one of a token's rows to each place: the number of rows
  /// of a token; 0: all rows are sent.
  std::int64_t rows_of_token = 0;
  double row_bytes = 0;  ///< all_to_all of routed rows: bytes of a row
  /// all_to_all of the rows of a rank's own tokens, where some may be dropped: `bytes` are the most, and this rank
  /// sends so many for each row that is kept. 0: none is dropped.
  double kept_row_bytes = 0;
};

/// Refers to another op or buffer by name in the same microbatch. Its layer is `layer_delta` away from that of the
/// loop, or the given one.
struct Ref {
  std::string name;
  int layer_delta = 0;
  int layer = -1;
  int microbatch_delta = 0;  ///< -1: of the previous microbatch; void in the first
};

/// Memory named here lives from this op's issue until the op that frees it is done.
struct Buffer {
  std::string name;
  Amount bytes;
  /// For resident memory: some frameworks free it and allocate it again, while our trainer keeps a pool.
  bool comes_and_goes = false;
};

struct Op {
  std::string name;  ///< "experts.fwd"; the instance id prepends microbatch and layer
  OpKind kind = OpKind::segment;
  Lane lane = Lane::compute;
  Action action = Action::load_batch;
  Direction direction = Direction::forward;
  Group group = Group::none;
  int layer_delta = 0;         ///< acts on layer (loop layer + delta): prefetch of a neighbour
  std::vector<WorkItem> work;  ///< for segments and copies
  Collective collective;       ///< for collectives
  std::vector<Ref> waits;      ///< must be done before this op starts; a Ref to a layer outside the model is void
  std::vector<Buffer> allocates;
  std::vector<Ref> frees;         ///< buffers that are freed when this op is done
  std::vector<Amount> transient;  ///< additional bytes at each moment of the op that may be its peak
  /// Whether several ranks run it together.
  bool collective_kind() const { return kind != OpKind::segment && kind != OpKind::copy && kind != OpKind::host; }
  /// Whether it exchanges rows with the experts' ranks.
  bool exchanges_rows() const { return action == Action::dispatch || action == Action::collect; }
  bool asynchronous() const { return kind != OpKind::segment && kind != OpKind::host && lane != Lane::compute; }
};

struct Loop;
using Node = std::variant<Op, Loop>;

/// The content of a loop. Copies share it until one of them is changed: the passes of a pipeline stage, with one loop
/// per microbatch, are a few bodies in a long order.
class Body {
 public:
  Body();
  Body(std::vector<Node> nodes);  // NOLINT: a list of nodes is a body
  Body(std::initializer_list<Node> nodes);
  operator const std::vector<Node>&() const { return *nodes_.get(); }  // NOLINT
  /// Gives write access to this copy only.
  std::vector<Node>& own();
  /// Gives write access to all copies: visit each body once, however many loops share it.
  std::vector<Node>& of_all() { return *nodes_.get(); }
  /// Equal for copies that share their nodes.
  const std::vector<Node>* shared() const { return nodes_.get(); }
  const Node* begin() const;
  const Node* end() const;

 private:
  std::shared_ptr<std::vector<Node>> nodes_;
};

struct Loop {
  enum class Index { microbatch, layer };
  Index index = Index::layer;
  int first = 0, last = -1;  ///< inclusive; first > last counts down; see count()
  bool descending = false;
  Body body;
  int count() const { return descending ? first - last + 1 : last - first + 1; }
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Buffer> resident;  ///< memory held throughout the step: masters, moments, gradient shards, pools
  int layers = 0;
  int microbatches = 0;
};

/// One op in one step of one rank, in issue order.
struct OpInstance {
  const Op* op = nullptr;
  int microbatch = -1;     ///< -1 outside the microbatch loop
  int layer = -1;          ///< -1 outside the layer loop
  std::vector<int> waits;  ///< indices of earlier instances
  /// "mb0.L3.experts.fwd", "mb0.head", "optimizer".
  std::string id() const;
};

/// Throws Error{usage} when a Ref names no earlier op, or an op's microbatch is beyond the program's. The program must
/// outlive the result.
std::vector<OpInstance> unroll(const Program& program);

}  // namespace wt
