// What a search makes smallest. It grows with the step, so that a bound of the step bounds it, too.
#pragma once
#include <string>

#include "configs/spec/layout.hpp"

namespace wt {

struct Simulated;

class Objective {
 public:
  virtual ~Objective() = default;
  virtual std::string unit() const = 0;
  virtual double of(const Layout& layout, const Simulated& step) const = 0;
  /// No more than of() says of this layout with a step of `step_s` or more.
  virtual double least(const Layout& layout, double step_s) const = 0;
  /// The same of any layout of the space.
  virtual double least_of_any(double step_s) const = 0;
};

}  // namespace wt
