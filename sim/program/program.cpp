#include "sim/program/program.hpp"

#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "configs/base/error.hpp"
#include "sim/program/places.hpp"
#include "sim/program/walk.hpp"

namespace wt {

Body::Body() : Body(std::vector<Node>()) {}
Body::Body(std::vector<Node> nodes) : nodes_(std::make_shared<std::vector<Node>>(std::move(nodes))) {}
Body::Body(std::initializer_list<Node> nodes) : Body(std::vector<Node>(nodes)) {}
const Node* Body::begin() const { return nodes_->data(); }
const Node* Body::end() const { return nodes_->data() + nodes_->size(); }

std::vector<Node>& Body::own() {
  if (nodes_.use_count() > 1) nodes_ = std::make_shared<std::vector<Node>>(*nodes_);
  return *nodes_;
}

std::string to_string(OpKind kind) {
  static const char* names[] = {"segment",   "all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                "broadcast", "copy",       "host",           "send",       "receive"};
  return names[static_cast<int>(kind)];
}

std::string to_string(Lane lane) {
  static const char* names[] = {"compute",
                                "all_gather",
                                "reduce_scatter",
                                "all_reduce",
                                "all_to_all",
                                "copy",
                                "host",
                                "tensor",
                                "send_activations",
                                "receive_activations",
                                "send_gradients",
                                "receive_gradients",
                                "send_activations_back",
                                "receive_activations_back",
                                "send_gradients_back",
                                "receive_gradients_back"};
  static_assert(std::size(names) == kLanes);
  return names[static_cast<int>(lane)];
}

Lane lane_of(OpKind collective, Axis axis) {
  if (axis == Axis::tensor) return Lane::compute;
  if (axis == Axis::replicate || axis == Axis::optimizer_shard || axis == Axis::optimizer_replicate)
    return Lane::all_reduce;
  switch (collective) {
    case OpKind::all_gather:
      return Lane::all_gather;
    case OpKind::reduce_scatter:
      return Lane::reduce_scatter;
    case OpKind::all_reduce:
    case OpKind::broadcast:
      return Lane::all_reduce;
    default:
      return Lane::all_to_all;
  }
}

std::string to_string(Action action) {
  static const char* names[] = {"load_batch",
                                "unshard",
                                "embed",
                                "project",
                                "gather_kv",
                                "attention",
                                "ffn",
                                "reduce_balance",
                                "exchange_counts",
                                "dispatch",
                                "experts",
                                "collect",
                                "combine",
                                "head_loss",
                                "reduce_gradients",
                                "exchange_copies",
                                "add_copies",
                                "accumulate",
                                "reduce_replicas",
                                "refresh",
                                "reduce_loads",
                                "update_bias",
                                "gradient_norm",
                                "reduce_norm",
                                "optimizer",
                                "orthogonalize",
                                "offload",
                                "offload_kept",
                                "offload_input",
                                "reduce_loss",
                                "share_tensor",
                                "exchange_stages",
                                "restore"};
  static_assert(std::size(names) == static_cast<std::size_t>(Action::restore) + 1);
  return names[static_cast<int>(action)];
}

std::string to_string(Group group) {
  static const char* names[] = {"none", "embedding", "dense", "expert", "head", "router_bias", "adapter"};
  static_assert(std::size(names) == static_cast<std::size_t>(Group::adapter) + 1);
  return names[static_cast<int>(group)];
}

std::string OpInstance::id() const {
  std::string out;
  if (microbatch >= 0) out += fmt::format("mb{}.", microbatch);
  if (layer >= 0) out += fmt::format("L{}.", layer);
  return out + op->name;
}

namespace {

class Unroller {
 public:
  explicit Unroller(const Program& program) : program_(program), places_(program.microbatches, program.layers) {
    number_names();
    index_.assign(places_.size(), -1);
  }

  std::vector<OpInstance> run() {
    double ops = 0;
    for_each_op(program_.nodes, [&ops](const Op&, const LoopsAround& around) { ops += around.times; });
    out_.reserve(static_cast<std::size_t>(ops));
    for_each_issue(program_.nodes, program_.layers, [this](const Op& op, const Issue& issue) { add(op, issue); });
    return std::move(out_);
  }

 private:
  /// Numbers of an op's name and of the names that it waits for. They are cached, because every wait of every instance
  /// looks up an op.
  struct Names {
    std::size_t own = 0;
    std::vector<std::size_t> waits;
  };

  void number_names() {
    std::unordered_set<const void*> passes;  // loops over microbatches share bodies
    for_each_op(
        program_.nodes,
        [&](const Op& op, const LoopsAround& around) {
          if (const auto [entry, fresh] = names_.try_emplace(&op); fresh) {
            entry->second.own = places_.number(op.name);
            for (const Ref& ref : op.waits) entry->second.waits.push_back(places_.number(ref.name));
          }
          if (!around.layers) return;
          for (const int round : rounds_of(*around.layers))
            if (const auto layer = layer_of(op, round, program_.layers)) places_.add_layer(*layer);
        },
        [&](const Loop& loop) { return loop.index == Loop::Index::layer || passes.insert(loop.body.shared()).second; });
  }

  void add(const Op& op, const Issue& issue) {
    const int microbatch = issue.microbatch;
    OpInstance instance{&op, microbatch, issue.layer, {}};
    if (microbatch >= program_.microbatches)
      throw_usage(
          "step program: op {} is of microbatch {} of {}; this is a mistake of windtunnel, not of your files; report "
          "it with them",
          op.name, microbatch, program_.microbatches);
    const Names& names = names_.find(&op)->second;
    instance.waits.reserve(op.waits.size());
    for (std::size_t i = 0; i < op.waits.size(); ++i) {
      const Ref& ref = op.waits[i];
      const auto layer = layer_of(ref, issue.loop_layer, program_.layers);
      if (!layer || (microbatch + ref.microbatch_delta < 0 && ref.microbatch_delta != 0)) continue;
      const std::size_t place = places_.find(names.waits[i], microbatch + ref.microbatch_delta, *layer,
                                             [this](std::size_t at) { return index_[at] >= 0; });
      if (place == Places::kNone)
        throw_usage(
            "step program: op {} waits for {} of layer {}, which no earlier op is called; this is a mistake of "
            "windtunnel, not of your files; report it with them",
            instance.id(), ref.name, *layer);
      instance.waits.push_back(index_[place]);
    }
    index_[places_.at(names.own, microbatch, instance.layer)] = static_cast<int>(out_.size());
    out_.push_back(std::move(instance));
  }

  const Program& program_;
  Places places_;
  std::unordered_map<const Op*, Names> names_;
  std::vector<int> index_;  ///< index of the instance by name, microbatch and layer; -1 = not issued yet
  std::vector<OpInstance> out_;
};

}  // namespace

std::vector<OpInstance> unroll(const Program& program) { return Unroller(program).run(); }

}  // namespace wt
