// Rows that are sent one by one. Over InfiniBand a GPU's own threads hand them to the adapter, as fast as its wires. An
// adapter that no GPU can drive (EFA) is driven by threads of the host, whose time for a row sets the rate instead:
// NVSHMEM's under DeepEP, UCCL's own under UCCL-EP.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// Seconds of the host for one row to another node. Benchmarks of the kernels for training say `low_s`, where the wires
/// may have been as busy as the host; of the low-latency kernels, which send a message a row, `high_s`. No benchmark
/// has rows as small as those of narrow models, so that a row takes something between: the geometric mean.
struct RowMessage {
  double low_s = 0, high_s = 0;
  double seconds() const;
  double ratio() const;  ///< of high_s, and inverse of low_s, over seconds()
};

/// Published ones, made by sim/fit and kept in configs/constants/row_messages.json.
class RowMessages {
 public:
  /// By dispatcher and transport; transport "" = of all. Only of those whose benchmarks have both kinds of kernels.
  using Times = std::map<Dispatcher, std::map<std::string, RowMessage>>;
  RowMessages() = default;
  explicit RowMessages(Times times) : times_(std::move(times)) {}
  const Times& times() const { return times_; }

  /// None where the host has no part in it: another dispatcher, or a transport other than EFA. Of an EFA that was not
  /// measured, what all of them took.
  std::optional<RowMessage> of(Dispatcher dispatcher, const std::string& transport) const;

 private:
  Times times_;
};
void to_json(nlohmann::json& json, const RowMessages& messages);
void from_json(const nlohmann::json& json, RowMessages& messages);

/// An all-to-all over nodes of which each row of `row_bytes` costs the host that much, at adapters of `nic_Bps` a GPU.
CollectiveEstimate one_by_one(CollectiveEstimate estimate, const RowMessage& message, double row_bytes, double nic_Bps);

}  // namespace wt
