#include "sim/cost/memory/dispatcher_memory.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/number.hpp"

namespace wt {
namespace {

constexpr std::int64_t kNodeRanks = 8;

/// Tokens of a channel's NVLink buffer: num_max_nvl_chunked_recv_tokens of Buffer.get_dispatch_config.
double nvlink_tokens(std::int64_t ranks) {
  return ranks <= 8 ? 256 : ranks <= 64 ? 288 : ranks <= 96 ? 480 : ranks <= 128 ? 560 : 720;
}

}  // namespace

double dispatcher_bytes(const ModelSpec& model, const Layout& layout) {
  const bool deepep = layout.dispatcher == Dispatcher::deepep || layout.dispatcher == Dispatcher::uccl;
  if (!deepep || layout.expert == 1 || model.experts == 0) return 0;
  constexpr double kChannels = 10, kWorkspace = 32 << 20, kHeap = 512 << 20;
  const double row = 2 * as_double(model.d_model), nodes = std::ceil(as_double(layout.expert) / as_double(kNodeRanks));
  const double peers = as_double(std::min(layout.expert, kNodeRanks));
  const double nvlink = kChannels * peers * (nvlink_tokens(layout.expert) * (row + 8 + 2048) + 4 * (2 * nodes + 3));
  const double network = nodes > 1 ? 2 * kChannels * nodes * (128 * (row + 8 + 2064) + 72) : 0;
  return nvlink + std::ceil(network / kHeap) * kHeap + kWorkspace;
}

}  // namespace wt
