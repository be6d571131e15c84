#include "sim/cost/stacks/stack_cost.hpp"

#include <fmt/core.h>

#include <utility>

#include "configs/base/error.hpp"
#include "sim/cost/host/host_time.hpp"

namespace wt {

using C = StepConstant;

namespace {

/// The constant for the difference between a kernel's benchmarks and its time in steps.
C factor_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::gemm:
    case Kernel::grouped_gemm:
      return C::products;
    case Kernel::attention:
      return C::attention;
    case Kernel::adamw:
      return C::optimizer;
    default:
      return C::memory;
  }
}

/// A GPU with measurements of the user's own is not known by its data sheet alone.
StepTraits traits_on(const StackSpec& stack, const std::string& gpu, const BenchmarkTimes& times) {
  StepTraits out = traits_of(stack, gpu);
  out.by_data_sheet = out.by_data_sheet && !times.measured;
  return out;
}

}  // namespace

DataSheet sheet_of(const ClusterSpec& cluster) {
  const auto sheet = data_sheet(cluster.gpu_name);
  if (!sheet || cluster.shared_cores())
    throw_usage("times of a stack: found {} of cluster {}, needs a GPU with a known data sheet", cluster.gpu_name,
                cluster.name);
  return *sheet;
}

bool at_ends(const Op& op) {
  return op.group == Group::embedding || op.group == Group::head || op.action == Action::embed ||
         op.action == Action::head_loss;
}

StackUse stack_use(const StepModel& steps, const StepTraits& traits) {
  const bool known = steps.knows_chip(traits.chip) && steps.knows_stack(traits.stack);
  return {traits, steps.constants(traits), known ? Evidence::published : Evidence::derived};
}

StackCost::StackCost(const ClusterSpec& cluster, StackUse use, BenchmarkTimes times, const Precisions& precisions)
    : use_(std::move(use)),
      times_(std::move(times)),
      machine_(machine_of(cluster)),
      sheet_(sheet_of(cluster)),
      choice_(precisions, use_.traits.attention, use_.traits.grouped_products, sheet_) {
  times_.collectives->check_fabric(machine_);
  measured_ = times_.items->measured_on(sheet_);
  traits_ = {.separate_reduce_group = use_.traits.separate_reduce_group,
             .tensor_traffic = use_.constants[C::tensor],
             .communication_slowdown =
                 times_.measured ? times_.measured->traits().communication_slowdown : published_slowdown(),
             .once_a_step = estimate(use_.constants[C::step_s], use_.evidence),
             .basis_of_collectives = times_.collectives->basis()};
  if (!times_.measured) return;
  own_ = OwnRatios(times_.measured->data(), *times_.items, choice_.in_16_bits(), sheet_);
  const CollectiveMachine& measured = times_.measured->data().collectives.machine;
  if (measured.only) machine_.only = measured.only;
  if (measured.nvls_ranks > 0) machine_.nvls_ranks = measured.nvls_ranks;
}

StackCost::StackCost(const ClusterSpec& cluster, const StackSpec& stack, const StepModel& steps,
                     const BenchmarkTimes& times, const Precisions& precisions)
    : StackCost(cluster, stack_use(steps, traits_on(stack, cluster.gpu_name, times)), times, precisions) {
  for (std::size_t kind = 1; kind <= cluster.others.size(); ++kind) {
    const ClusterSpec same = cluster.all_of(kind);
    others_.push_back(
        std::make_shared<StackCost>(same, stack_use(steps, traits_on(stack, same.gpu_name, times)), times, precisions));
  }
}

TimeEstimate StackCost::estimate(double seconds, Evidence root) const {
  TimeEstimate out{seconds, seconds, seconds, Lookup::fitted, Evidence::derived};
  out.by_evidence[static_cast<std::size_t>(root)] = seconds;
  return out;
}

CollectiveEstimate StackCost::row_exchange(CollectiveEstimate estimate, Dispatcher dispatcher, double row_bytes,
                                           std::int64_t nodes) const {
  if (nodes > 1)
    if (const auto message = times_.row_messages->of(dispatcher, machine_.transport))
      estimate = one_by_one(estimate, *message, row_bytes, machine_.nic_Bps);
  estimate.efficiency /= use_.constants[sends_once(dispatcher) ? C::once_exchange : C::exchange];
  return estimate;
}

