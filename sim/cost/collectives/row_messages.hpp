// Rows that are sent one by one. Over InfiniBand a GPU's own threads hand them to the adapter, as fast as its wires. An
// adapter that no GPU can drive (EFA) is driven by threads of the host, whose time for a row sets the rate instead:
// NVSHMEM's under DeepEP, UCCL's own under UCCL-EP.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"
#include "sim/measurements/row_exchange_rows.hpp"

namespace wt {

/// Seconds of the host for one row to another node. Benchmarks of the kernels for training say `low_s`, where the wires
/// may have been as busy as the host; of the low-latency kernels, which send a message a row, `high_s`. No benchmark
/// has rows as small as those of narrow models, so that a row takes something between: the geometric mean.
struct RowMessage {
  double low_s = 0, high_s = 0;
  double seconds() const;
  double ratio() const;  ///< of high_s, and inverse of low_s, over seconds()
};

class RowMessages {
 public:
  explicit RowMessages(const std::vector<RowExchangeRow>& rows);

  /// None where the host has no part in it: another dispatcher, or a transport other than EFA. Of an EFA that was not
  /// measured, what all of them took.
  std::optional<RowMessage> of(Dispatcher dispatcher, const std::string& transport) const;

 private:
  using Times = std::pair<std::vector<double>, std::vector<double>>;  ///< logarithms of seconds: normal, low latency
  std::map<Dispatcher, std::map<std::string, Times>> times_;          ///< by transport; "" = of all
};

/// An all-to-all over nodes of which each row of `row_bytes` costs the host that much, at adapters of `nic_Bps` a GPU.
CollectivePrice one_by_one(CollectivePrice price, const RowMessage& message, double row_bytes, double nic_Bps);

}  // namespace wt
