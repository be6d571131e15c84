#include "sim/cost/stacks/stack_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "configs/spec/support/error.hpp"
#include "sim/cost/collectives/collective_model.hpp"
#include "sim/cost/kernels/item_times.hpp"
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
  run.interconnect = fmt::format("{}x{:.0f}G {}", cluster.nic_count, cluster.nic_Bps * 8e-9, cluster.transport);
  return run;
}

}  // namespace

StackCost::StackCost(const ClusterSpec& cluster, RunRow run, StackConstants constants,
                     std::shared_ptr<const ItemTimes> gpu, std::shared_ptr<const RunFabric> fabric)
    : cluster_(cluster),
      run_(std::move(run)),
      stack_(std::move(constants)),
      gpu_(std::move(gpu)),
      fabric_(std::move(fabric)),
      sheet_(sheet_of(cluster)),
      choice_{product_rate(run_, sheet_), stack_.attention} {}

StackCost::StackCost(const ClusterSpec& cluster, const StackSpec& stack, const RunReference& reference)
    : StackCost(cluster, run_on(cluster), {}, std::make_shared<ItemTimes>(reference.kernels),
                std::make_shared<RunFabric>(reference.collectives)) {
  const StepModel steps = reference_model(reference, *gpu_, *fabric_);
  const auto constants_on = [&](const NodeSpec& node) -> StackConstants {
    const StepTraits traits = traits_of(stack, node.gpu_name);
    return {steps.constants(traits), traits.separate_reduce_group, stack.attention, steps.ratios(traits),
            steps.knows_stack(traits.stack) && steps.knows_gpu(traits.gpu) ? Evidence::published : Evidence::derived};
  };
  stack_ = constants_on(cluster);
  for (std::size_t kind = 1; kind <= cluster.others.size(); ++kind) {
    const ClusterSpec same = cluster.all_of(kind);
    others_.push_back(std::make_shared<StackCost>(same, run_on(same), constants_on(same), gpu_, fabric_));
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
  KernelChoice choice = choice_;
  if (ends) choice.relative_rate = 1;
  const ItemTime time = gpu_->item(item, rows, choice, sheet_);
  const double products = stack_.constants[C::products] * (choice.relative_rate > 1 ? stack_.constants[C::fp8] : 1);
  const double memory = stack_.constants[item.kernel == Kernel::adamw ? C::optimizer : C::memory];
  return price(time.products_s * products + time.attention_s * stack_.constants[C::attention] + time.memory_s * memory);
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
  CollectivePrice out{.latency_s = 0, .evidence = Evidence::derived, .root = stack_.evidence};
  if (ranks <= 1 || bytes <= 0) return out;
  const bool message = kind == OpKind::send || kind == OpKind::receive;
  // As if all nodes had as many: what an uneven spread costs is the replay's business, which loads each node by its
  // own.
  const std::int64_t in_node = (ranks + nodes - 1) / nodes;
  const RunFabric::Group group = {in_node * nodes, in_node};
  // What a dispatcher makes of an exchange; nothing else runs on a rank meanwhile.
  const double dispatcher = kind == OpKind::all_to_all ? stack_.constants[C::exchange] : 1;
  const auto seconds = [&](double size) {
    return stack_.constants[C::network] * dispatcher *
           (message ? fabric_->send_s(size, nodes > 1, run_) : fabric_->seconds(kind, size, group, run_));
  };
  out.latency_s = seconds(1);
  out.relative_spread = std::max(1 - stack_.ratios.first, stack_.ratios.second - 1);
  const double transfer_s = std::max(seconds(bytes) - out.latency_s, 1e-12);
  const AllReduceMachine machine = {cluster_.nvswitch_Bps, cluster_.nic_per_gpu_Bps(),
                                    nvls_least_ranks(sheet_.generation)};
  if (kind == OpKind::all_reduce) {
    set_all_reduce(out, machine, bytes, transfer_s, ranks, nodes);
    return out;
  }
  const double wire_s =
      (message ? bytes : pool_bytes(kind, bytes, ranks, nodes)) / (nodes > 1 ? machine.nic_Bps : machine.nvlink_Bps);
  out.efficiency =
      wire_s / std::max(transfer_s, message ? wire_s : least_transfer_s(machine, kind, bytes, ranks, nodes));
  return out;
}

}  // namespace wt
