// Op times of one machine, from its profiles. An item is looked up in this order, and the answer says which it was:
//   exact      a measurement of this shape
//   staircase  measurements of the same shape at other row counts: products on GPUs take the time of the next full tile
//              of rows; between two measured counts linear, within a factor 2 beyond them by the fit
//   fitted     launch, FLOPs and bytes, fitted to the kernel class
//   roofline   70 % of the best rates seen on this machine; only with allow_assumed, and marked as assumed
// What was not measured itself but follows from what was is marked derived: memory-bound kernels of another precision
// (same bytes), backward products (two forward products), attention backward (2.5 x), other backward passes (2 x).
// Measurements that a profile itself marks as assumed, with a reason, are used as such.
#pragma once
#include <memory>
#include <optional>

#include "sim/cost/kernels/machine_data.hpp"

namespace wt {

class MachineModel : public OpCost {
 public:
  /// An item's time and the source behind it.
  struct Answer {
    TimeEstimate estimate;
    std::string source;
  };

  explicit MachineModel(MachineData data);

  const MachineTraits& traits() const override { return traits_; }
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override;
  using OpCost::segment;
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  /// Of GPUs that no collective was measured on: published ones, over InfiniBand.
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;

  /// item(), with its source. Throws as item() does.
  Answer answer(const WorkItem& item, double rows) const;
  TimeBasis explain(const WorkItem& item, const BoundRows& rows) const override;
  /// item(), where something was measured that says it; without a roofline. On GPUs measured points, what lies between
  /// them and up to twice beyond alone: what is farther away published times of the GPU say better (own_ratios.hpp).
  std::optional<TimeEstimate> find(const WorkItem& item, const BoundRows& rows) const;
  /// Whether traces of training runs say what the op takes.
  bool traced(const Op& op) const { return trace_of(op) != data_.ops.end(); }
  /// The same without the measurements and staircase: what the fit alone says. Empty where there is no fit.
  std::optional<TimeEstimate> fitted(const WorkItem& item, double rows) const;
  /// Sum of the items' times, without what traces say about the op. Intervals of items are taken to err together.
  TimeEstimate items_of(const Op& op, const BoundRows& rows, Clock clock = {}) const;

  void allow_assumed(bool allowed) { data_.allow_assumed = allowed; }
  const MachineData& data() const { return data_; }

 private:
  std::map<OpKey, OpFactor>::const_iterator trace_of(const Op& op) const;
  // Each writes its source where one is asked for: a search asks for a hundred thousand times and reads none.
  TimeEstimate estimate(const WorkItem& item, double rows, std::string* source) const;
  std::optional<TimeEstimate> measured(const WorkItem& item, double rows, std::string* source) const;
  enum class Fits { asked, left };  ///< whether a fit answers where no point does
  std::optional<TimeEstimate> routed(const WorkItem& item, const BoundRows& rows, Fits fits) const;
  std::optional<TimeEstimate> from_forward(const WorkItem& item, double rows, std::string* source, Fits fits) const;
  std::optional<TimeEstimate> known(const WorkItem& item, double rows, std::string* source,
                                    Fits fits = Fits::asked) const;
  std::optional<TimeEstimate> roofline(const WorkItem& item, double rows, std::string* source) const;

  MachineData data_;
  MachineTraits traits_;
  std::shared_ptr<const CollectiveEstimator> collectives_;
  double best_flops_ = 0, best_Bps_ = 0;  ///< best rates among the measurements, for the roofline
};

/// Whether FLOPs or bytes are what a kernel's time mostly follows.
bool is_product(Kernel kernel);
/// seconds that a fit gives an item.
double fit_seconds(const KernelFit& fit, const MachineData& data, const WorkItem& item, double rows);
/// FLOPs of the full waves of 128 x 256 tiles that a product takes on this many multiprocessors (0 where that is 0).
double wave_flops(const WorkItem& item, double rows, std::int64_t multiprocessors);
/// Neighbours in `points`: the staircase's answer for `rows`, or none beyond a factor 2 of what was measured. `skip`
/// leaves one point out (its index), for residuals.
std::optional<double> staircase_seconds(const std::vector<TimePoint>& points, double rows, double tile,
                                        std::ptrdiff_t skip = -1);

}  // namespace wt
