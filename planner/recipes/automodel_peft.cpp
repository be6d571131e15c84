// Adapters of NeMo Automodel 0.7.0: components/_peft/lora.py, and how its patterns match modules
// (components/_peft/module_matcher.py).
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <utility>

#include "configs/files/weight_names.hpp"
#include "planner/recipes/automodel.hpp"

namespace wt {
namespace {

/// A linear layer of a block that can have an adapter there. Only those of attention are simulated.
struct Linear {
  std::string module;     ///< without the layer's number: "self_attn.q_proj"
  std::int64_t elements;  ///< of an adapter of rank 1 in all layers
  bool attention;
};

std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::vector<Linear> linear_layers(const ModelSpec& model) {
  std::vector<Linear> out;
  if (model.attention.mla.on() || model.linear.on()) return out;
  const WeightNames names(model, family_of(model));
  const std::string ending = ".weight";
  for (const char* part : {"qkv", "output"})
    for (const WeightPiece& piece : names.pieces(fmt::format("layers.0.attention.{}.weight", part))) {
      const std::vector<std::int64_t>& shape = names.shapes().at(piece.tensor);
      const std::size_t begin = piece.tensor.find(".0.") + 3;
      out.push_back({piece.tensor.substr(begin, piece.tensor.size() - ending.size() - begin),
                     (shape.at(0) + shape.at(1)) * model.layers, true});
    }
  std::int64_t wide = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (const std::int64_t width = model.ffn_width(layer); width > 0) wide += width + model.d_model;
  for (const char* module : {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    if (wide > 0 && (model.gated() || std::string(module) != "mlp.gate_proj")) out.push_back({module, wide, false});
  return out;
}

/// "*" stands for any text, as there. A pattern without one is a module's last name.
bool matches(const std::string& pattern, const std::string& module) {
  if (pattern == last_name(module)) return true;
  std::string expression;
  for (std::size_t at = 0; at < pattern.size(); ++at)
    if (pattern[at] == '*')
      expression += ".*";
    else if (std::string(".^$|()[]{}?+\\").find(pattern[at]) != std::string::npos)
      expression += std::string("\\") + pattern[at];
    else
      expression += pattern[at];
  return std::regex_match("model.layers.0." + module, std::regex(expression));
}

bool any_matches(const std::vector<std::string>& patterns, const std::string& module) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, module); });
}

void check_patterns(const RecipeReading& reading, const std::vector<std::string>& patterns) {
  constexpr std::size_t kLongest = 200;  // each star may be tried at every letter
  for (const std::string& pattern : patterns)
    if (pattern.size() > kLongest || std::ranges::count(pattern, '*') > 4)
      reading.in.fail("peft.target_modules", "found a pattern of {} letters, needs one of at most {} with 4 stars",
                      pattern.size(), kLongest);
    else if (const std::size_t at = pattern.find("layers.");
             at != std::string::npos && at + 7 < pattern.size() &&
             std::isdigit(static_cast<unsigned char>(pattern[at + 7])) != 0)
      reading.in.fail("peft.target_modules", "found {}, which names single layers; needs names for all layers",
                      pattern);
}

/// What other sections say and adapters are not simulated with.
void fit_to_adapters(RecipeReading& reading) {
  RunSpec& run = reading.run;
  Layout& l = run.layout;
  if (l.tensor > 1)
    reading.in.fail("distributed.tp_size", "found {} beside peft, needs 1: adapters are not cut over tensor ranks",
                    l.tensor);
  if (l.recompute.any() && l.recompute != Recompute::block) {
    reading.assume("distributed.activation_checkpointing: found {} beside peft, taken as true", to_string(l.recompute));
    l.recompute = Recompute::block;
  }
  if (!plain_precisions(run.precision, run.precisions)) {
    const double more = 2.0 * static_cast<double>(run.model.total_parameters()) / static_cast<double>(l.shard) / 0x1p30;
    reading.assume("model.torch_dtype: frozen weights are kept in fp32 here: up to {:.1f} GiB more a GPU than in bf16",
                   more);
    set_precision(run, run.precision == Precision::fp32 ? "fp32" : "amp_bf16");
  }
  if (std::exchange(run.pure_reduction, false))
    reading.assume("distributed.mp_policy.reduce_dtype: gradients of adapters are summed in fp32");
}

}  // namespace

void read_automodel_peft(RecipeReading& reading) {
  if (!reading.in.has_under("peft")) return;
  std::vector<std::string> wanted = reading.in.texts("peft.target_modules");
  const std::vector<std::string> excluded = reading.in.texts("peft.exclude_modules");
  const bool all = reading.in.boolean("peft.match_all_linear", false) || (wanted.empty() && !excluded.empty());
  if (wanted.empty() && !all) wanted = {"*_proj"};
  check_patterns(reading, wanted);
  check_patterns(reading, excluded);
  LoraSpec lora{
      .rank = reading.in.integer("peft.dim", 8, 1), .alpha = reading.in.number("peft.alpha", 32), .target_modules = {}};
  std::vector<std::string> left_out;
  std::int64_t missing = 0;
  for (const Linear& each : linear_layers(reading.run.model)) {
    if (all ? any_matches(excluded, each.module) : !any_matches(wanted, each.module)) continue;
    if (each.attention) {
      lora.target_modules.push_back(last_name(each.module));
    } else {
      left_out.push_back(last_name(each.module));
      missing += lora.rank * each.elements;
    }
  }
  if (lora.target_modules.empty())
    reading.in.fail(
        "peft.target_modules",
        "found none of attention's projections that adapters are simulated with; needs some, such as q_proj, "
        "in a model without latent attention and linear mixers");
  if (!left_out.empty())
    reading.assume("peft.target_modules: adapters of {} are left out: {:.1f} M trained weights, {:.1f} GiB of state",
                   fmt::join(left_out, ", "), static_cast<double>(missing) / 1e6,
                   16.0 * static_cast<double>(missing) / 0x1p30);
  if (reading.run.model.experts > 0)
    reading.assume("peft.target_modules: adapters of experts, if any match, are left out");
  reading.run.lora = lora;
  fit_to_adapters(reading);
}

}  // namespace wt
