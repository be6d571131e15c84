// Rows that are sent one by one. Over InfiniBand, a GPU's own threads hand them to the adapter as fast as its wires. No
// GPU can drive an EFA adapter: threads of the host do so, and their time per row limits the rate. They are NVSHMEM's
// under DeepEP, UCCL's own under UCCL-EP.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// Seconds of the host for one row to another node. `low_s` is from benchmarks of the training kernels, where the wires
/// may have been as busy as the host. `high_s` is from benchmarks of the low-latency kernels, which send a message for
/// each row. No benchmark has rows as small as those of narrow models, so estimates use the geometric mean of both.
struct RowMessage {
  double low_s = 0, high_s = 0;
  double seconds() const;
  double ratio() const;  ///< high_s / seconds(), which is seconds() / low_s
};

/// Published row messages. sim/fit makes them; configs/constants/row_messages.json keeps them.
class RowMessages {
 public:
  /// By dispatcher and transport; transport "" = all together. Only those with benchmarks of both kinds of kernels.
  using Times = std::map<Dispatcher, std::map<std::string, RowMessage>>;
  RowMessages() = default;
  explicit RowMessages(Times times) : times_(std::move(times)) {}
  const Times& times() const { return times_; }

  /// None if the host does not send rows: for another dispatcher, or a transport other than EFA. A version of EFA
  /// without measurements has the time of all versions together.
  std::optional<RowMessage> of(Dispatcher dispatcher, const std::string& transport) const;

 private:
  Times times_;
};
void to_json(nlohmann::json& json, const RowMessages& messages);
void from_json(const nlohmann::json& json, RowMessages& messages);

/// `estimate` of an all-to-all over nodes, slowed to the host's time for each row of `row_bytes`. A GPU's adapters have
/// `nic_Bps`.
CollectiveEstimate one_by_one(CollectiveEstimate estimate, const RowMessage& message, double row_bytes, double nic_Bps);

}  // namespace wt
