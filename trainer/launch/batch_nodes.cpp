#include "trainer/launch/batch_nodes.hpp"

#include "configs/base/error.hpp"
#include "trainer/pch.hpp"

namespace wt {

std::optional<BatchWorld> batch_world(const RunSpec& run, const RankEnvironment& environment, c10d::Store& store) {
  const std::int64_t ranks = run.layout.data_ranks();
  if (run.dataset.batching_method != BatchingMethod::device_per_stream) return BatchWorld{1, ranks};
  constexpr const char* kNodes = "worker/nodes";
  if (environment.rank == 0) store.set(kNodes, std::to_string(environment.nodes));
  const std::int64_t nodes = std::stoll(store.get_to_str(kNodes));
  if (nodes < 1 || nodes != environment.nodes || ranks % nodes != 0) return std::nullopt;
  return BatchWorld{nodes, ranks / nodes};
}

void check_batch_world(const std::optional<BatchWorld>& world, const RunSpec& run, std::int64_t rank) {
  if (world) return;
  throw_usage(
      "rank {}: batching_method device_per_stream: found {} ranks that read samples, unevenly on their nodes by what "
      "the launcher says, allowed are equally many on each, because each deals samples of its own to them; start as "
      "many on every node, or choose another batching_method",
      rank, run.layout.data_ranks());
}

}  // namespace wt
