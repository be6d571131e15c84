// Reads the free-text columns of a table of training runs.
#include <fmt/format.h>

#include <array>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "sim/measurements/run_line.hpp"
#include "sim/measurements/sentence.hpp"

namespace wt {
namespace {

template <class Value>
using Phrases = std::vector<std::pair<const char*, Value>>;

constexpr const char* kUnsaid = "not (?:stated|said|known)|none stated|unknown|unspecified";

void note_unknown(const Sentence& said, const char* column, RunRow& row) {
  if (const std::string left = said.not_understood(); !left.empty())
    row.assumed.push_back(fmt::format("not understood: {} ({})", left, column));
}

[[noreturn]] void refuse_both(const char* column, const std::string& text, const std::string& one,
                              const std::string& other) {
  throw_usage("{}: found '{}', which says both {} and {}; a row has one of them", column, text, one, other);
}

/// The value of the only phrase in the text, "" if it has none. Two different values are a contradiction.
std::string one_meaning(Sentence& said, const char* column, const std::string& text,
                        const Phrases<const char*>& phrases) {
  const std::vector<const char*> found = said.take_all(phrases);
  if (found.size() > 1) refuse_both(column, text, found[0], found[1]);
  return found.empty() ? "" : found[0];
}

/// A column with a few known words. `allowed` lists these for the error.
std::string word_of(const RunLine& line, const char* column, const Phrases<const char*>& phrases, const char* allowed,
                    RunRow& row) {
  const std::string& text = line.text(column);
  Sentence said(text);
  const bool unsaid = said.take(kUnsaid);
  std::string found = one_meaning(said, column, text, phrases);
  if (found.empty() && !unsaid && !text.empty())
    throw_usage("{}: found '{}', allowed {}, or nothing", column, text, allowed);
  note_unknown(said, column, row);
  return found;
}

const Phrases<const char*>& dispatcher_phrases() {
  static const Phrases<const char*> phrases = {
      {"deepep-uccl|(?:deepep (?:over|on|with) )?uccl(?:[ -]?ep)?", "deepep-uccl"},
      {"deepep(?: (?:over|on|with) nvshmem)?", "deepep"},
      {"hybrid-?ep", "hybridep"},
      {"(?:nccl )?all[ -]?gather|ring", "allgather"},
      {"(?:nccl |hand-written )?(?:all[ -]?to[ -]?all|all2all|a2a)", "alltoall"}};
  return phrases;
}

Dispatcher dispatcher_of(const std::string& name) {
  return name == "deepep"        ? Dispatcher::deepep
         : name == "deepep-uccl" ? Dispatcher::uccl
         : name == "hybridep"    ? Dispatcher::hybridep
         : name == "allgather"   ? Dispatcher::allgather
                                 : Dispatcher::alltoall;
}

/// Routing of a MoE layer: how rows are distributed over experts, and which dispatcher sends them.
struct RoutingWords {
  std::string dispatcher;  ///< empty = not said
  bool balanced = false, natural = false, dropless = false, alone = false, recipe = false, padded = false;
  double capacity = 0;
};

RoutingWords routing_words(const std::string& text, RunRow& row) {
  constexpr const char* kColumn = "moe_routing";
  Sentence said(text);
  RoutingWords out;
  if (said.take("(?:experts )?(?:run )?in a python loop|expert loop"))
    throw_usage("experts one by one in Python are not modelled");
  const bool unsaid = said.take(kUnsaid);
  out.alone = said.take("no (?:expert parallelism|ep)");
  out.dispatcher = one_meaning(said, kColumn, text, dispatcher_phrases());
  out.recipe = said.take("recipe(?:'s)? default");
  out.dropless = said.take("dropless|no (?:token )?drop(?:s|ping)?");
  out.balanced = said.take("(?:moe_router_)?forced?[ _-](?:load[ _-])?balanc(?:ed?|ing)|fake balanced gate");
  out.natural = said.take("natural(?: routing)?");
  if (const auto factor = said.take_value(R"(capacity(?: factor)?[ =:]+(\d+(?:\.\d+)?))"))
    out.capacity = std::stod(*factor);
  const bool known =
      unsaid || out.alone || !out.dispatcher.empty() || out.dropless || out.balanced || out.natural || out.capacity > 0;
  if (!known && !text.empty())
    throw_usage("{}: found '{}', allowed forced_balance, natural, 'capacity 1.25', 'capacity 1.25 padded', or nothing",
                kColumn, text);
  if (out.capacity > 0) said.take("token[ _-]drop(?:s|ping)?");
  out.padded = out.capacity > 0 && said.take("padded|filled");
  said.take("aux(?:iliary)?[ -]loss(?:es)?");  // a trained model has one: no information
  said.take("dispatcher|router|routing|default");
  if (out.balanced && out.natural) refuse_both(kColumn, text, "forced_balance", "natural");
  if (out.dropless && out.capacity > 0) refuse_both(kColumn, text, "dropless", "a capacity");
  if (out.alone && !out.dispatcher.empty()) refuse_both(kColumn, text, "no expert parallelism", out.dispatcher);
  note_unknown(said, kColumn, row);
  return out;
}

enum class Recomputed { nothing, blocks, core, products, every_second, some };

std::string to_string(Recomputed what) {
  static constexpr std::array kNames = {"none", "full", "selective", "per-op", "every-n layer", "some blocks"};
  return kNames[static_cast<std::size_t>(what)];
}

/// Megatron-Core's recompute_modules: "layernorm+moe_act".
void recompute_modules(const std::string& list, const std::string& text, RunRow& row) {
  std::string known, unknown;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t from = list.find_first_not_of(" ,+;", at), to = list.find_first_of(",+;", from);
    if (from == std::string::npos) break;
    std::string module = list.substr(from, to == std::string::npos ? to : to - from);
    module.erase(module.find_last_not_of(' ') + 1);
    try {
      recompute_from_string(module);
      known += (known.empty() ? "" : "+") + module;
    } catch (const Error&) {
      unknown += (unknown.empty() ? "" : ", ") + module;
    }
    at = to == std::string::npos ? list.size() : to;
  }
  if (known.empty())
    throw_usage("act_ckpt: found '{}', of whose modules none is known; allowed are those of recompute", text);
  row.recompute = recompute_from_string(known);
  if (!unknown.empty()) row.assumed.push_back(fmt::format("not understood: {} (act_ckpt)", unknown));
}

}  // namespace

