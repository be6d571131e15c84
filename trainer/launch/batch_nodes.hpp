// The nodes that batches are assigned to. Only batches of device_per_stream depend on them: as in Streaming, each node
// has its own samples for its ranks.
#pragma once
#include <optional>

#include "configs/files/run.hpp"
#include "trainer/communication/rank_environment.hpp"
#include "trainer/data/epoch_batches.hpp"

namespace c10d {
class Store;
}

namespace wt {

/// Collective if the run's batches depend on nodes. Empty if they do, and ranks are spread unevenly over nodes
/// according to the launcher, or this rank sees other nodes than the first rank. A run that resumes keeps the nodes of
/// its first start, but one that begins needs them.
std::optional<BatchWorld> batch_world(const RunSpec& run, const RankEnvironment& environment, c10d::Store& store);
/// Throws Error{usage} if `world` is empty.
void check_batch_world(const std::optional<BatchWorld>& world, const RunSpec& run, std::int64_t rank);

}  // namespace wt
