#include "planner/recipes/translator.hpp"

#include <algorithm>
#include <cstdlib>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/yaml.hpp"

namespace wt {

void RecipeReading::set_model(const std::string& preset, const std::string& key, const std::string& found) {
  if (model)
    run.model = *model;
  else if (!preset.empty())
    run.model = read_model(preset);
  else
    in.fail(key, fmt::format("found {}, which is no model of configs/models; give --model NAME or its config.json",
                             found.empty() ? "none" : found));
}

std::int64_t RecipeReading::world(std::int64_t said, const std::string& key) const {
  if (said > 0 && gpus > 0 && said != gpus)
    in.fail(key, fmt::format("found {} GPUs, and {} by --gpus; needs one number", said, gpus));
  if (said == 0 && gpus == 0)
    in.fail(key, "found none, needs the number of GPUs, which this file does not say; give --gpus N");
  return std::max(said, gpus);
}

std::int64_t RecipeReading::data_ranks(std::int64_t world, std::int64_t others, const std::string& key) const {
  if (world % others != 0)
    in.fail(key,
            fmt::format("found {} GPUs, needs a multiple of tensor x pipeline x other degrees = {}", world, others));
  return world / others;
}

void write_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft) {
  RunSpec run = draft.run;
  for (const RecipeRow& row : rows) std::visit([&](auto field) { draft.out.put(row.key, *field(run)); }, row.field);
}

void read_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading) {
  for (const RecipeRow& row : rows)
    std::visit(
        [&](auto field) {
          auto& value = *field(reading.run);
          using Type = std::remove_reference_t<decltype(value)>;
          if constexpr (std::is_same_v<Type, bool>)
            value = reading.in.boolean(row.key, value);
          else if constexpr (std::is_same_v<Type, double>)
            value = reading.in.number(row.key, value);
          else
            value = static_cast<Type>(reading.in.integer(row.key, static_cast<std::int64_t>(value), row.least));
        },
        row.field);
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

double recipe_ratio(double smaller, double larger) {
  if (larger == 0) return 0;
  return std::strtod(fmt::format("{:.12g}", smaller / larger).c_str(), nullptr);
}

std::pair<std::int64_t, std::int64_t> nodes_and_gpus(std::int64_t world) {
  constexpr std::int64_t kOfANode = 8;
  return world % kOfANode == 0 ? std::pair{world / kOfANode, kOfANode} : std::pair{std::int64_t{1}, world};
}

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
    if (entry.second.IsMap())
      flatten(entry.second, key + ".", out);
    else if (entry.second.IsSequence())
      out[key] = YAML::Dump(entry.second);
    else
      out[key] = entry.second.IsNull() ? "every block" : entry.second.Scalar();
  }
}

Flat flat_run(const RunSpec& run) {
  Flat out;
  flatten(YAML::Load(run_to_yaml(run)), "", out);
  out.erase("run_name");
  return out;
}

/// Long lists, such as a placement, by their beginning.
std::string short_text(const Flat& flat, const std::string& key) {
  constexpr std::size_t kShown = 60;
  const auto found = flat.find(key);
  if (found == flat.end()) return "the default";
  std::string text = found->second;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "nothing" : text.size() > kShown ? text.substr(0, kShown) + "..." : text;
}

/// Of the key itself, or of the nearest map around it.
std::string reason_of(std::string key, const std::map<std::string, std::string>& why) {
  while (true) {
    if (const auto found = why.find(key); found != why.end()) return "; " + found->second;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) return "";
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
    if (in_a != a.end() && in_b != b.end() && in_a->second == in_b->second) return;
    out.push_back(fmt::format("{}: found {}, the file says {}{}", key, was, is, reason_of(key, why)));
  };
  for (const auto& [key, value] : a) compare(key);
  for (const auto& [key, value] : b)
    if (!a.contains(key)) compare(key);
  return out;
}

}  // namespace wt
