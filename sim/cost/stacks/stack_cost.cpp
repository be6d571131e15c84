#include "sim/cost/stacks/stack_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "configs/spec/support/error.hpp"
#include "sim/cost/kernels/composed_kernels.hpp"
#include "sim/cost/stacks/step_work.hpp"

namespace wt {

using C = StepConstant;

namespace {

DataSheet sheet_of(const ClusterSpec& cluster) {
  const auto sheet = data_sheet(cluster.gpu_name);
  if (!sheet || cluster.shared_cores())
    throw_error(Code::usage, "prices of a stack: found {} of cluster {}, needs a GPU with a known data sheet",
                cluster.gpu_name, cluster.name);
  return *sheet;
}

/// The cluster in the words of a published run.
RunRow run_on(const ClusterSpec& cluster) {
  RunRow run;
  run.gpu = cluster.gpu_name;
  run.precision = "bf16";
  run.gpus_per_node = cluster.gpus_per_node;
  return run;
}

}  // namespace

StackCost::StackCost(const ClusterSpec& cluster, RunRow run, StackConstants constants,
                     std::shared_ptr<const GpuTimes> gpu, std::shared_ptr<const CollectiveEstimator> collectives,
                     std::optional<CollectiveMachine> machine)
    : cluster_(cluster),
      run_(std::move(run)),
      stack_(std::move(constants)),
      gpu_(std::move(gpu)),
      collectives_(std::move(collectives)),
      machine_(machine ? *machine : machine_of(run_)),
      sheet_(sheet_of(cluster)),
      rate_(product_rate(run_, sheet_)) {}

StackCost::StackCost(const ClusterSpec& cluster, const StackSpec& stack, const RunReference& reference)
    : StackCost(cluster, run_on(cluster), {}, std::make_shared<GpuTimes>(reference.kernels),
                std::make_shared<CollectiveEstimator>(points_of(reference.collectives)), machine_of(cluster)) {
  collectives_->check_fabric(machine_);
  const StepModel steps = reference_model(reference, *gpu_, *collectives_);
  const auto constants_on = [&](const NodeSpec& node) -> StackConstants {
    const StepTraits traits = traits_of(stack, node.gpu_name);
    return {steps.constants(traits), traits.ampere_attention, traits.separate_reduce_group, steps.ratios(traits),
            steps.knows_stack(traits.stack) && steps.knows_gpu(traits.gpu) ? Evidence::published : Evidence::derived};
  };
  stack_ = constants_on(cluster);
  for (std::size_t kind = 1; kind <= cluster.others.size(); ++kind) {
    const ClusterSpec same = cluster.all_of(kind);
    others_.push_back(std::make_shared<StackCost>(same, run_on(same), constants_on(same), gpu_, collectives_,
                                                  machine_of(cluster, kind)));
  }
}

Price StackCost::price(double seconds) const {
  Price out;
  out.seconds = seconds;
  out.low_s = seconds * std::min(1.0, stack_.ratios.first);
  out.high_s = seconds * std::max(1.0, stack_.ratios.second);
  out.lookup = Lookup::fitted;
  out.evidence = Evidence::derived;
  out.by_evidence[static_cast<std::size_t>(stack_.evidence)] = seconds;
  return out;
}

Price StackCost::item(const WorkItem& item, const BoundRows& rows) const { return item_of(item, rows, false); }

Price StackCost::item_of(const WorkItem& item, const BoundRows& rows, bool ends) const {
  const bool narrow = rate_ > 1 && !ends;  // fp8
  const double products = stack_.constants[C::products] * (narrow ? stack_.constants[C::fp8] : 1);
  if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm)
    return price(gpu_->products_s(item, rows, ends ? 1 : rate_, sheet_) * products);
  if (item.kernel == Kernel::attention && !run_.flash_attention) {
    const UnfusedAttention kept = unfused_attention(item, sheet_);
    return price(kept.products_s * products + kept.memory_s * stack_.constants[C::memory]);
  }
  if (item.kernel == Kernel::attention) {
    const double factor =
        stack_.constants[C::attention] * (stack_.ampere_attention ? stack_.constants[C::attention_hopper] : 1);
    return price(attention_time_s(item, sheet_) * factor);
  }
  const double factor = stack_.constants[item.kernel == Kernel::adamw ? C::optimizer : C::memory];
  return price(item.bytes(rows.sum) / sheet_.memory_Bps * factor);
}

Price StackCost::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  Price sum;
  double launches = 0;
  for (const WorkItem& each : op.work) {
    sum.seconds += item_of(each, rows, at_ends(op)).seconds * clock.factor(each, rows.sum);
    launches += each.pass == Pass::forward ? 1 : 2;
  }
  if (sum.seconds <= 0) return sum;
  const double host_s = launches * stack_.constants[C::item_s];
  Price out = price(blend(sum.seconds, host_s, stack_.constants[C::host_power]));
  out.lookup = Lookup::fitted;
  return out;
}

CollectivePrice StackCost::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  if (ranks <= 1 || bytes <= 0) return {.evidence = Evidence::derived, .root = stack_.evidence};
  const CollectiveQuestion question{kind, bytes, RankGroup::even(ranks, nodes), machine_};
  // What a dispatcher makes of an exchange; nothing else runs on a rank meanwhile.
  const double dispatcher = kind == OpKind::all_to_all ? stack_.constants[C::exchange] : 1;
  CollectivePrice out = slowed(collectives_->price(question), stack_.constants[C::network] * dispatcher, question);
  // What steps of this stack are off by has what its collectives are off by in it.
  out.relative_spread = std::max(1 - stack_.ratios.first, stack_.ratios.second - 1);
  out.evidence = Evidence::derived;
  out.root = stack_.evidence;
  return out;
}

}  // namespace wt
