#include "planner/recipes/translator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "configs/base/yaml.hpp"
#include "configs/files/limits.hpp"

namespace wt {

void RecipeReading::set_model(const std::string& preset, const std::string& key, const std::string& found) {
  if (model)
    run.model = *model;
  else if (!preset.empty())
    run.model = read_model(preset);
  else
    in.fail(key, "found {}, which is no model of configs/models; give --model NAME or its config.json",
            found.empty() ? "none" : found);
}

std::int64_t RecipeReading::world(std::int64_t said, const std::string& key) const {
  if (said > 0 && gpus > 0 && said != gpus)
    in.fail(key, "found {} GPUs, and {} by --gpus; needs one number", said, gpus);
  if (said == 0 && gpus == 0)
    in.fail(key, "found none, needs the number of GPUs, which this file does not say; give --gpus N");
  return std::max(said, gpus);
}

std::int64_t RecipeReading::data_ranks(std::int64_t world, std::int64_t others, const std::string& key) const {
  if (world % others != 0)
    in.fail(key, "found {} GPUs, needs a multiple of tensor x pipeline x other degrees = {}", world, others);
  return world / others;
}

void write_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft) {
  RunSpec run = draft.run;
  for (const RecipeRow& row : rows)
    std::visit(
        [&](auto field) {
          if constexpr (std::is_same_v<decltype(field), RecipeRow::Steps>)
            draft.out.put(row.key, static_cast<std::int64_t>(*field.field(run)));
          else
            draft.out.put(row.key, *field(run));
        },
        row.field);
}

void read_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading) {
  std::string layers_key = "layers";
  for (const RecipeRow& row : rows)
    std::visit(
        [&](auto field) {
          if constexpr (std::is_same_v<decltype(field), RecipeRow::Steps>) {
            double& steps = *field.field(reading.run);
            steps = static_cast<double>(reading.in.integer(row.key, static_cast<std::int64_t>(steps), row.least));
            return;
          } else {
            auto& value = *field(reading.run);
            using Type = std::remove_reference_t<decltype(value)>;
            if (static_cast<const void*>(&value) == &reading.run.model.layers) layers_key = row.key;
            if constexpr (std::is_same_v<Type, bool>)
              value = reading.in.boolean(row.key, value);
            else if constexpr (std::is_same_v<Type, double>)
              value = reading.in.number(row.key, value);
            else
              value = static_cast<Type>(reading.in.integer(row.key, static_cast<std::int64_t>(value), row.least));
          }
        },
        row.field);
  // Checked before anything counts layers: a list of that many stages takes minutes.
  if (reading.run.model.layers > limits::kLayers)
    reading.in.fail(layers_key, "found {} layers, needs at most {}", reading.run.model.layers, limits::kLayers);
}

void write_switches(const std::vector<RecipeSwitch>& switches, RecipeDraft& draft) {
  for (const RecipeSwitch& one : switches)
    if (one.applies == nullptr || one.applies(draft.run)) draft.out.put(one.key, one.simulated);
}

void read_switches(const std::vector<RecipeSwitch>& switches, RecipeReading& reading) {
  for (const RecipeSwitch& one : switches) {
    const bool said = reading.in.has(one.key);
    const Settings::Value found = said ? reading.in.value(one.key) : one.otherwise;
    if (one.applies != nullptr && !one.applies(reading.run)) continue;
    if (found != one.simulated)
      reading.assume("{}: found {}{}, taken as {}: {}", one.key, said ? "" : "none, which means ", found.dump(),
                     one.simulated.dump(), one.what);
  }
}

void set_precision(RunSpec& run, const std::string& recipe) {
  const PrecisionRecipe& found = precision_recipe(recipe, "precision");
  run.precision = found.compute;
  run.precisions = found.precisions;
}

std::string precision_word(const RunSpec& run) {
  for (const PrecisionRecipe& recipe : precision_recipes())
    if (recipe.compute == run.precision && recipe.precisions.forward == run.precisions.forward &&
        recipe.precisions.fp32_products == run.precisions.fp32_products)
      return recipe.word;
  return run.precision == Precision::fp32 ? "fp32" : "amp_bf16";
}

std::int64_t even_microbatch(const RunSpec& run) {
  const std::int64_t sequences = run.global_batch / run.layout.data_ranks();
  std::int64_t microbatch = run.layout.microbatch;
  while (sequences % microbatch != 0) --microbatch;
  return microbatch;
}

Recompute recompute_of(const std::vector<Module>& modules) {
  Recompute out;
  for (const Module module : modules) out.add({module, {}});
  return out;
}

std::vector<Module> modules_of(const Recompute& recompute) {
  std::vector<Module> out;
  for (const Recompute::Rule& rule : recompute.rules()) out.push_back(rule.module);
  return out;
}

double twelve_digits(double value) { return std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr); }

double recipe_ratio(double smaller, double larger) { return larger == 0 ? 0 : twelve_digits(smaller / larger); }

void set_chunks(Layout& layout, std::vector<std::int64_t> chunks, std::int64_t layers) {
  layout.chunk_layers.clear();
  if (layout.pipeline * layout.virtual_stages <= layers + 2 && layout.layers_of_chunks(layers) == chunks) return;
  layout.chunk_layers = std::move(chunks);
}