void fill_experts(const RunLine& line, RunRow& row) {
  const std::string dispatcher = word_of(line, "dispatcher", dispatcher_phrases(),
                                         "alltoall, allgather, deepep, deepep-uccl, hybridep", row),
                    graphs = word_of(line, "cuda_graphs",
                                     {{"full(?: cuda[ -]?graphs?)?", "full"},
                                      {"partial(?: cuda[ -]?graphs?)?", "partial"},
                                      {"none|no(?: cuda[ -]?graphs?)?|off", "none"}},
                                     "none, partial, full", row),
                    overlap = word_of(
                        line, "ep_overlap",
                        {{"1|yes|true|on|(?:ep )?overlap on", "1"}, {"0|no|false|off|none|(?:ep )?overlap off", "0"}},
                        "0, 1", row);
  const RoutingWords said = routing_words(line.text("moe_routing"), row);
  if (!dispatcher.empty() && !said.dispatcher.empty() && dispatcher != said.dispatcher)
    throw_usage("dispatcher: found '{}', and moe_routing says {}; a row has one of them", line.text("dispatcher"),
                said.dispatcher);
  if (said.alone && row.ep > 1)
    throw_usage("moe_routing: found '{}', and ep says {}; a row has one of them", line.text("moe_routing"), row.ep);
  row.dispatcher = dispatcher_of(dispatcher.empty() ? said.dispatcher : dispatcher);
  row.cuda_graphs = graphs == "full" ? CudaGraphs::full : graphs == "partial" ? CudaGraphs::partial : CudaGraphs::none;
  row.exchange_overlapped = overlap == "1";
  row.capacity_factor = said.capacity;
  if (said.padded) row.model.router.capacity_factor = said.capacity, row.model.router.padded = true;
  const bool cut = said.capacity > 0 && said.capacity <= 1;  // no expert gets more than the balanced number
  row.routing = said.balanced || cut                ? RunRow::Routing::balanced
                : said.natural || said.capacity > 0 ? RunRow::Routing::natural
                                                    : RunRow::Routing::unsaid;
  if (said.recipe) row.assumed.emplace_back("routing as the recipe's default");
}

