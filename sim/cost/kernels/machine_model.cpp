#include "sim/cost/kernels/machine_model.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr double kRooflineFactor = 0.7;     // as in a plan with 700 of an H100's 989 TFLOP/s
constexpr double kAttentionBackward = 2.5;  // one recomputed product and four more; forward has two
constexpr double kOtherBackward = 2.0;
constexpr double kBeyondTable = 2.0;                     // factor in rows up to which a table is scaled
constexpr double kDerivedLow = 0.7, kDerivedHigh = 1.4;  // 80 % interval of a backward pass from a forward one

TimeEstimate scaled(TimeEstimate estimate, double factor) { return estimate *= factor; }

TimeEstimate widened(TimeEstimate estimate) {
  estimate.low_s *= kDerivedLow;
  estimate.high_s *= kDerivedHigh;
  return estimate;
}

void mark_derived(TimeEstimate& estimate) { estimate.evidence = std::max(estimate.evidence, Evidence::derived); }

double launches(const WorkItem& item) {
  return item.kernel == Kernel::grouped_gemm ? static_cast<double>(std::max<std::int64_t>(1, item.dims[2])) : 1.0;
}

/// The same product with its groups' rows rounded up to whole tiles. Only one of the two backward products rounds up:
/// the other sums over the rows.
WorkItem in_whole_tiles(WorkItem item, const BoundRows& rows, double tile) {
  double filled = 0;
  for (const double each : rows.by_expert) filled += tile * std::ceil(each / tile);
  const double own = item.rows.at(rows.sum);
  item.rows = {std::max(own, item.pass == Pass::forward ? filled : (own + filled) / 2), 0};
  return item;
}

double tile_of(const MachineData& data, Kernel kernel) {
  return kernel == Kernel::gemm ? static_cast<double>(data.row_tile) : 1.0;
}

/// The first point with at least this many rows.
std::vector<TimePoint>::const_iterator at_least(const std::vector<TimePoint>& points, double rows) {
  return std::ranges::lower_bound(points, rows - 0.5, {}, &TimePoint::rows);
}

WorkItem product(const WorkItem& like, double rows, std::array<std::int64_t, 4> dims) {
  return make_item(like.kernel, Pass::forward, like.precision, {rows, 0}, dims);
}

std::string shape_text(const WorkItem& item, double rows) {
  std::string text;
  for (const auto& [key, value] : item.shape(rows))
    text += (text.empty() ? "" : ", ") + key + "=" + std::to_string(value);
  return text;
}

}  // namespace

bool is_product(Kernel kernel) {
  return kernel == Kernel::gemm || kernel == Kernel::grouped_gemm || kernel == Kernel::attention;
}

double wave_flops(const WorkItem& item, double rows, std::int64_t multiprocessors) {
  if (multiprocessors <= 0 || item.kernel != Kernel::gemm) return 0;
  const double m = std::ceil(item.rows.at(rows) / 128.0), n = std::ceil(static_cast<double>(item.dims[0]) / 256.0);
  const double waves = std::ceil(m * n / static_cast<double>(multiprocessors));
  return waves * static_cast<double>(multiprocessors) * 2.0 * 128.0 * 256.0 * static_cast<double>(item.dims[1]);
}

double fit_seconds(const KernelFit& fit, const MachineData& data, const WorkItem& item, double rows) {
  const double compute =
      fit.s_per_flop * item.flops(rows) + fit.s_per_wave_flop * wave_flops(item, rows, data.multiprocessors);
  const double memory = fit.s_per_byte * item.bytes(rows);
  return fit.launch_s * launches(item) + (fit.overlap ? std::max(compute, memory) : compute + memory);
}

std::optional<double> staircase_seconds(const std::vector<TimePoint>& points, double rows, double tile,
                                        std::ptrdiff_t skip) {
  const double wanted = std::ceil(rows / tile) * tile;
  const TimePoint *below = nullptr, *above = nullptr;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) == skip) continue;
    if (points[i].rows <= wanted)
      below = &points[i];
    else if (!above)
      above = &points[i];
  }
  if (below && below->rows == wanted) return below->seconds;
  if (below && above && above->rows <= 2 * kBeyondTable * below->rows) {
    const double share = (wanted - below->rows) / (above->rows - below->rows);
    return below->seconds + share * (above->seconds - below->seconds);
  }
  return std::nullopt;
}