namespace {

using Flat = std::map<std::string, std::string>;

void flatten(const YAML::Node& node, const std::string& prefix, Flat& out) {
  for (const auto& entry : node) {
    const std::string key = prefix + entry.first.Scalar();
    if (entry.second.IsMap() && entry.second.size() > 0)
      flatten(entry.second, key + ".", out);
    else if (entry.second.IsSequence() || entry.second.IsMap())
      out[key] = YAML::Dump(entry.second);
    else
      out[key] = entry.second.IsNull() ? "every block" : entry.second.Scalar();
  }
}

/// Adds the default values of keys that a run file only has if needed.
void add_defaults(Flat& flat) {
  for (const auto& [key, value] : {std::pair{"context_parallel_ring", "false"},
                                   {"tensor_parallel_degree", "1"},
                                   {"sequence_parallel", "false"},
                                   {"pipeline_parallel_degree", "1"},
                                   {"virtual_pipeline_degree", "1"},
                                   {"pipeline_schedule", "1f1b"},
                                   {"expert_tensor_parallel_degree", "1"},
                                   {"token_dispatcher", "alltoall"},
                                   {"cuda_graphs", "none"},
                                   {"overlap_expert_exchange", "false"},
                                   {"mixed_precision", "DEFAULT"}})
    flat.try_emplace(std::string("fsdp_config.") + key, value);
}

/// Replaces layer patterns by one value per layer, because patterns have several spellings.
void spell_out_layers(const ModelSpec& model, Flat& flat) {
  std::string experts, windows;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    experts += model.moe(layer) ? '1' : '0';
    windows += model.local_attention(layer) ? '1' : '0';
  }
  for (const char* key : {"first_k_dense", "moe_layer_freq"}) flat.erase(std::string("model.ffn_config.") + key);
  if (model.experts > 0) flat["model.ffn_config.moe_layer_freq"] = experts;
  if (model.attention.any_local()) flat["model.attn_config.sliding_window_layers"] = windows;
}

/// Removes what does not matter: the order of sets, and batch sizes if all samples are used.
void plain_evaluation(RunSpec& run) {
  EvaluationSpec& spec = run.evaluation;
  if (spec.interval >= run.steps) spec.interval = 0;  // the run's end has an evaluation in any case
  if (spec.subset_batches < 0 || spec.device_batch == run.layout.microbatch) spec.device_batch = 0;
  for (EvalSet& set : spec.sets) set.dataset.shuffle = true, set.dataset.num_canonical_nodes = 1;
}

/// A run file's values by dotted key, with recompute as one value. Without names.
Flat flat_run(RunSpec run) {
  plain_evaluation(run);
  Flat out;
  flatten(YAML::Load(run_to_yaml(run)), "", out);
  const std::string recompute = "fsdp_config.activation_checkpointing";
  std::erase_if(out, [&](const auto& entry) { return entry.first.starts_with(recompute); });
  out[recompute + "_target"] = to_string(run.layout.recompute);
  for (const char* name : {"run_name", "model.name", "train_loader.dataset.shuffle_seed"}) out.erase(name);
  if (!run.dataset.empty() && run.dataset.shuffle_seed != kDefaultShuffleSeed)
    out["train_loader.dataset.shuffle_seed"] = std::to_string(run.dataset.shuffle_seed);
  if (!run.save)
    for (const char* unused : {"save_interval", "save_num_checkpoints_to_keep"}) out.erase(unused);
  spell_out_layers(run.model, out);
  add_defaults(out);
  return out;
}

/// Equal as text, or as numbers up to the last digits, which products and quotients lose.
bool same_value(const std::string& a, const std::string& b) {
  const Settings::Value x = scalar_of_word(a), y = scalar_of_word(b);
  if (!x.is_number() || !y.is_number()) return a == b;
  constexpr double kDigits = 1e-9;
  return std::abs(x.get<double>() - y.get<double>()) <= kDigits * std::abs(x.get<double>());
}

/// Abbreviates long lists, such as a placement.
std::string short_text(const Flat& flat, const std::string& key) {
  constexpr std::size_t kShown = 60;
  const auto found = flat.find(key);
  if (found == flat.end()) return "the default";
  std::string text = found->second;
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "nothing" : text.size() > kShown ? text.substr(0, kShown) + "..." : text;
}

/// The reason for the key, or for the innermost map around it.
std::string reason_of(std::string key, const std::map<std::string, std::string>& why) {
  while (true) {
    if (const auto found = why.find(key); found != why.end()) return "; " + found->second;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) return "; no key says it";
    key.resize(dot);
  }
}

}  // namespace

std::vector<std::string> run_differences(const RunSpec& wanted, const RunSpec& found,
                                         const std::map<std::string, std::string>& why) {
  const Flat a = flat_run(wanted), b = flat_run(found);
  std::vector<std::string> out;
  const auto compare = [&](const std::string& key) {
    const std::string was = short_text(a, key), is = short_text(b, key);
    const auto in_a = a.find(key), in_b = b.find(key);
    if (in_a != a.end() && in_b != b.end() && same_value(in_a->second, in_b->second)) return;
    out.push_back(fmt::format("{}: found {}, the file says {}{}", key, was, is, reason_of(key, why)));
  };
  for (const auto& [key, value] : a) compare(key);
  for (const auto& [key, value] : b)
    if (!a.contains(key)) compare(key);
  return out;
}

}  // namespace wt