double StackCost::launch_s(const Op& op, const Layout& layout) const {
  const HostConstants host = use_.constants.host();
  Launches launches;
  if (op.kind == OpKind::segment) {
    if (times_.measured && times_.measured->traced(op)) return 0;
    launches.add(op.work);
  } else if (op.lane == Lane::compute) {
    launches.calls = 1;
  }
  const bool waits = waits_for_rows(use_.traits.sync_points, layout.expert, layout.dispatcher, layout.exchange_overlap);
  return launch_time_s(launches, {waits, use_.traits.fused_routing}, layout.cuda_graphs, host);
}

double StackCost::issued_s(double gpu_s, double launch_s) const {
  return issued_time_s(gpu_s, launch_s, use_.constants.host());
}

TimeEstimate StackCost::item(const WorkItem& item, const BoundRows& rows) const { return item_of(item, rows, false); }

bool StackCost::narrow(const WorkItem& item) const {
  return item.precision != Precision::fp32 && choice_.narrow(item.pass) &&
         (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm);
}

/// Time of the host's work, limited by its bytes, for any stack. Empty for items of the GPU.
std::optional<TimeEstimate> StackCost::host_estimate(const WorkItem& item, const BoundRows& rows) const {
  if (item.kernel != Kernel::host_copy && item.kernel != Kernel::host_adamw) return std::nullopt;
  const HostSheet host = host_sheet(sheet_);
  return estimate(item.bytes(rows.sum) / (item.kernel == Kernel::host_copy ? host.link_Bps : host.memory_Bps),
                  Evidence::assumed);
}

TimeEstimate StackCost::item_of(const WorkItem& item, const BoundRows& rows, bool wide) const {
  if (const auto host = host_estimate(item, rows)) return *host;
  const bool narrowed = narrow(item) && !wide;
  if (times_.measured && !narrowed)
    if (auto found = times_.measured->find(item, rows)) return *found *= use_.constants[factor_of(item.kernel)];
  const ItemTime time = times_.items->item(item, rows, wide ? choice_.in_16_bits() : choice_, sheet_);
  const C memory = item.kernel == Kernel::adamw ? C::optimizer : C::memory;
  const bool products = item.kernel == Kernel::grouped_gemm ? measured_.grouped : measured_.products;
  TimeEstimate sum = estimate(use_.constants.seconds(time.products), root_of(products));
  sum += estimate(time.attention_s * use_.constants[C::attention], root_of(measured_.attention));
  sum += estimate(time.memory_s * use_.constants[memory], root_of(measured_.memory));
  if (const auto own = narrowed ? std::nullopt : own_.of(item)) {
    sum *= own->median;
    sum.low_s *= own->low;
    sum.high_s *= own->high;
  }
  return sum;
}

TimeBasis StackCost::explain(const WorkItem& item, const BoundRows& rows) const {
  if (host_estimate(item, rows))
    return {to_string(item.kernel), 0, "assumed: rates of the host's link and memory by the GPU's generation"};
  if (times_.measured && !narrow(item) && times_.measured->find(item, rows))
    return times_.measured->explain(item, rows);
  TimeBasis out = times_.items->explain(item, sheet_);
  if (!narrow(item) && own_.of(item)) out.source += ", times what this GPU's own points take over them";
  out.source += fmt::format(", as {} uses them", use_.traits.stack);
  return out;
}

TimeEstimate StackCost::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  const bool wide = at_ends(op) || op.action == Action::orthogonalize;  // Muon's products are in bf16
  const bool narrowed = !wide && std::ranges::any_of(op.work, [&](const WorkItem& each) { return narrow(each); });
  if (times_.measured && !narrowed && times_.measured->traced(op)) return times_.measured->segment(op, rows, clock);
  TimeEstimate sum{0, 0, 0, Lookup::fitted, Evidence::derived};
  for (const WorkItem& each : op.work) {
    TimeEstimate estimate = item_of(each, rows, wide);
    sum += estimate *= clock.factor(each, rows.sum);
  }
  return sum.seconds > 0 ? sum : TimeEstimate{};
}

CollectiveEstimate StackCost::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  if (ranks <= 1 || bytes <= 0) return {.evidence = Evidence::derived, .root = use_.evidence};
  const CollectiveQuestion question{kind, bytes, RankGroup::even(ranks, nodes), machine_};
  CollectiveEstimate out = slowed(times_.collectives->estimate(question), use_.constants[C::network], question);
  if (const Evidence root = out.root.value_or(out.evidence); root != Evidence::measured) {
    out.evidence = Evidence::derived;
    out.root = root == Evidence::published ? use_.evidence : root;
  }
  return out;
}

}  // namespace wt
