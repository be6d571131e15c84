#include "reports/render/program_words.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>

namespace wt {
namespace {

const char* direction_words(Direction direction) {
  static const char* const words[] = {"forward", "recomputed", "backward"};
  return words[static_cast<int>(direction)];
}

struct ActionWords {
  const char* words;          ///< {} is the place of the group's name
  bool once = false;          ///< once a step or once a microbatch, whatever the pass
  Group usual = Group::none;  ///< the group that the words do not mention
};
/// In the order of Action.
constexpr ActionWords kActions[] = {{"load the batch", true},
                                    {"gather {}weights"},
                                    {"token embedding", false, Group::embedding},
                                    {"projections to queries, keys and values", false, Group::dense},
                                    {"gather keys and values", false, Group::dense},
                                    {"attention and router", false, Group::dense},
                                    {"dense FFN", false, Group::dense},
                                    {"sum expert loads of a sequence"},
                                    {"exchange row counts"},
                                    {"send rows to experts"},
                                    {"experts", false, Group::expert},
                                    {"return rows from experts"},
                                    {"combine expert outputs"},
                                    {"output projection and loss", false, Group::head},
                                    {"reduce {}gradients", true},
                                    {"exchange gradients of expert copies", false, Group::expert},
                                    {"add gradients of expert copies", false, Group::expert},
                                    {"add {}gradients to the step's", true},
                                    {"reduce {}gradients over replicas", true},
                                    {"{}weights from other replicas", true},
                                    {"sum expert loads", true},
                                    {"update router biases", true, Group::router_bias},
                                    {"gradient norm", true},
                                    {"sum the gradient norm", true},
                                    {"optimizer", true},
                                    {"orthogonalize {}momenta (Muon)", true},
                                    {"optimizer on the host", true},
                                    {"activations to the host and back"},
                                    {"layer inputs to the host and back"},
                                    {"sum the loss", true},
                                    {"exchange within the tensor group"},
                                    {"pass between pipeline stages"},
                                    {"restore {}state from a checkpoint", true}};
static_assert(std::size(kActions) == static_cast<std::size_t>(Action::restore) + 1);

const ActionWords& words_of(Action action) { return kActions[static_cast<std::size_t>(action)]; }

std::string with_group(Action action, Group group) {
  const std::string words = words_of(action).words, of = group_words(group);
  if (const std::size_t at = words.find("{}"); at != std::string::npos)
    return words.substr(0, at) + (of.empty() ? "" : of + " ") + words.substr(at + 2);
  return group == Group::none || group == words_of(action).usual ? words : fmt::format("{} ({})", words, of);
}

/// Names of ops that follow their group: "dense.unshard".
const std::map<std::string, Action>& group_ops() {
  static const std::map<std::string, Action> known{
      {"unshard", Action::unshard},         {"reduce", Action::reduce_gradients},
      {"accumulate", Action::accumulate},   {"replicas", Action::reduce_replicas},
      {"refresh", Action::refresh},         {"restore.master", Action::restore},
      {"restore.exp_avg", Action::restore}, {"restore.exp_avg_sq", Action::restore}};
  return known;
}

/// Names of all other ops, without their direction.
const std::map<std::string, std::string>& other_ops() {
  static const std::map<std::string, std::string> known{
      {"data", words_of(Action::load_batch).words},
      {"embed", words_of(Action::embed).words},
      {"project", words_of(Action::project).words},
      {"attn", words_of(Action::attention).words},
      {"pre", "norm and projections before attention"},
      {"mix", "sum around attention"},
      {"core", "attention's core"},
      {"up", "projections from latent attention"},
      {"router", "router"},
      {"ffn", words_of(Action::ffn).words},
      {"ffn.add", "add the dense FFN's output"},
      {"experts", words_of(Action::experts).words},
      {"activation", "activation of the experts"},
      {"combine", words_of(Action::combine).words},
      {"weights", "gradients of weights"},
      {"balance", words_of(Action::reduce_balance).words},
      {"counts", words_of(Action::exchange_counts).words},
      {"dispatch", words_of(Action::dispatch).words},
      {"collect", words_of(Action::collect).words},
      {"copies.exchange", words_of(Action::exchange_copies).words},
      {"copies.sum", words_of(Action::add_copies).words},
      {"kv.gather", words_of(Action::gather_kv).words},
      {"kv.reduce", "sum gradients of keys and values"},
      {"kv.ring", "pass keys and values around"},
      {"head", words_of(Action::head_loss).words},
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
      {"router_loads.reduce", words_of(Action::reduce_loads).words},
      {"router_bias", words_of(Action::update_bias).words},
      {"norm", words_of(Action::gradient_norm).words},
      {"norm.reduce", words_of(Action::reduce_norm).words},
      {"norm.stages", "sum the gradient norm over stages"},
      {"momentum", "momenta (Muon)"},
      {"muon.dense", with_group(Action::orthogonalize, Group::dense)},
      {"muon.expert", with_group(Action::orthogonalize, Group::expert)},
      {"muon.dense.gather", "gather orthogonalized attention and dense momenta"},
      {"muon.expert.gather", "gather orthogonalized expert momenta"},
      {"muon.dense.replicas", "attention and dense momenta from other replicas"},
      {"muon.expert.replicas", "expert momenta from other replicas"},
      {"optimizer", words_of(Action::optimizer).words},
      {"offload.gradients", "gradients to the host"},
      {"offload.update", words_of(Action::offload).words},
      {"offload.weights", "weights from the host"},
      {"activations.out", "activations to the host"},
      {"activations.back", "activations from the host"},
      {"input.out", "layer input to the host"},
      {"input.back", "layer input from the host"},
      {"loss.reduce", words_of(Action::reduce_loss).words}};
  return known;
}

std::optional<std::string> base_words(std::string name) {
  if (const auto other = other_ops().find(name); other != other_ops().end()) return other->second;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {};
  const std::optional<Group> group = group_named(name.substr(0, dot));
  std::string op = name.substr(dot + 1);
  const bool sum = op.ends_with(".sum");  // summation of the replicas' contributions
  if (sum) op.resize(op.size() - 4);
  const auto action = group_ops().find(op);
  if (!group || action == group_ops().end()) return {};
  return sum ? "sum of " + with_group(Action::accumulate, *group) : with_group(action->second, *group);
}

/// Removes a leading "mb3." or "L3."; returns the number, or none.
std::optional<int> cut_number(std::string& id, const std::string& mark) {
  if (!id.starts_with(mark)) return {};
  const std::size_t dot = id.find('.'), from = mark.size();
  if (dot == std::string::npos || dot == from || id.find_first_not_of("0123456789", from) != dot) return {};
  const int number = std::stoi(id.substr(from, dot - from));
  id.erase(0, dot + 1);
  return number;
}

/// Removes a trailing ".fwd", ".rec" or ".bwd".
std::optional<Direction> cut_direction(std::string& name) {
  for (const auto& [suffix, direction] :
       {std::pair{".fwd", Direction::forward}, {".rec", Direction::recompute}, {".bwd", Direction::backward}})
    if (name.ends_with(suffix)) {
      name.resize(name.size() - 4);
      return direction;
    }
  return {};
}

}  // namespace

std::string group_words(Group group) {
  static const char* const words[] = {"",       "embedding", "attention and dense", "expert", "output", "router bias",
                                      "adapter"};
  static_assert(std::size(words) == static_cast<std::size_t>(Group::adapter) + 1);
  return words[static_cast<int>(group)];
}

std::optional<Group> group_named(const std::string& name) {
  for (const Group group :
       {Group::embedding, Group::dense, Group::expert, Group::head, Group::router_bias, Group::adapter})
    if (to_string(group) == name) return group;
  return {};
}

std::string op_words(Action action, Direction direction, Group group) {
  const std::string words = with_group(action, group);
  return words_of(action).once ? words : fmt::format("{}, {}", words, direction_words(direction));
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
