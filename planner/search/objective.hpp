// The objective of a search. It increases with the step time, so a bound on the step time bounds it, too.
#pragma once
#include <string>

#include "configs/files/layout.hpp"

namespace wt {

struct Simulated;

/// Lower bounds of a step.
struct LeastStep {
  double step_s = 0;
  double computing_s = 0;  ///< part of step_s: kernels run on each rank's compute lane
};

class Objective {
 public:
  virtual ~Objective() = default;
  virtual std::string unit() const = 0;
  virtual double of(const Layout& layout, const Simulated& step) const = 0;
  /// Lower bound of of() for this layout, given lower bounds of its step.
  virtual double least(const Layout& layout, const LeastStep& step) const = 0;
  /// The same bound for any layout of the space.
  virtual double least_of_any(const LeastStep& step) const = 0;
  /// Whether LeastStep::computing_s matters. If not, it is not computed.
  virtual bool counts_computing() const { return false; }
};

}  // namespace wt
