// Families of steps with similar prediction errors. The interval of a prediction comes from the left-out errors of its
// family.
#pragma once
#include <string>

#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"

namespace wt {

/// "MoE, data parallel", "dense, tensor and pipeline".
inline std::string step_family(const ModelSpec& model, const Layout& layout) {
  const bool split = layout.tensor > 1 || layout.pipeline > 1;
  return std::string(model.experts > 0 ? "MoE" : "dense") + (split ? ", tensor and pipeline" : ", data parallel");
}

}  // namespace wt
