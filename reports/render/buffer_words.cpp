// Words for the buffers of a step program.
#include <fmt/format.h>

#include <iterator>
#include <map>

#include "reports/render/program_words.hpp"

namespace wt {
namespace {

using Kind = MemoryUseKind;

const std::map<std::string, BufferWords>& buffers() {
  static const std::map<std::string, BufferWords> known{
      {"masters", {"fp32 copy of the weights", Kind::optimizer}},
      {"moments", {"optimizer moments", Kind::optimizer}},
      {"muon.dense.owned", {"attention and dense momenta of this rank (Muon)", Kind::optimizer}},
      {"muon.expert.owned", {"expert momenta of this rank (Muon)", Kind::optimizer}},
      {"weights", {"weights", Kind::weights}},
      {"weight shards", {"weight shards", Kind::weights}},
      {"adapters", {"adapters", Kind::weights}},
      {"adapter gradients", {"gradients of adapters", Kind::gradients}},
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

/// Words for names of the form GROUP.ACTION or PRODUCT.ACTION.
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
  const std::optional<Group> group = group_named(first);
  if (!group) return {};
  const std::string of = group_words(*group);
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

}  // namespace wt
