// windtunnel lora merge: adds an adapter to its base weights.

#include "configs/base/error.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "trainer/safetensors/adapter.hpp"
#include "trainer/safetensors/merge_adapter.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

struct MergeWords {
  std::string adapter, base, output;
};

void merge(const MergeWords& words) {
  const fs::path adapter = words.adapter, to = words.output;
  const std::string said = words.base.empty() ? read_adapter(adapter).base : words.base;
  if (!fs::is_directory(said))
    throw_usage(
        "{}: base_model_name_or_path is '{}', which is no folder here; name the folder with the weights: --base FOLDER",
        adapter.string(), said);
  const MergedAdapter merged = merge_adapter(said, adapter, to);
  fmt::print("wrote the weights of {} in {}: the adapter is added to {} of {} tensors\n", said, to.string(),
             merged.modules, merged.tensors);
}

}  // namespace

void add_lora(CLI::App& app) {
  const Command lora(app, "lora", "What becomes of adapters that a run with peft_config has trained");
  lora.require_subcommand();
  const Command command = lora.subcommand("merge",
                                          "The base's weights with an adapter added to them, in fp32\n"
                                          "Example: windtunnel lora merge out/adapter -o out/merged");
  const auto words = command.runs(merge);
  command.option("ADAPTER", words->adapter, "PEFT's folder: adapter_config.json, adapter_model.safetensors").required();
  command.output(words->output, Output::folder, "Folder for the weights").required();
  command.option("--base", words->base, "Folder with the weights; else base_model_name_or_path of the adapter");
}

}  // namespace wt
