// Op times of one machine, from its profiles. The first of these that exists gives an item's time, and the answer names
// it:
//   exact      a measurement of this shape
//   staircase  measurements of the same shape at other row counts. Products on GPUs take the time of the next full tile
//              of rows. Times are linear between two measured counts, and follow the fit up to a factor 2 beyond them
//   fitted     launch, FLOPs and bytes, fitted to the kernel class
//   roofline   70 % of the best rates seen on this machine; only with allow_assumed, and marked as assumed
// Times that follow from other measurements are marked derived: memory-bound kernels of another precision (same bytes),
// backward products (two forward products), attention backward (2.5 x), other backward passes (2 x). Measurements that
// a profile marks as assumed, with a reason, keep that mark.
#pragma once
#include <memory>
#include <optional>

#include "sim/cost/kernels/machine_data.hpp"

namespace wt {

class MachineModel : public OpCost {
 public:
  /// An item's time and its source.
  struct Answer {
    TimeEstimate estimate;
    std::string source;
  };

  explicit MachineModel(MachineData data);

  const MachineTraits& traits() const override { return traits_; }
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override;
  using OpCost::segment;
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  /// Uses published times over InfiniBand if no collective was measured on the GPU.
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;

  /// item() with its source. Throws as item() does.
  Answer answer(const WorkItem& item, double rows) const;
  TimeBasis explain(const WorkItem& item, const BoundRows& rows) const override;
  /// item() if measurements give its time; never a roofline. On GPUs only measured points count, with times between
  /// them and up to twice beyond. Farther away, published times of the GPU are more accurate (own_ratios.hpp).
  std::optional<TimeEstimate> find(const WorkItem& item, const BoundRows& rows) const;
  /// Whether there are traces of this op from training runs.
  bool traced(const Op& op) const { return trace_of(op) != data_.ops.end(); }
  /// The time by the fit alone. Empty if there is no fit.
  std::optional<TimeEstimate> fitted(const WorkItem& item, double rows) const;
  /// Sum of the items' times, without the op's traces. The interval assumes that items err together.
  TimeEstimate items_of(const Op& op, const BoundRows& rows, Clock clock = {}) const;

  void allow_assumed(bool allowed) { data_.allow_assumed = allowed; }
  const MachineData& data() const { return data_; }

 private:
  std::map<OpKey, OpFactor>::const_iterator trace_of(const Op& op) const;
  // `source` is optional in these functions: a search calls them a hundred thousand times and reads no source.
  TimeEstimate estimate(const WorkItem& item, double rows, std::string* source) const;
  std::optional<TimeEstimate> measured(const WorkItem& item, double rows, std::string* source) const;
  enum class Fits { asked, left };  ///< whether a fit is used if there is no point
  std::optional<TimeEstimate> routed(const WorkItem& item, const BoundRows& rows, Fits fits) const;
  std::optional<TimeEstimate> from_forward(const WorkItem& item, double rows, std::string* source, Fits fits) const;
  std::optional<TimeEstimate> known(const WorkItem& item, double rows, std::string* source,
                                    Fits fits = Fits::asked) const;
  std::optional<TimeEstimate> roofline(const WorkItem& item, double rows, std::string* source) const;

  MachineData data_;
  MachineTraits traits_;
  std::shared_ptr<const CollectiveEstimator> collectives_;
  double best_flops_ = 0, best_Bps_ = 0;  ///< best measured rates, for the roofline
};

/// Whether the kernel's time depends mostly on its FLOPs. Other kernels depend mostly on their bytes.
bool is_product(Kernel kernel);
/// Seconds of an item by a fit.
double fit_seconds(const KernelFit& fit, const MachineData& data, const WorkItem& item, double rows);
/// FLOPs of a product rounded up to full waves of 128 x 256 tiles on this many multiprocessors (0 for 0).
double wave_flops(const WorkItem& item, double rows, std::int64_t multiprocessors);
/// The staircase's time for `rows`, from neighbours in `points`. Empty beyond a factor 2 of the measured rows. `skip`:
/// index of a point to leave out, for residuals.
std::optional<double> staircase_seconds(const std::vector<TimePoint>& points, double rows, double tile,
                                        std::ptrdiff_t skip = -1);

}  // namespace wt
