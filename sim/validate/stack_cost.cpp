#include "sim/validate/stack_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "configs/spec/error.hpp"
#include "sim/machine/collective_model.hpp"

namespace wt {

using C = StepConstant;

StackCost::StackCost(const ClusterSpec& cluster, const StackSpec& stack, const RunReference& reference)
    : cluster_(cluster), gpu_(reference.kernels), fabric_(reference.collectives) {
  const auto sheet = data_sheet(cluster.gpu_name);
  if (!sheet || cluster.shared_cores())
    throw_error(Code::usage, "prices of a stack: found {} of cluster {}, needs a GPU with a known data sheet",
                cluster.gpu_name, cluster.name);
  sheet_ = *sheet;
  run_.gpu = cluster.gpu_name;
  run_.gpus_per_node = cluster.gpus_per_node;
  run_.interconnect = fmt::format("{}x{:.0f}G {}", cluster.nic_count, cluster.nic_Bps * 8e-9, cluster.transport);
  const StepModel steps = reference_model(reference, gpu_, fabric_);
  const StepTraits traits = traits_of(stack, cluster.gpu_name);
  ampere_attention_ = traits.ampere_attention;
  constants_ = steps.constants(traits);
  std::tie(low_ratio_, high_ratio_) = steps.ratios(stack.name);
  evidence_ = steps.knows_stack(stack.name) ? Evidence::published : Evidence::derived;
}

Price StackCost::price(double seconds) const {
  Price out;
  out.seconds = seconds;
  out.low_s = seconds * std::min(1.0, low_ratio_);
  out.high_s = seconds * std::max(1.0, high_ratio_);
  out.lookup = Lookup::fitted;
  out.evidence = Evidence::derived;
  out.by_evidence[static_cast<std::size_t>(evidence_)] = seconds;
  return out;
}

Price StackCost::item(const WorkItem& item, double rows) const {
  if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm)
    return price(gpu_.products_s(item, rows, 1, sheet_) * constants_[C::products]);
  if (item.kernel == Kernel::attention) {
    const double factor = constants_[C::attention] * (ampere_attention_ ? constants_[C::attention_hopper] : 1);
    return price(item.flops(rows) / sheet_.flops * factor);
  }
  const double factor = constants_[item.kernel == Kernel::adamw ? C::optimizer : C::memory];
  return price(item.bytes(rows) / sheet_.memory_Bps * factor);
}

Price StackCost::segment(const Op& op, double rows) const {
  Price sum;
  double launches = 0;
  for (const WorkItem& each : op.work) {
    sum += item(each, rows);
    launches += each.pass == Pass::forward ? 1 : 2;
  }
  if (sum.seconds <= 0) return sum;
  const double host_s = launches * constants_[C::item_s];
  Price out = price(blend(sum.seconds, host_s, constants_[C::host_power]));
  out.lookup = Lookup::fitted;
  return out;
}

CollectivePrice StackCost::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  CollectivePrice out{.latency_s = 0, .evidence = Evidence::derived, .root = evidence_};
  if (ranks <= 1 || bytes <= 0) return out;
  const bool message = kind == OpKind::send || kind == OpKind::receive;
  const RunFabric::Group group = {ranks, std::max<std::int64_t>(1, ranks / nodes)};
  const auto seconds = [&](double size) {
    return constants_[C::network] *
           (message ? fabric_.send_s(size, nodes > 1, run_) : fabric_.seconds(kind, size, group, run_));
  };
  out.latency_s = seconds(1);
  out.relative_spread = std::max(1 - low_ratio_, high_ratio_ - 1);
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
