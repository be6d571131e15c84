// What a model's FLOPs are compared with: the peak of the GPUs that run it.
#pragma once
#include <cstdint>
#include <optional>

#include "configs/files/cluster.hpp"

namespace wt {

/// Mean dense FLOP/s in bf16 of the cluster's first `gpus` GPUs by their data sheets (DataSheet::flops), whatever the
/// run's own format is. None where one of them has no data sheet.
std::optional<double> mean_peak_flops(const ClusterSpec& cluster, std::int64_t gpus);

}  // namespace wt