MachineModel::MachineModel(MachineData data) : data_(std::move(data)) {
  for (const auto& [key, points] : data_.table)
    for (const TimePoint& point : points) {
      if (!(point.seconds > 0)) continue;
      const WorkItem item = make_item(key.kernel, key.pass, key.precision, {point.rows, 0}, key.dims);
      if (is_product(key.kernel))
        best_flops_ = std::max(best_flops_, item.flops(0) / point.seconds);
      else
        best_Bps_ = std::max(best_Bps_, item.bytes(0) / point.seconds);
    }
  const CollectiveData& links = data_.collectives;
  collectives_ = std::make_shared<const CollectiveEstimator>(
      data_.synchronous_host ? CollectiveEstimator(links.cpu)
      : links.points.empty() ? CollectiveEstimator::published()
                             : CollectiveEstimator::published().with_own(links.points));
  traits_ = {.synchronous_host = data_.synchronous_host,
             .variation = data_.variation,
             .communication_slowdown = data_.communication_slowdown,
             .crowding = data_.crowding,
             .basis_of_collectives = collectives_->basis()};
}

namespace {

/// A kernel with the same pattern of memory accesses, for a kernel that was not measured here.
std::optional<Kernel> stand_in(Kernel kernel) {
  switch (kernel) {
    case Kernel::layernorm:
      return Kernel::rmsnorm;
    case Kernel::gelu:
      return Kernel::swiglu;
    case Kernel::bias:
      return Kernel::add;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<TimeEstimate> MachineModel::fitted(const WorkItem& item, double rows) const {
  const auto estimated = [&](const KernelFit& fit) {
    const double seconds = fit_seconds(fit, data_, item, rows);
    return TimeEstimate{seconds,
                        seconds * fit.low_ratio,
                        seconds * fit.high_ratio,
                        Lookup::fitted,
                        fit.evidence,
                        only(fit.root.value_or(fit.evidence), seconds)};
  };
  if (const auto own = data_.fits.find({item.kernel, item.pass, item.precision}); own != data_.fits.end())
    return estimated(own->second);
  if (is_product(item.kernel)) return std::nullopt;
  // Memory-bound: the time depends on the bytes, and these on the precision.
  const Precision other = item.precision == Precision::fp32 ? Precision::bf16 : Precision::fp32;
  auto sibling = data_.fits.find({item.kernel, item.pass, other});
  if (const auto like = stand_in(item.kernel); sibling == data_.fits.end() && like) {
    sibling = data_.fits.find({*like, item.pass, item.precision});
    if (sibling == data_.fits.end()) sibling = data_.fits.find({*like, item.pass, other});
  }
  if (sibling == data_.fits.end()) return std::nullopt;
  TimeEstimate estimate = estimated(sibling->second);
  mark_derived(estimate);
  return estimate;
}

std::optional<TimeEstimate> MachineModel::measured(const WorkItem& item, double rows, std::string* source) const {
  if (item.window > 0) return std::nullopt;  // only attention without a window is measured; the fit has FLOPs and bytes
  const auto entry = data_.table.find({item.kernel, item.pass, item.precision, item.dims});
  if (entry == data_.table.end()) return std::nullopt;
  const std::vector<TimePoint>& points = entry->second;
  const double count = item.rows.at(rows);
  const auto near = at_least(points, count);
  if (near != points.end() && std::abs(near->rows - count) < 0.5) {
    if (source) *source = near->source;
    return TimeEstimate{near->seconds, near->low_s,    near->high_s,
                        Lookup::exact, near->evidence, only(near->root.value_or(near->evidence), near->seconds)};
  }

  const auto fit = data_.fits.find({item.kernel, item.pass, item.precision});
  const double low = fit == data_.fits.end() ? kDerivedLow : fit->second.table_low_ratio;
  const double high = fit == data_.fits.end() ? kDerivedHigh : fit->second.table_high_ratio;
  const auto answer = [&](double seconds, const TimePoint& from) {
    if (source) *source = fmt::format("{}; from {:.0f} rows", from.source, from.rows);
    return TimeEstimate{seconds,           seconds * low, seconds * high,
                        Lookup::staircase, from.evidence, only(from.root.value_or(from.evidence), seconds)};
  };
  const double tile = tile_of(data_, item.kernel);
  if (const auto seconds = staircase_seconds(points, count, tile))
    return answer(*seconds, near == points.end() ? points.back() : *near);

  // Beyond the measured rows, or in a wide gap: the time of the nearest point, scaled by the fit.
  const double wanted = std::ceil(count / tile) * tile;
  const TimePoint* from = nullptr;
  for (const TimePoint& point : points)
    if (std::max(point.rows, wanted) <= kBeyondTable * std::min(point.rows, wanted) &&
        (!from || std::abs(point.rows - wanted) < std::abs(from->rows - wanted)))
      from = &point;
  if (!from || fit == data_.fits.end()) return std::nullopt;
  const auto at = [&](double r) {
    WorkItem other = item;
    other.rows = {r, 0};
    return fit_seconds(fit->second, data_, other, 0);
  };
  return answer(from->seconds * at(wanted) / at(from->rows), *from);
}

std::optional<TimeEstimate> MachineModel::from_forward(const WorkItem& item, double rows, std::string* source,
                                                       Fits fits) const {
  if (item.pass == Pass::forward) return std::nullopt;
  const double m = item.rows.at(rows);
  const auto [n, k, groups, unused] = item.dims;
  if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm) {
    const bool grouped = item.kernel == Kernel::grouped_gemm;
    const double share = grouped ? m / launches(item) : m;  // rows of one expert: inner size of its weight gradient
    const std::int64_t inner = std::max<std::int64_t>(1, std::llround(share));
    std::string input_source, weight_source;
    const auto input = known(product(item, m, {k, n, groups, unused}), 0, source ? &input_source : nullptr, fits);
    const auto weight =
        known(product(item, static_cast<double>(k) * (grouped ? launches(item) : 1.0), {n, inner, groups, unused}), 0,
              source ? &weight_source : nullptr, fits);
    if (!input || !weight) return std::nullopt;
    TimeEstimate sum = *input;
    sum += *weight;
    sum.lookup = std::max(sum.lookup, weight->lookup);
    sum.evidence = std::max(sum.evidence, weight->evidence);
    mark_derived(sum);
    if (source) *source = "two forward products: " + input_source + "; " + weight_source;
    return sum;
  }
  WorkItem forward = item;
  forward.pass = Pass::forward;
  const auto once = known(forward, rows, source, fits);
  if (!once) return std::nullopt;
  const double factor = item.kernel == Kernel::attention ? kAttentionBackward : kOtherBackward;
  TimeEstimate backward = widened(scaled(*once, factor));
  mark_derived(backward);
  if (source) *source = fmt::format("{} x forward: {}", factor, *source);
  return backward;
}

std::optional<TimeEstimate> MachineModel::known(const WorkItem& item, double rows, std::string* source,
                                                Fits fits) const {
  if (const auto found = measured(item, rows, source)) return found;
  if (const auto found = fits == Fits::asked ? fitted(item, rows) : std::nullopt) {
    if (source) *source = "fit of " + to_string(ClassKey{item.kernel, item.pass, item.precision});
    return found;
  }
  return from_forward(item, rows, source, fits);
}

std::optional<TimeEstimate> MachineModel::roofline(const WorkItem& item, double rows, std::string* source) const {
  if (best_Bps_ <= 0 || (is_product(item.kernel) && best_flops_ <= 0)) return std::nullopt;
  const double compute = best_flops_ > 0 ? item.flops(rows) / best_flops_ : 0;
  const double seconds = std::max(compute, item.bytes(rows) / best_Bps_) / kRooflineFactor;
  if (source) *source = fmt::format("assumed: {} of the best rates measured on this machine", kRooflineFactor);
  return TimeEstimate{seconds, 0.5 * seconds, 2.0 * seconds, Lookup::roofline, Evidence::assumed};
}

namespace {

/// The class whose measurements give the item's time: its own, that of its forward pass, or of the other precision.
ClassKey class_behind(const MachineData& data, const WorkItem& item) {
  const Precision other = item.precision == Precision::fp32 ? Precision::bf16 : Precision::fp32;
  for (const ClassKey& key :
       {ClassKey{item.kernel, item.pass, item.precision}, ClassKey{item.kernel, item.pass, other},
        ClassKey{item.kernel, Pass::forward, item.precision}, ClassKey{item.kernel, Pass::forward, other}})
    if (data.fits.count(key) && (key.precision == item.precision || !is_product(item.kernel))) return key;
  return {item.kernel, item.pass, item.precision};
}

std::string first_source(const MachineData& data, const ClassKey& key) {
  for (const auto& [item, points] : data.table)
    if (ClassKey{item.kernel, item.pass, item.precision} == key && !points.empty()) return points.front().source;
  return "no measurement of this kernel";
}

}  // namespace

TimeBasis MachineModel::explain(const WorkItem& item, const BoundRows& /*rows*/) const {
  const ClassKey key = class_behind(data_, item);
  const auto fit = data_.fits.find(key);
  return {to_string(key), fit == data_.fits.end() ? 0 : fit->second.points, first_source(data_, key)};
}

MachineModel::Answer MachineModel::answer(const WorkItem& item, double rows) const {
  Answer answer;
  answer.estimate = estimate(item, rows, &answer.source);
  return answer;
}

TimeEstimate MachineModel::estimate(const WorkItem& item, double rows, std::string* source) const {
  if (!(item.rows.at(rows) > 0)) {
    if (source) *source = "no rows";
    return {0, 0, 0, Lookup::exact, Evidence::derived};
  }
  if (const auto found = known(item, rows, source)) return *found;
  if (data_.allow_assumed)
    if (const auto found = roofline(item, rows, source)) return *found;
  throw_usage(
      "machine model{}: found no measurement of {} ({}), allowed are kernels that were measured here; run 'windtunnel "
      "bench kernels' and calibrate with its profile{}",
      data_.fingerprint.count("device") ? " of " + data_.fingerprint.at("device") : "",
      to_string(ClassKey{item.kernel, item.pass, item.precision}), shape_text(item, rows),
      data_.allow_assumed ? " (nothing was measured that a roofline could rest on)" : ", or pass --allow-assumed");
}

std::optional<TimeEstimate> MachineModel::find(const WorkItem& item, const BoundRows& rows) const {
  return routed(item, rows, data_.row_tile == 1 ? Fits::asked : Fits::left);
}

std::optional<TimeEstimate> MachineModel::routed(const WorkItem& item, const BoundRows& rows, Fits fits) const {
  if (!(item.rows.at(rows.sum) > 0)) return TimeEstimate{0, 0, 0, Lookup::exact, Evidence::derived};
  std::optional<TimeEstimate> out = known(item, rows.sum, nullptr, fits);
  if (!out) return out;
  // Measurements of this machine already have a router's unequal groups. Published times are of equal groups of whole
  // tiles.
  const bool routed = out->shares()[static_cast<std::size_t>(Evidence::measured)] > 0;
  if (!(out->seconds > 0) || data_.row_tile == 1 || routed || !rows.spread_over(item)) return out;
  const auto filled = known(in_whole_tiles(item, rows, static_cast<double>(data_.row_tile)), 0, nullptr, fits);
  return filled && filled->seconds > out->seconds ? filled : out;
}

TimeEstimate MachineModel::item(const WorkItem& item, const BoundRows& rows) const {
  if (const auto found = routed(item, rows, Fits::asked)) return *found;
  return estimate(item, rows.sum, nullptr);
}

TimeEstimate MachineModel::items_of(const Op& op, const BoundRows& rows, Clock clock) const {
  TimeEstimate sum{0, 0, 0, Lookup::exact, Evidence::derived};
  double largest = -1;
  for (const WorkItem& work : op.work) {
    TimeEstimate estimate = item(work, rows);
    sum += estimate *= clock.factor(work, rows.sum);
    // lookup and evidence are those of the costliest item; by_evidence covers all items.
    if (estimate.seconds > largest) {
      largest = estimate.seconds;
      sum.lookup = estimate.lookup;
      sum.evidence = estimate.evidence;
    }
  }
  return sum;
}

std::map<OpKey, OpFactor>::const_iterator MachineModel::trace_of(const Op& op) const {
  const auto found = data_.ops.find({op.action, op.direction, op.group});
  if (found == data_.ops.end() && op.direction == Direction::recompute)  // a recomputation runs the forward code again
    return data_.ops.find({op.action, Direction::forward, op.group});
  return found;
}

TimeEstimate MachineModel::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  const auto found = trace_of(op);
  if (found == data_.ops.end()) return items_of(op, rows, clock);
  TimeEstimate estimate = items_of(op, rows.sum, clock);  // the traces' factor includes the cost of unequal groups
  const OpFactor& traced = found->second;
  // The traces' interval widens that of the items, because the traced shapes differ from this one.
  const double own_low = estimate.seconds > 0 ? estimate.low_s / estimate.seconds : 1;
  const double own_high = estimate.seconds > 0 ? estimate.high_s / estimate.seconds : 1;
  estimate.evidence = op.work.empty() ? traced.evidence : std::max(estimate.evidence, traced.evidence);
  estimate *= traced.factor;
  estimate += TimeEstimate{traced.overhead_s, 0, 0, Lookup::fitted, traced.evidence};
  estimate.low_s = estimate.seconds * traced.low_ratio * own_low;
  estimate.high_s = estimate.seconds * traced.high_ratio * own_high;
  estimate.seen_in_steps = true;
  return estimate;
}

CollectiveEstimate MachineModel::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  const CollectiveMachine& machine = data_.collectives.machine;
  if (ranks > 1 && !data_.synchronous_host && !(machine.nvlink_Bps > 0))
    throw_usage(
        "machine model: found neither a measured collective nor the rate of this GPU's links, needs one of them to "
        "time {}; run 'windtunnel bench collectives', or name a known GPU as \"device\" or \"nvlink_Bps\" in the "
        "fingerprint of the profile",
        to_string(kind));
  return collectives_->estimate({kind, bytes, {ranks, nodes}, machine});
}

}  // namespace wt
