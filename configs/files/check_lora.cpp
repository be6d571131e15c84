#include "configs/files/check_lora.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/files/adapted_modules.hpp"
#include "configs/files/run.hpp"
#include "configs/files/search_space.hpp"

namespace wt {
namespace {

/// The refused setting of the run in its file's words, and what is allowed; empty = none.
std::pair<std::string, const char*> refused(const RunSpec& run) {
  const Layout& l = run.layout;
  if (l.tensor > 1) return {fmt::format("tensor_parallel_degree {}", l.tensor), "1"};
  if (l.schedule != Schedule::one_f_one_b) return {"pipeline_schedule " + to_string(l.schedule), "1f1b"};
  if (l.exchange_overlap) return {"overlap_expert_exchange", "false"};
  if (l.slots(run.model) > run.model.experts) return {"copies of experts", "each expert once"};
  if (l.optimizer_shard > 1)
    return {fmt::format("optimizer_shard_degree {}", l.shard * l.optimizer_shard), "data_parallel_shard_degree"};
  if (!recomputes_whole_blocks(l.recompute)) return {"recompute of " + to_string(l.recompute), "whole blocks"};
  if (run.optimizer.kind == OptimizerKind::muon)
    return {"optimizer " + to_string(run.optimizer.kind), "decoupled_adamw and decoupled_lionw"};
  if (run.optimizer.offload_fraction > 0)
    return {fmt::format("offload_fraction {}", run.optimizer.offload_fraction), "0"};
  if (run.pure_reduction) return {"mixed_precision PURE", "DEFAULT"};
  if (!plain_precisions(run.precision, run.precisions))
    return {"number formats of their own", "those of precision fp32 and amp_bf16"};
  return {};
}

/// The first value that is not allowed, as text; empty = all are allowed.
template <class T, class Allowed>
std::string first_refused(const std::vector<T>& values, const Allowed& allowed) {
  for (const T& value : values) {
    if (allowed(value)) continue;
    if constexpr (std::is_arithmetic_v<T>)
      return fmt::format("{}", value);
    else
      return to_string(value);
  }
  return "";
}

}  // namespace

bool recomputes_whole_blocks(const Recompute& recompute) {
  return std::ranges::all_of(recompute.rules(),
                             [](const Recompute::Rule& rule) { return rule.module == Module::block; });
}

void check_lora(const SearchSpec& search, const std::string& where) {
  const auto check = [&](const char* axis, const std::string& found, const char* allowed) {
    if (!found.empty())
      throw_usage("{}: search.{}: found {} beside model.peft_config, allowed with adapters is {}", where, axis, found,
                  allowed);
  };
  const auto one = [](std::int64_t degree) { return degree == 1; };
  check("tensor_parallel_degree", first_refused(search.tensor_degrees, one), "1");
  check("pipeline_parallel_degree", first_refused(search.pipeline_degrees, one), "1");
  check("optimizer_shard_degree", first_refused(search.optimizer_shard_degrees, one), "auto: that of the weights");
  check("expert_copies", first_refused(search.expert_copies, [](std::int64_t copies) { return copies == 0; }), "0");
  check("recompute", first_refused(search.recompute, recomputes_whole_blocks), "none or block");
  check("overlap_expert_exchange", first_refused(search.exchange_overlap, std::logical_not<>()), "false");
}

void check_lora(const RunSpec& run, const std::string& where) {
  if (!run.lora) return;
  if (const auto [found, allowed] = refused(run); !found.empty())
    throw_usage("{}: model.peft_config: found it with {}, allowed with adapters is {}", where, found, allowed);
  adapter_shape(run.model, *run.lora);  // for its checks
}

}  // namespace wt
