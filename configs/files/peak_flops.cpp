#include "configs/files/peak_flops.hpp"

#include <map>

#include "configs/files/data_sheet.hpp"

namespace wt {

std::optional<double> mean_peak_flops(const ClusterSpec& cluster, std::int64_t gpus) {
  std::map<std::size_t, double> of_kind;
  for (const std::size_t kind : cluster.kinds(gpus)) {
    const auto sheet = data_sheet(cluster.of_kind(kind).gpu_name);
    if (!sheet) return std::nullopt;
    of_kind[kind] = sheet->flops;
  }
  double sum = 0;
  for (std::int64_t rank = 0; rank < gpus; ++rank) sum += of_kind.at(cluster.kind_of(cluster.node_of(rank)));
  return sum / static_cast<double>(gpus);
}

}  // namespace wt
