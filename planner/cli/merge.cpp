// windtunnel merge: an adapter becomes part of the weights that it was trained beside.
#include <nlohmann/json.hpp>

#include "planner/cli/command.hpp"
#include "planner/cli/words.hpp"
#include "trainer/safetensors/merge_adapter.hpp"

namespace wt {

void add_merge(CLI::App& app) {
  struct Options {
    std::string base, adapter, output;
    bool json = false;
  };
  const Command command(app, "merge",
                        "Add an adapter (LoRA, as PEFT keeps it) to the weights that it was trained beside\n"
                        "Example: windtunnel merge out/train/export out/adapter -o out/merged");
  auto o = std::make_shared<Options>();
  command.option("BASE", o->base, "Folder of weights as Hugging Face keeps them: config.json and safetensors")
      .required();
  command.option("ADAPTER", o->adapter, "Folder with adapter_config.json and adapter_model.safetensors").required();
  command.option("-o,--output", o->output, "Folder to write, which must not be there").required();
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] {
    const MergedAdapter merged = merge_adapter(o->base, o->adapter, o->output);
    if (o->json) {
      fmt::print("{}\n", nlohmann::json{{"folder", o->output},
                                        {"tensors", merged.tensors},
                                        {"modules", merged.modules},
                                        {"parameters", merged.parameters}}
                             .dump(1));
      return;
    }
    fmt::print("added the adapter to {} of {} tensors ({:.0f} parameters, fp32) in {}\n", merged.modules,
               merged.tensors, merged.parameters, o->output);
  });
}

}  // namespace wt
