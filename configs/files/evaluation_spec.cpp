#include "configs/files/evaluation_spec.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

constexpr const char* kLoader = "eval_loader";

EvalSet read_set(YamlMap loader, const std::vector<EvalSet>& before) {
  EvalSet set;
  set.label = loader.text("label", before.empty() ? "eval" : fmt::format("eval{}", before.size() + 1));
  YamlMap dataset = loader.map("dataset");
  set.dataset = read_dataset(dataset, is_finetuning_loader(loader));
  if (set.dataset.packs())
    dataset.fail("packing_ratio",
                 "found {} in the evaluation '{}', needs none: every example is evaluated in a sequence of its own",
                 set.dataset.finetuning->packing_ratio, set.label);
  check_eval_set(before, set, loader.where("label"));
  loader.finish();
  return set;
}

}  // namespace

bool EvaluationSpec::due(std::int64_t step, std::int64_t steps) const {
  if (sets.empty()) return false;
  if (step == 0) return first;
  return step == steps || (interval > 0 && step % interval == 0);
}

EvaluationSpec read_evaluation(YamlMap& map, const RunClock& clock) {
  EvaluationSpec spec;
  if (!map.has(kLoader)) {
    for (const char* key : {"eval_interval", "eval_first", "eval_subset_num_batches", "device_eval_batch_size"})
      if (map.has(key)) map.fail(key, "found no {}, needs one to evaluate on; or leave the key out", kLoader);
    return spec;
  }
  if (map.node(kLoader).IsSequence())
    for (YamlMap& loader : map.maps(kLoader)) spec.sets.push_back(read_set(loader, spec.sets));
  else
    spec.sets.push_back(read_set(map.map(kLoader), {}));
  spec.interval = read_batches(map, "eval_interval", clock, 0);
  spec.first = map.boolean("eval_first", false);
  spec.device_batch = map.integer_or("device_eval_batch_size", 0, 1);
  spec.subset_batches = map.integer_or("eval_subset_num_batches", -1, -1);
  if (spec.subset_batches == 0)
    map.fail("eval_subset_num_batches", "found 0, needs at least 1, or -1 for all; or leave eval_loader out");
  return spec;
}

void check_eval_set(const std::vector<EvalSet>& before, const EvalSet& set, const std::string& where) {
  if (set.label.empty() || set.label.find_first_of("/\"\n") != std::string::npos)
    throw_usage("{}: found '{}', needs a word without '/' that names the loss", where, set.label);
  if (std::ranges::any_of(before, [&](const EvalSet& other) { return other.label == set.label; }))
    throw_usage("{}: found '{}' twice, needs labels that differ", where, set.label);
  for (const StreamSpec& stream : set.dataset.streams)
    if (stream.proportion || stream.repeat || stream.choose || set.dataset.epoch_size)
      throw_usage(
          "{}: found a mixture in the evaluation '{}', needs streams without proportion, repeat, choose and "
          "epoch_size: every sample counts once",
          where, set.label);
}

void evaluation_to_yaml(const EvaluationSpec& spec, YAML::Emitter& out) {
  if (spec.sets.empty()) return;
  out << YAML::Key << kLoader << YAML::Value << YAML::BeginSeq;
  for (const EvalSet& set : spec.sets) {
    out << YAML::BeginMap << YAML::Key << "label" << YAML::Value << set.label;
    if (set.dataset.finetuning) out << YAML::Key << "name" << YAML::Value << "finetuning";
    dataset_to_yaml(set.dataset, out << YAML::Key << "dataset" << YAML::Value);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
  out << YAML::Key << "eval_interval" << YAML::Value << fmt::format("{}ba", spec.interval);
  out << YAML::Key << "eval_first" << YAML::Value << spec.first;
  if (spec.device_batch > 0) out << YAML::Key << "device_eval_batch_size" << YAML::Value << spec.device_batch;
  out << YAML::Key << "eval_subset_num_batches" << YAML::Value << spec.subset_batches;
}

}  // namespace wt
