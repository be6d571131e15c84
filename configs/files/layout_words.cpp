#include "configs/files/layout_words.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/stack.hpp"

namespace wt {
namespace {

bool is_of(const StackSpec& stack, const std::string& framework) {
  return std::ranges::any_of(stack.frameworks,
                             [&](const std::string& word) { return word.find(framework) != std::string::npos; });
}

/// Megatron-DeepSpeed divides states by ZeRO's stages instead.
bool in_megatron_words(const StackSpec& stack) {
  return is_of(stack, "Megatron") && stack.name != "megatron-deepspeed";
}

/// How weights, gradients and the optimizer's state are divided there.
std::string megatron_sharding(const Layout& l) {
  if (l.shard > 1 && (l.reshard_after_forward || l.reduce_every_microbatch))
    return fmt::format(", Megatron-FSDP {} over {}", l.reshard_after_forward ? "optim_grads_params" : "optim_grads",
                       l.shard);
  if (l.shard * l.optimizer_shard == 1) return "";
  return l.optimizer_shard == l.replicate ? ", distributed optimizer"
                                          : fmt::format(", distributed optimizer over {}", l.shard * l.optimizer_shard);
}

/// layout_extras(), behind a comma.
std::string also(const Layout& l) {
  const std::string extras = layout_extras(l);
  return extras.empty() ? "" : "," + extras;
}

std::string megatron_words(const Layout& l) {
  std::string out = fmt::format("TP{}{}", l.tensor, l.sequence_parallel ? "+SP" : "");
  const auto add = [&](const char* name, std::int64_t degree, bool said) {
    if (said) out += fmt::format(" {}{}", name, degree);
  };
  add("PP", l.pipeline, true);
  add("VPP", l.virtual_stages, l.virtual_stages > 1);
  add("EP", l.expert, l.expert > 1);
  add("ETP", l.whole_experts ? 1 : l.tensor, l.whole_experts || (l.expert > 1 && l.tensor > 1));
  add("CP", l.context, l.context > 1);
  add("DP", l.data_ranks(), true);
  if (l.schedule != Schedule::one_f_one_b) out += " " + to_string(l.schedule);
  return out + megatron_sharding(l) + also(l);
}

std::string degrees_text(const std::vector<std::pair<const char*, std::int64_t>>& degrees) {
  std::vector<std::string> said;
  for (const auto& [name, degree] : degrees)
    if (degree > 1) said.push_back(fmt::format("{} {}", name, degree));
  return said.empty() ? fmt::format("{} 1", degrees.front().first) : fmt::format("{}", fmt::join(said, ", "));
}

std::string titan_words(const Layout& l) {
  std::string out = degrees_text({{"data_parallel_replicate_degree", l.replicate},
                                  {"data_parallel_shard_degree", l.shard / l.context},
                                  {"tensor_parallel_degree", l.tensor},
                                  {"pipeline_parallel_degree", l.pipeline},
                                  {"context_parallel_degree", l.context},
                                  {"expert_parallel_degree", l.expert}});
  if (l.expert > 1 && l.tensor > 1)
    out += fmt::format(", expert_tensor_parallel_degree {}", l.whole_experts ? 1 : l.tensor);
  if (l.pipeline > 1)
    out += fmt::format(", pipeline_parallel_schedule {}", l.schedule == Schedule::dualpipe_v ? "DualPipeV"
                                                          : l.virtual_stages > 1             ? "Interleaved1F1B"
                                                                                             : "1F1B");
  else if (!l.reshard_after_forward)
    out += ", fsdp_reshard_after_forward never";
  return out + also(l);
}

std::string automodel_words(const Layout& l) {
  return degrees_text({{"dp_size", l.data_ranks()},
                       {"dp_replicate_size", l.replicate},
                       {"tp_size", l.tensor},
                       {"pp_size", l.pipeline},
                       {"cp_size", l.context},
                       {"ep_size", l.expert}}) +
         also(l);
}

}  // namespace

std::string layout_words(const Layout& layout, const StackSpec& stack) {
  if (in_megatron_words(stack)) return megatron_words(layout);
  if (is_of(stack, "torchtitan")) return titan_words(layout);
  if (is_of(stack, "Automodel")) return automodel_words(layout);
  return layout.name();
}

std::string layout_label(const Layout& layout, const StackSpec& stack) {
  return in_megatron_words(stack) ? megatron_words(layout) : layout.name();
}

std::string layout_extras(const Layout& layout) {
  std::string out;
  if (layout.dispatcher != Dispatcher::alltoall) out += " " + to_string(layout.dispatcher);
  if (layout.cuda_graphs != CudaGraphs::none) out += " " + to_string(layout.cuda_graphs) + " graphs";
  if (layout.exchange_overlap) out += " exchanges overlapped";
  if (layout.offload_activations) out += " activations on the host";
  return out;
}

}  // namespace wt
