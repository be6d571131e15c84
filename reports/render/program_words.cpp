#include "reports/render/program_words.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>

namespace wt {
namespace {

using Kind = MemoryUseKind;

const char* group_words(Group group) {
  static const char* const words[] = {"", "embedding", "attention and dense", "expert", "output", "router bias"};
  return words[static_cast<int>(group)];
}

const char* direction_words(Direction direction) {
  static const char* const words[] = {"forward", "recomputed", "backward"};
  return words[static_cast<int>(direction)];
}

/// With {} where the group belongs.
const char* action_words(Action action) {
  static const char* const words[] = {"load the batch",
                                      "gather {}weights",
                                      "token embedding",
                                      "projections to queries, keys and values",
                                      "gather keys and values",
                                      "attention and router",
                                      "dense FFN",
                                      "sum expert loads of a sequence",
                                      "exchange row counts",
                                      "send rows to experts",
                                      "experts",
                                      "return rows from experts",
                                      "combine expert outputs",
                                      "output projection and loss",
                                      "reduce {}gradients",
                                      "exchange gradients of expert copies",
                                      "add gradients of expert copies",
                                      "add {}gradients to the step's",
                                      "reduce {}gradients over replicas",
                                      "{}weights from other replicas",
                                      "sum expert loads",
                                      "update router biases",
                                      "gradient norm",
                                      "sum the gradient norm",
                                      "optimizer",
                                      "orthogonalize {}momenta (Muon)",
                                      "optimizer on the host",
                                      "sum the loss",
                                      "exchange within the tensor group",
                                      "pass between pipeline stages",
                                      "restore {}state from a checkpoint"};
  static_assert(std::size(words) == static_cast<std::size_t>(Action::restore) + 1);
  return words[static_cast<int>(action)];
}

/// The group that goes without saying.
Group usual_group(Action action) {
  switch (action) {
    case Action::embed:
      return Group::embedding;
    case Action::project:
    case Action::gather_kv:
    case Action::attention:
    case Action::ffn:
      return Group::dense;
    case Action::experts:
    case Action::exchange_copies:
    case Action::add_copies:
      return Group::expert;
    case Action::head_loss:
      return Group::head;
    case Action::update_bias:
      return Group::router_bias;
    default:
      return Group::none;
  }
}

std::string with_group(Action action, Group group) {
  const std::string words = action_words(action), of = group_words(group);
  if (const std::size_t at = words.find("{}"); at != std::string::npos)
    return words.substr(0, at) + (of.empty() ? "" : of + " ") + words.substr(at + 2);
  return group == Group::none || group == usual_group(action) ? words : fmt::format("{} ({})", words, of);
}

const std::map<std::string, Group>& groups() {
  static const std::map<std::string, Group> known{{"embedding", Group::embedding},
                                                  {"dense", Group::dense},
                                                  {"expert", Group::expert},
                                                  {"head", Group::head},
                                                  {"router_bias", Group::router_bias}};
  return known;
}

/// Names of ops behind their group: "dense.unshard".
const std::map<std::string, Action>& group_ops() {
  static const std::map<std::string, Action> known{
      {"unshard", Action::unshard},         {"reduce", Action::reduce_gradients},
      {"accumulate", Action::accumulate},   {"replicas", Action::reduce_replicas},
      {"refresh", Action::refresh},         {"restore.master", Action::restore},
      {"restore.exp_avg", Action::restore}, {"restore.exp_avg_sq", Action::restore}};
  return known;
}

/// Names of all other ops without their direction.
const std::map<std::string, std::string>& other_ops() {
  static const std::map<std::string, std::string> known{
      {"data", action_words(Action::load_batch)},
      {"embed", action_words(Action::embed)},
      {"project", action_words(Action::project)},
      {"attn", action_words(Action::attention)},
      {"pre", "norm and projections before attention"},
      {"mix", "sum around attention"},
      {"core", "attention's core"},
      {"up", "projections from latent attention"},
      {"router", "router"},
      {"ffn", action_words(Action::ffn)},
      {"ffn.add", "add the dense FFN's output"},
      {"experts", action_words(Action::experts)},
      {"activation", "activation of the experts"},
      {"combine", action_words(Action::combine)},
      {"weights", "gradients of weights"},
      {"balance", action_words(Action::reduce_balance)},
      {"counts", action_words(Action::exchange_counts)},
      {"dispatch", action_words(Action::dispatch)},
      {"collect", action_words(Action::collect)},
      {"copies.exchange", action_words(Action::exchange_copies)},
      {"copies.sum", action_words(Action::add_copies)},
      {"kv.gather", action_words(Action::gather_kv)},
      {"kv.reduce", "sum gradients of keys and values"},
      {"kv.ring", "pass keys and values around"},
      {"head", action_words(Action::head_loss)},
      {"head.norm", "final norm"},
      {"head.loss", "sum the loss of the tensor group"},
      {"head.gather", "gather tokens for the output projection"},
      {"head.sum", "sum the output projection's gradients"},
      {"embed.gather", "gather tokens for the embedding"},
      {"embed.sum", "sum embedded tokens"},
      {"attn.gather", "gather tokens for attention"},
      {"attn.regather", "gather tokens for attention again"},
      {"attn.sum", "sum attention's output"},
      {"ffn.gather", "gather tokens for the FFN"},
      {"ffn.regather", "gather tokens for the FFN again"},
      {"ffn.sum", "sum the FFN's output"},
      {"rows.gather", "gather rows for cut experts"},
      {"rows.scatter", "sum and scatter rows of cut experts"},
      {"send", "send to the next stage"},
      {"receive", "receive from the stage before"},
      {"sent", "wait until it is sent"},
      {"sent.back", "wait until it is sent back"},
      {"arrived", "wait until it has arrived"},
      {"tied.send", "send the tied embedding's gradient"},
      {"tied.receive", "receive the tied embedding's gradient"},
      {"tied.sum", "sum the tied embedding's gradient"},
      {"router_loads.reduce", action_words(Action::reduce_loads)},
      {"router_bias", action_words(Action::update_bias)},
      {"norm", action_words(Action::gradient_norm)},
      {"norm.reduce", action_words(Action::reduce_norm)},
      {"norm.stages", "sum the gradient norm over stages"},
      {"momentum", "momenta (Muon)"},
      {"muon.dense", with_group(Action::orthogonalize, Group::dense)},
      {"muon.expert", with_group(Action::orthogonalize, Group::expert)},
      {"muon.dense.gather", "gather orthogonalized attention and dense momenta"},
      {"muon.expert.gather", "gather orthogonalized expert momenta"},
      {"muon.dense.replicas", "attention and dense momenta from other replicas"},
      {"muon.expert.replicas", "expert momenta from other replicas"},
      {"optimizer", action_words(Action::optimizer)},
      {"offload.gradients", "gradients to the host"},
      {"offload.update", action_words(Action::offload)},
      {"offload.weights", "weights from the host"},
      {"loss.reduce", action_words(Action::reduce_loss)}};
  return known;
}

std::optional<std::string> base_words(std::string name) {
  if (const auto other = other_ops().find(name); other != other_ops().end()) return other->second;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {};
  const auto group = groups().find(name.substr(0, dot));
  std::string op = name.substr(dot + 1);
  const bool sum = op.ends_with(".sum");  // what replicas sent, added up
  if (sum) op.resize(op.size() - 4);
  const auto action = group_ops().find(op);
  if (group == groups().end() || action == group_ops().end()) return {};
  return sum ? "sum of " + with_group(Action::accumulate, group->second) : with_group(action->second, group->second);
}

/// Cuts "mb3." or "L3." off the front; the number, or none.
std::optional<int> cut_number(std::string& id, const std::string& mark) {
  if (!id.starts_with(mark)) return {};
  const std::size_t dot = id.find('.'), from = mark.size();
  if (dot == std::string::npos || dot == from || id.find_first_not_of("0123456789", from) != dot) return {};
  const int number = std::stoi(id.substr(from, dot - from));
  id.erase(0, dot + 1);
  return number;
}

/// Cuts ".fwd", ".rec" or ".bwd" off the end.
std::optional<Direction> cut_direction(std::string& name) {
  for (const auto& [suffix, direction] :
       {std::pair{".fwd", Direction::forward}, {".rec", Direction::recompute}, {".bwd", Direction::backward}})
    if (name.ends_with(suffix)) {
      name.resize(name.size() - 4);
      return direction;
    }
  return {};
}

const std::map<std::string, BufferWords>& buffers() {
  static const std::map<std::string, BufferWords> known{
      {"masters", {"fp32 copy of the weights", Kind::optimizer}},
      {"moments", {"optimizer moments", Kind::optimizer}},
      {"muon.dense.owned", {"attention and dense momenta of this rank (Muon)", Kind::optimizer}},
      {"muon.expert.owned", {"expert momenta of this rank (Muon)", Kind::optimizer}},
      {"weights", {"weights", Kind::weights}},
      {"weight shards", {"weight shards", Kind::weights}},
      {"gathered slots", {"gathered weights of layers", Kind::weights}},
      {"head.weights", {"gathered output projection", Kind::weights}},
      {"embedding.weights", {"gathered embedding", Kind::weights}},
      {"gradients", {"gradients", Kind::gradients}},
      {"gradient shards", {"gradient shards", Kind::gradients}},
      {"gradient slots", {"whole gradients of layers", Kind::gradients}},
      {"outer gradients", {"whole gradients of embedding and output projection", Kind::gradients}},
      {"dummy gradients", {"placeholder gradients", Kind::gradients}},
      {"head.gradient", {"gradient of the output projection", Kind::gradients}},
      {"embedding.gradient", {"gradient of the embedding", Kind::gradients}},
      {"tied.gradient", {"gradient of the tied embedding", Kind::gradients}},
      {"expert.copies", {"gradients of expert copies", Kind::gradients}},
      {"block.input", {"inputs of layers", Kind::activations}},
      {"block.output", {"outputs of layers", Kind::activations}},
      {"compressed.input", {"compressed inputs of layers", Kind::activations}},
      {"residual", {"residual", Kind::activations}},
      {"attention.saved", {"saved by attention", Kind::activations}},
      {"attention.core", {"attention's core, computed again", Kind::activations}},
      {"attention.up", {"latent attention's projections, computed again", Kind::activations}},
      {"attention masks", {"attention masks", Kind::working}},
      {"attention.kept", {"products of attention", Kind::activations}},
      {"project.saved", {"saved by projections", Kind::activations}},
      {"router.saved", {"saved by the router", Kind::activations}},
      {"ffn.saved", {"saved by the dense FFN", Kind::activations}},
      {"ffn.kept", {"products of the dense FFN", Kind::activations}},
      {"ffn.input", {"input of the dense FFN", Kind::activations}},
      {"moe.input", {"input of router and experts", Kind::activations}},
      {"shared.expert.output", {"output of the shared experts", Kind::activations}},
      {"module.input", {"input of multi-token prediction", Kind::activations}},
      {"module.saved", {"saved by multi-token prediction", Kind::activations}},
      {"q", {"queries", Kind::activations}},
      {"kv", {"keys and values", Kind::activations}},
      {"kv.gathered", {"keys and values of the context group", Kind::activations}},
      {"weights.kept", {"kept for gradients of weights", Kind::activations}},
      {"routing", {"routing choices", Kind::rows}},
      {"row.orders", {"order of rows", Kind::rows}},
      {"routed.rows", {"rows on their way to experts", Kind::rows}},
      {"received.rows", {"rows received for experts", Kind::rows}},
      {"expert.input", {"rows that experts read", Kind::rows}},
      {"experts.saved", {"saved by experts", Kind::rows}},
      {"experts.kept", {"products of experts", Kind::rows}},
      {"experts.activation", {"activation of experts, computed again", Kind::rows}},
      {"expert.output", {"rows that experts wrote", Kind::rows}},
      {"own.expert.output", {"rows that cut experts wrote", Kind::rows}},
      {"collected.rows", {"rows returned from experts", Kind::rows}},
      {"rows.gathered", {"gathered rows of cut experts", Kind::rows}},
      {"weights.rows.kept", {"rows kept for gradients of weights", Kind::rows}},
      {"collected.rows.gradient", {"gradient of rows returned from experts", Kind::working}},
      {"expert.output.gradient", {"gradient of rows that experts wrote", Kind::working}},
      {"expert.input.gradient", {"gradient of rows that experts read", Kind::working}},
      {"own.expert.input.gradient", {"gradient of rows that cut experts read", Kind::working}},
      {"routed.rows.gradient", {"gradient of rows on their way to experts", Kind::working}},
      {"block.input.gradient", {"gradient of a layer's input", Kind::working}},
      {"ffn.input.gradient", {"gradient of the dense FFN's input", Kind::working}},
      {"residual.gradient", {"gradient of the residual", Kind::working}},
      {"hidden.gradients", {"gradients of hidden states", Kind::working}},
      {"q.gradient", {"gradient of queries", Kind::working}},
      {"kv.gradient", {"gradient of keys and values", Kind::working}},
      {"gathered.kv.gradient", {"gradient of gathered keys and values", Kind::working}},
      {"kv.scratch", {"buffer to gather keys and values", Kind::communication}},
      {"rope table", {"table of positions", Kind::working}},
      {"transient", {"working memory of the running operation", Kind::working}}};
  return known;
}

/// Of names that are made of a group or a product and what is done with it.
std::optional<BufferWords> made_buffer(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {};
  const std::string first = name.substr(0, dot), rest = name.substr(dot + 1);
  static const std::map<std::string, std::string> products{
      {"attn", "attention"}, {"ffn", "the FFN"}, {"embed", "the embedding"}, {"head", "the output projection"}};
  static const std::map<std::string, std::string> shares{{"gathered", "gathered tokens of {}"},
                                                         {"regathered", "gathered tokens of {}, again"},
                                                         {"partial", "partial sums of {}"}};
  if (const auto product = products.find(first), share = shares.find(rest); product != products.end())
    if (share != shares.end())
      return BufferWords{fmt::format(fmt::runtime(share->second), product->second), Kind::communication};
  const auto group = groups().find(first);
  if (group == groups().end()) return {};
  const std::string of = group_words(group->second);
  if (rest == "reduced") return BufferWords{"reduced " + of + " gradients", Kind::gradients};
  if (rest == "scratch") return BufferWords{"buffer to reduce " + of + " gradients", Kind::communication};
  for (const auto& [op, words] : {std::pair{"unshard.fwd.scratch", "buffer to gather {} weights"},
                                  {"unshard.bwd.scratch", "buffer to gather {} weights, backward"},
                                  {"refresh.scratch", "buffer for {} weights of other replicas"},
                                  {"replicas.scratch", "buffer to reduce {} gradients over replicas"}})
    if (rest == op) return BufferWords{fmt::format(fmt::runtime(words), of), Kind::communication};
  return {};
}

}  // namespace

std::string to_string(MemoryUseKind kind) {
  static const char* const words[] = {"weights",         "gradients",     "optimizer state", "saved activations",
                                      "rows of experts", "communication", "working memory"};
  static_assert(std::size(words) == kMemoryUseKinds);
  return words[static_cast<int>(kind)];
}

std::optional<BufferWords> find_buffer_words(const std::string& name) {
  if (const auto known = buffers().find(name); known != buffers().end()) return known->second;
  return made_buffer(name);
}

BufferWords buffer_words(const std::string& name) {
  return find_buffer_words(name).value_or(BufferWords{name, MemoryUseKind::working});
}

std::string op_words(Action action, Direction direction, Group group) {
  return fmt::format("{}, {}", with_group(action, group), direction_words(direction));
}

std::optional<std::string> find_op_words(const std::string& id) {
  std::string name = id;
  const std::optional<int> microbatch = cut_number(name, "mb"), layer = cut_number(name, "L");
  const std::optional<Direction> direction = cut_direction(name);
  const std::optional<std::string> words = base_words(name);
  if (!words) return {};
  std::string where;
  if (microbatch.value_or(0) > 0) where = fmt::format("microbatch {}", *microbatch);
  if (layer) where += fmt::format("{}layer {}", where.empty() ? "" : ", ", *layer);
  return fmt::format("{}{}{}", where.empty() ? "" : where + ": ", *words,
                     direction ? fmt::format(", {}", direction_words(*direction)) : "");
}

std::string op_words(const std::string& id) { return find_op_words(id).value_or(id); }

std::string lane_words(Lane lane) {
  static const char* const words[] = {"computation",
                                      "gathers",
                                      "reductions",
                                      "between replicas",
                                      "rows of experts",
                                      "copies",
                                      "host",
                                      "tensor group",
                                      "activations sent",
                                      "activations received",
                                      "gradients sent",
                                      "gradients received",
                                      "activations sent back",
                                      "activations received back",
                                      "gradients sent back",
                                      "gradients received back"};
  static_assert(std::size(words) == kLanes);
  return words[static_cast<int>(lane)];
}

}  // namespace wt
