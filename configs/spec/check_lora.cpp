#include "configs/spec/check_lora.hpp"

#include <string>
#include <utility>

#include "configs/spec/adapted_modules.hpp"
#include "configs/spec/run.hpp"
#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

/// What of the run is found, in the words of its file, and what is allowed; empty = nothing.
std::pair<std::string, const char*> refused(const RunSpec& run) {
  const Layout& l = run.layout;
  if (l.tensor > 1) return {fmt::format("tensor_parallel_degree {}", l.tensor), "1"};
  if (l.schedule != Schedule::one_f_one_b) return {"pipeline_schedule " + to_string(l.schedule), "1f1b"};
  if (l.exchange_overlap) return {"overlap_expert_exchange", "false"};
  if (!l.placement.empty()) return {"expert_placement", "none"};
  if (l.optimizer_shard > 1)
    return {fmt::format("optimizer_shard_degree {}", l.shard * l.optimizer_shard), "data_parallel_shard_degree"};
  for (const Recompute::Rule& rule : l.recompute.rules())
    if (rule.module != Module::block)
      return {"activation_checkpointing_target " + to_string(rule.module), "whole blocks"};
  if (run.optimizer.kind != OptimizerKind::adamw)
    return {"optimizer " + to_string(run.optimizer.kind), "decoupled_adamw"};
  if (run.optimizer.offload_fraction > 0)
    return {fmt::format("offload_fraction {}", run.optimizer.offload_fraction), "0"};
  if (run.pure_reduction) return {"mixed_precision PURE", "DEFAULT"};
  if (!plain_precisions(run.precision, run.precisions))
    return {"number formats of their own", "those of precision fp32 and amp_bf16"};
  return {};
}

}  // namespace

void check_lora(const RunSpec& run, const std::string& where) {
  if (!run.lora) return;
  if (const auto [found, allowed] = refused(run); !found.empty())
    throw_error(Code::usage, "{}: model.peft_config: found it with {}, allowed with adapters is {}", where, found,
                allowed);
  adapter_shape(run.model, *run.lora);  // throws
}

}  // namespace wt
