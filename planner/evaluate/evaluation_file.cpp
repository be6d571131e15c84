#include "planner/evaluate/evaluation_file.hpp"

#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"

namespace wt {

HarnessSpec read_evaluation_file(const std::filesystem::path& file) {
  YamlMap at = YamlMap::from_file(file);
  HarnessSpec out;
  out.tasks = at.texts("tasks");
  if (at.has("tasks") && out.tasks.empty()) at.fail("tasks", "found an empty list, needs names of lm-eval's tasks");
  if (at.has("include_path")) {
    out.include_path = file.parent_path() / at.text("include_path");
    if (!std::filesystem::is_directory(out.include_path))
      at.fail("include_path", "found " + out.include_path.string() + ", needs a folder with task files of lm-eval");
  }
  out.model = at.choice("model", {"hf", "vllm"}, out.model);
  out.dtype = at.choice("dtype", {"auto", "float32", "bfloat16", "float16"}, out.dtype);
  out.device = at.text("device", "");
  out.batch_size = at.text("batch_size", out.batch_size);
  if (at.has("batch_size") && out.batch_size != "auto") out.batch_size = std::to_string(at.integer("batch_size", 1));
  if (at.has("num_fewshot")) out.shots = at.integer("num_fewshot", 0);
  if (at.has("limit")) out.limit = at.integer("limit", 1);
  out.timeout_s = at.quantity_or("timeout", parse_seconds, out.timeout_s);
  if (!(out.timeout_s > 0)) at.fail("timeout", "found " + at.text("timeout") + ", needs a time above 0, as 2h");
  if (at.has("eval_gauntlet")) out.gauntlet = read_gauntlet(at.map("eval_gauntlet"));
  at.finish();
  return out;
}

}  // namespace wt
