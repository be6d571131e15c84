// What a search makes smallest. It grows with the step, so that a bound of the step bounds it, too.
#pragma once
#include <string>

#include "configs/files/layout.hpp"

namespace wt {

struct Simulated;

/// What a step takes at least.
struct LeastStep {
  double step_s = 0;
  double computing_s = 0;  ///< of it, seconds in which the kernels of each rank's compute lane run
};

class Objective {
 public:
  virtual ~Objective() = default;
  virtual std::string unit() const = 0;
  virtual double of(const Layout& layout, const Simulated& step) const = 0;
  /// No more than of() says of this layout with such a step or a longer one.
  virtual double least(const Layout& layout, const LeastStep& step) const = 0;
  /// The same of any layout of the space.
  virtual double least_of_any(const LeastStep& step) const = 0;
  /// Whether LeastStep::computing_s says anything to it; else nobody needs to find it out.
  virtual bool counts_computing() const { return false; }
};

}  // namespace wt