void fill_recompute(const RunLine& line, RunRow& row) {
  const std::string& text = line.text("act_ckpt");
  row.recompute_text = text;
  const std::string begin = "selective:";
  if (text.starts_with(begin)) return recompute_modules(text.substr(begin.size()), text, row);
  static const Phrases<Recomputed> kPhrases = {
      {R"(selective \(per-op\)?)", Recomputed::products},
      {R"(selective \(every-n layers?\)?)", Recomputed::every_second},
      {R"(selective \(some blocks[^)]*\)?)", Recomputed::some},
      {"selective|attention core|core attention|core_attn", Recomputed::core},
      {"full(?: (?:activation )?(?:checkpointing|recompute))?|true|yes|1", Recomputed::blocks},
      {"none|no(?: (?:activation checkpointing|recompute))?|false|off|0", Recomputed::nothing}};
  Sentence said(text);
  const bool unsaid = said.take(kUnsaid);
  said.take("not enabled[^;,()]*");
  const std::vector<Recomputed> found = said.take_all(kPhrases);
  if (found.size() > 1) refuse_both("act_ckpt", text, to_string(found[0]), to_string(found[1]));
  if (found.empty() && !unsaid && !text.empty())
    throw_usage(
        "act_ckpt: found '{}', allowed none, full, selective, selective: with modules of recompute between commas",
        text);
  said.take("sequence parallel|recompute|activation checkpointing");
  note_unknown(said, "act_ckpt", row);
  if (found.empty()) {
    row.recompute_text.clear();  // the cell states that it is unknown
    return;
  }
  switch (found[0]) {
    case Recomputed::nothing:
      break;
    case Recomputed::blocks:
      row.recompute = Recompute::block;
      break;
    case Recomputed::core:
      row.recompute = recompute_from_string("core");
      break;
    case Recomputed::products:
      row.recompute = recompute_from_string("products");
      break;
    case Recomputed::every_second:
      row.recompute = recompute_from_string("block:every-2");  // ac_freq is 2 if no config sets it
      row.assumed.emplace_back("every second block recomputed, as torchtitan does");
      break;
    case Recomputed::some:
      throw_usage("act_ckpt: found '{}', how many blocks is not said", text);
  }
}

std::string precision_word(const RunLine& line, RunRow& row) {
  const std::string& text = line.text("precision");
  Sentence said(text);
  const bool unsaid = said.take(kUnsaid);
  // Uses the first of these words that the text has.
  static const Phrases<const char*> kWords = {{"(?:amp_)?mxfp8", "amp_mxfp8"},
                                              {"(?:amp_)?nvfp4", "amp_nvfp4"},
                                              {"(?:amp_fp8_)?blockwise", "amp_fp8_blockwise"},
                                              {"(?:amp_)?fp8(?: hybrid)?", "amp_fp8"},
                                              {"(?:amp_)?fp16", "amp_fp16"},
                                              {"(?:amp_)?bf16", "amp_bf16"},
                                              {"tf32", "tf32"},
                                              {"fp32", "fp32"}};
  const std::vector<const char*> found = said.take_all(kWords);
  if (found.empty() && (unsaid || text.empty())) {
    row.assumed.emplace_back("16-bit products");
    return line.has("gpu", "V100") ? "amp_fp16" : "amp_bf16";
  }
  said.take("float8(?: linear)?|hybrid|grad accum|products|compute|parameters|optimizer|default|pure|mixed|precision");
  note_unknown(said, "precision", row);
  return found.empty() ? lower(text) : found[0];
}

void note_unknown_sharding(const RunLine& line, RunRow& row) {
  Sentence said(line.text("fsdp_mode"));
  std::vector<std::string> stages;
  for (const char* stage : {"0", "1", "2", "3"})
    if (said.take(("zero[- ]?(?:stage ?)?" + std::string(stage)).c_str()))
      stages.push_back("ZeRO-" + std::string(stage));
  if (stages.size() > 1) refuse_both("fsdp_mode", line.text("fsdp_mode"), stages[0], stages[1]);
  said.take(
      "fsdp[12]?|hsdp|ddp|full_shard|shard_grad_op|no_shard|hybrid(?:_shard)?|distributed optimizer|none|no|false|0");
  said.take(R"(optimizer shard group(?: \d+| all dp ranks)?|group|dp replicas|maxtext|jax|deepspeed|simplefsdp|cp)");
  note_unknown(said, "fsdp_mode", row);
}

}  // namespace wt
