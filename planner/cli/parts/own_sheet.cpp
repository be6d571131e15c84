#include "planner/cli/parts/own_sheet.hpp"

#include <fmt/core.h>

namespace wt {

std::string own_sheet_sentence(const ClusterSpec& cluster) {
  if (cluster.gpu_like.empty()) return "";
  return fmt::format(
      "The data sheet of {} is assumed, from the cluster's file. Nobody measured this GPU: its kernels are those of "
      "other GPUs, scaled by the data sheets as {} runs them; a new design reaches less of its sheet.",
      cluster.gpu_name, cluster.gpu_like);
}

}  // namespace wt
