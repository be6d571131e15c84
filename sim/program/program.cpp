#include "sim/program/program.hpp"

#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "configs/base/error.hpp"
#include "sim/program/places.hpp"

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
  static const char* names[] = {
      "load_batch",      "unshard",     "embed",          "project",         "gather_kv",
      "attention",       "ffn",         "reduce_balance", "exchange_counts", "dispatch",
      "experts",         "collect",     "combine",        "head_loss",       "reduce_gradients",
      "exchange_copies", "add_copies",  "accumulate",     "reduce_replicas", "refresh",
      "reduce_loads",    "update_bias", "gradient_norm",  "reduce_norm",     "optimizer",
      "orthogonalize",   "offload",     "reduce_loss",    "share_tensor",    "exchange_stages",
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
    name(program.nodes, nullptr);
    for (auto& [op, names] : names_)
      for (const Ref& ref : op->waits) {
        const auto known = numbers_.find(ref.name);
        names.waits.push_back(known == numbers_.end() ? -1 : known->second);
      }
    index_.assign(places_.size(numbers_.size()), -1);
  }

  std::vector<OpInstance> run() {
    out_.reserve(count(program_.nodes));
    visit(program_.nodes, -1, -1);
    return std::move(out_);
  }

 private:
  /// Numbers of an op's name and of the names it waits for, because every wait of every instance is looked up.
  struct Names {
    int own = -1;
    std::vector<int> waits;
  };

  static std::size_t count(const std::vector<Node>& nodes) {
    std::size_t ops = 0;
    for (const Node& node : nodes)
      if (const Loop* loop = std::get_if<Loop>(&node))
        ops += count(loop->body) * static_cast<std::size_t>(loop->count());
      else
        ++ops;
    return ops;
  }

  void name(const std::vector<Node>& nodes, const Loop* over_layers) {
    for (const Node& node : nodes)
      if (const Op* op = std::get_if<Op>(&node)) {
        names_[op].own = numbers_.try_emplace(op->name, static_cast<int>(numbers_.size())).first->second;
        for (int i = 0; over_layers && i < over_layers->count(); ++i)
          if (const int layer = index_of(*over_layers, i) + op->layer_delta; layer >= 0 && layer < program_.layers)
            places_.add_layer(layer);
      } else if (const Loop& loop = std::get<Loop>(node); loop.index == Loop::Index::layer) {
        name(loop.body, &loop);
      } else if (named_.insert(loop.body.shared()).second) {
        name(loop.body, over_layers);
      }
  }

  static int index_of(const Loop& loop, int round) { return loop.descending ? loop.first - round : loop.first + round; }

  void visit(const std::vector<Node>& nodes, int microbatch, int layer) {
    for (const Node& node : nodes) {
      if (const Op* op = std::get_if<Op>(&node)) {
        add(*op, microbatch, layer);
        continue;
      }
      const Loop& loop = std::get<Loop>(node);
      for (int i = 0; i < loop.count(); ++i) {
        const int index = index_of(loop, i);
        const bool over_layers = loop.index == Loop::Index::layer;
        visit(loop.body, over_layers ? microbatch : index, over_layers ? index : layer);
      }
    }
  }

  void add(const Op& op, int microbatch, int layer) {
    const bool layered = layer >= 0 && op.group != Group::embedding && op.group != Group::head;
    const int own_layer = layered ? layer + op.layer_delta : -1;
    if (layered && (own_layer < 0 || own_layer >= program_.layers)) return;  // prefetch of a layer that does not exist
    OpInstance instance{&op, microbatch, own_layer, {}};
    if (microbatch >= program_.microbatches)
      throw_error(Code::usage,
                  "step program: op {} is of microbatch {} of {}; "
                  "this is a mistake of windtunnel, not of your files; report it with them",
                  op.name, microbatch, program_.microbatches);
    const Names& names = names_.find(&op)->second;
    instance.waits.reserve(op.waits.size());
    for (std::size_t i = 0; i < op.waits.size(); ++i) {
      const Ref& ref = op.waits[i];
      const int target = ref.layer >= 0 ? ref.layer : layer < 0 ? -1 : layer + ref.layer_delta;
      if (layer >= 0 && (target < 0 || target >= program_.layers)) continue;
      if (microbatch + ref.microbatch_delta < 0 && ref.microbatch_delta != 0) continue;
      const int found = find(names.waits[i], microbatch + ref.microbatch_delta, target);
      if (found < 0)
        throw_error(Code::usage,
                    "step program: op {} waits for {} of layer {}, which no earlier op is called; "
                    "this is a mistake of windtunnel, not of your files; report it with them",
                    instance.id(), ref.name, target);
      instance.waits.push_back(found);
    }
    index_[places_.at(static_cast<std::size_t>(names.own), microbatch, instance.layer)] = static_cast<int>(out_.size());
    out_.push_back(std::move(instance));
  }

  /// The epilogue (microbatch -1) finds the last microbatch; a layer finds ops without a layer, too.
  int find(int number, int microbatch, int layer) const {
    if (number < 0) return -1;
    for (const int mb : {microbatch < 0 ? program_.microbatches - 1 : microbatch, -1})
      for (const int l : {layer, -1})
        if (const std::size_t place = places_.at(static_cast<std::size_t>(number), mb, l); place != Places::kNone)
          if (const int found = index_[place]; found >= 0) return found;
    return -1;
  }

  const Program& program_;
  Places places_;
  std::unordered_map<std::string_view, int> numbers_;  ///< by op name
  std::unordered_map<const Op*, Names> names_;
  std::unordered_set<const void*> named_;  ///< visited bodies, which loops over microbatches share
  std::vector<int> index_;                 ///< instances by name, microbatch and layer; -1 = not issued yet
  std::vector<OpInstance> out_;
};

}  // namespace

std::vector<OpInstance> unroll(const Program& program) { return Unroller(program).run(); }

}  // namespace wt
