#include <filesystem>
#include <optional>

#include "planner/recipes/recipe.hpp"
#include "tests/fuzz/door.hpp"

namespace wt::fuzz {

std::vector<Door> recipe_doors() {
  std::vector<Door> doors;
  const auto add = [&](const char* name, const char* file, RecipeFormat format, std::int64_t gpus, const char* model) {
    doors.push_back({name, {sample(file)}, [=](const std::string& input, const auto&) {
                       import_run(input, file, {format, model, gpus});
                     }});
  };
  add("torchtitan", "tests/data/recipes/deepseek_v2_lite.toml", RecipeFormat::torchtitan, 64, "");
  add("megatron_shell", "tests/data/recipes/mixtral.sh", RecipeFormat::megatron_core, 0, "");
  const std::string corpus = "tests/data/recipes/corpus/megatron-core/";
  doors.push_back(
      {"launch_script",
       {sample(corpus + "shell_branches.sh"), sample(corpus + "shell_function.sh"), sample(corpus + "shell_lists.sh"),
        sample(corpus + "shell_here_document.sh"), sample(corpus + "shell_loop.sh")},
       [](const std::string& input, const auto&) {
         import_run(input, "job.sh", {RecipeFormat::megatron_core, "", 8});
       }});
  doors.push_back(
      {"megatron_arguments", {sample(corpus + "arguments.yaml")}, [](const std::string& input, const auto&) {
         import_run(input, "job.yaml", {RecipeFormat::megatron_core, "", 16});
       }});
  add("megatron_bridge", "tests/data/recipes/qwen3_bridge.yaml", RecipeFormat::megatron_bridge, 32, "qwen3-30b-a3b");
  add("automodel", "tests/data/recipes/automodel_qwen3.yaml", RecipeFormat::automodel, 64, "");
  add("llm_foundry", "tests/data/recipes/mpt_1b.yaml", RecipeFormat::llm_foundry, 64, "");
  add("torchtitan_command", "tests/data/recipes/corpus/torchtitan/module_and_config.sh", RecipeFormat::torchtitan, 0,
      "");
  const std::string automodel = "tests/data/recipes/corpus/automodel/";
  doors.push_back({"automodel_command",
                   {sample(automodel + "command.sh")},
                   [job = sample(automodel + "jobs/llama3_8b.yaml")](const std::string& input, const auto&) {
                     RecipeSource source{RecipeFormat::automodel, "", 0};
                     source.file = [&](const std::filesystem::path&) { return std::optional(job); };
                     import_run(input, "command.sh", source);
                   }});
  add("automodel_adapters", "tests/data/recipes/corpus/automodel/adapters_but_some.yaml", RecipeFormat::automodel, 0,
      "");
  doors.push_back({"any_recipe",
                   {sample("tests/data/recipes/mixtral.sh"), sample("tests/data/recipes/deepseek_v2_lite.toml"),
                    sample("tests/data/recipes/mpt_1b.yaml"), sample("configs/runs/demo.yaml")},
                   [](const std::string& input, const auto&) {
                     import_run(input, "job", {{}, "", 128});
                   }});
  return doors;
}

}  // namespace wt::fuzz
