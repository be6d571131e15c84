// Evaluation and trackers of an LLM Foundry recipe: eval_loader, loggers and related keys.

#include "configs/base/yaml.hpp"
#include "planner/recipes/llm_foundry.hpp"

namespace wt {
namespace {

/// LLM Foundry's label for the loss of a single loader (metrics/eval/LanguageCrossEntropy).
constexpr const char* kOnlyLabel = "eval";
constexpr const char* kAtTheEnd = "1dur";  // evaluate at the end only
constexpr const char* kOnlyLoader = "eval_loader.";

/// "eval_loader.", or "eval_loader[0]." and following. A list may also be called eval_loaders.
std::vector<std::string> eval_loaders(const RecipeReading& reading) {
  std::vector<std::string> out;
  if (reading.in.has_under("eval_loader")) out.emplace_back(kOnlyLoader);
  for (const char* list : {"eval_loader", "eval_loaders"})
    for (std::size_t i = 0; reading.in.has_under(fmt::format("{}[{}]", list, i)); ++i)
      out.push_back(fmt::format("{}[{}].", list, i));
  if (reading.in.has_under("eval_loaders[0]") && out.front() != "eval_loaders[0].")
    reading.in.fail("eval_loaders", "found eval_loader, too; needs one of them");
  return out;
}

void read_eval_set(RecipeReading& reading, const std::string& loader) {
  std::vector<EvalSet>& sets = reading.run.evaluation.sets;
  EvalSet set;
  set.dataset = read_foundry_dataset(reading, loader);
  if (set.dataset.empty()) return;  // not an MDS folder: its keys are ignored by name
  set.dataset.shuffle = true,
  set.dataset.num_canonical_nodes = 1;  // every sample counts once, so order does not matter
  const std::string key = loader + "label";
  if (loader == kOnlyLoader) {
    set.label = kOnlyLabel;  // its own label is ignored
  } else {
    if (!reading.in.has(key))
      reading.in.fail(key, "found none, needs one: LLM Foundry takes a list of loaders with labels alone");
    set.label = reading.in.text(key, "");
  }
  check_eval_set(sets, set, reading.in.origin() + ": " + key);
  sets.push_back(std::move(set));
}

}  // namespace

void write_foundry_evaluation(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  const EvaluationSpec& spec = run.evaluation;
  Settings& out = draft.out;
  out.put("device_eval_batch_size", spec.device_batch > 0 ? spec.device_batch : even_microbatch(run));
  if (spec.sets.empty()) {
    out.put("eval_interval", 0);
    return;
  }
  out.put("eval_interval", spec.interval > 0 ? fmt::format("{}ba", spec.interval) : kAtTheEnd);
  out.put("eval_first", spec.first);
  out.put("eval_subset_num_batches", spec.subset_batches);
  const bool alone = spec.sets.size() == 1 && spec.sets.front().label == kOnlyLabel;
  for (std::size_t i = 0; i < spec.sets.size(); ++i) {
    const std::string loader = alone ? kOnlyLoader : fmt::format("eval_loader[{}].", i);
    if (!alone) out.put(loader + "label", spec.sets[i].label);
    out.put(loader + "name", spec.sets[i].dataset.finetuning ? "finetuning" : "text");
    write_foundry_dataset(draft, loader, spec.sets[i].dataset);
    out.put(loader + "drop_last", false);
    out.put(loader + "num_workers", 8);
  }
}

void read_foundry_evaluation(RecipeReading& reading, const FoundryClock& clock) {
  EvaluationSpec& spec = reading.run.evaluation;
  for (const std::string& loader : eval_loaders(reading)) read_eval_set(reading, loader);
  if (spec.sets.empty()) return;
  if (!reading.in.has("eval_interval"))
    reading.assume("eval_interval: found none, which means every epoch; the run is evaluated at its end");
  else if (reading.in.text("eval_interval", "") != kAtTheEnd)
    spec.interval = clock.whole_batches("eval_interval", 0);
  spec.first = reading.in.boolean("eval_first", false);
  if (reading.in.has("device_eval_batch_size")) spec.device_batch = reading.in.integer("device_eval_batch_size", 1, 1);
  const bool usual = spec.device_batch == reading.run.layout.microbatch && !reading.run.microbatch_auto;
  if (usual) spec.device_batch = 0;
  const Settings::Value batches = reading.in.value("eval_subset_num_batches");
  spec.subset_batches = batches.is_number_integer() ? batches.get<std::int64_t>() : -1;
}

void write_foundry_loggers(RecipeDraft& draft) {
  LoggersSpec loggers = draft.run.loggers;
  loggers.prometheus.reset();
  if (!loggers.any()) return;
  YAML::Emitter said;
  said << YAML::BeginMap;
  loggers_to_yaml(loggers, said);
  said << YAML::EndMap;
  const Settings keys = settings_from_yaml(said.c_str(), "loggers");
  for (const Settings::Entry& entry : keys.entries()) draft.out.put(entry.key, entry.value);
}

void read_foundry_loggers(RecipeReading& reading) {
  const auto known = [](const std::string& key) {
    return key == "mlflow.tracking_uri" || key == "mlflow.experiment_name" || key == "mlflow.run_name" ||
           key.starts_with("mlflow.tags.") || key == "tensorboard.log_dir";
  };
  const bool mlflow = reading.in.mentions("loggers.mlflow") || reading.in.has_under("loggers.mlflow");
  const bool tensorboard = reading.in.mentions("loggers.tensorboard") || reading.in.has_under("loggers.tensorboard");
  const Settings keys = take_settings(reading, "loggers.", known);
  for (const char* logger : {"loggers.mlflow", "loggers.tensorboard"})
    if (reading.in.mentions(logger)) reading.in.mark_read(logger);
  if (!keys.entries().empty()) {
    Settings all(reading.in.origin());
    for (const Settings::Entry& entry : keys.entries()) all.put("loggers." + entry.key, entry.value);
    YamlMap map = YamlMap::from_text(settings_to_yaml(all), reading.in.origin());
    reading.run.loggers = read_loggers(map);
  }
  if (mlflow && !reading.run.loggers.mlflow) reading.run.loggers.mlflow.emplace();
  if (tensorboard && !reading.run.loggers.tensorboard) reading.run.loggers.tensorboard.emplace();
}

}  // namespace wt
