// The nodes that batches are dealt to. Batches of device_per_stream alone depend on them: as in Streaming, every node
// deals samples of its own to its ranks.
#pragma once
#include <optional>

#include "configs/files/run.hpp"
#include "trainer/communication/rank_environment.hpp"
#include "trainer/data/epoch_batches.hpp"

namespace c10d {
class Store;
}

namespace wt {

/// Collective where the run's batches depend on nodes. None: they do, and by what the launcher says ranks are dealt
/// unevenly to nodes, or this rank knows of other nodes than the first. A run that goes on keeps the nodes of its
/// beginning; one that begins cannot.
std::optional<BatchWorld> batch_world(const RunSpec& run, const RankEnvironment& environment, c10d::Store& store);
/// Throws Error{usage} where there is none.
void check_batch_world(const std::optional<BatchWorld>& world, const RunSpec& run, std::int64_t rank);

}  // namespace wt
