// The number of tokens for each expert. Sizes that depend on routing are symbols in the program. A RoutingSource binds
// them: in the trainer from its count exchange, in the simulator from a recording or a histogram.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/microbatches.hpp"
#include "configs/files/model.hpp"

namespace wt {

class RoutingSource {
 public:
  virtual ~RoutingSource() = default;
  /// Rows that a source rank sends to each logical expert in this step, microbatch and layer. They sum to tokens *
  /// top_k of the microbatch, minus rows dropped by a capacity, the model's or the loads' (if only totals are known, in
  /// the mean over ranks: rank_totals.hpp).
  virtual std::vector<double> counts(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                                     std::int64_t source_rank) const = 0;
  /// Whether a step's microbatches with the same number of tokens are routed alike.
  virtual bool same_in_every_microbatch() const { return false; }
  /// Whether counts() is the same for every source rank.
  virtual bool same_on_every_rank() const { return false; }
  /// Ascending; empty if not recorded. Other steps use the nearest of these.
  virtual std::vector<std::int64_t> recorded_steps() const { return {}; }
  /// Text for reports: "recorded on ...", "histogram of ...", "balanced (assumed)".
  virtual std::string description() const = 0;
};

/// Every expert gets the same share. `tokens`, here and below: of one rank.
std::unique_ptr<RoutingSource> balanced_routing(const ModelSpec& model, const Microbatches& tokens);

/// A histogram of expert shares per layer (rows of any positive scale), the same for every rank and step. A model with
/// more layers reuses the rows in order; another number of experts is Error{usage}. `kept`: the share of tokens * top_k
/// that is not dropped, by row of `shares`; none = all.
std::unique_ptr<RoutingSource> histogram_routing(const ModelSpec& model, const Microbatches& tokens,
                                                 const std::vector<std::vector<double>>& shares,
                                                 std::string description, const std::vector<double>& kept = {});
/// Reads columns layer, expert, count (others and '#' comments are ignored) as shares per layer. `experts` 0 = the
/// number in the file.
std::vector<std::vector<double>> read_histogram(const std::filesystem::path& csv, std::int64_t experts);

/// The trainer records this many steps at the end of a run.
inline constexpr std::int64_t kRecordedSteps = 64;

/// The trainer's recording (routing.csv: step, microbatch, layer, rank, then one count per expert of the rows that
/// chose it, those dropped afterwards among them) of the same model. A (step, microbatch, layer, rank) recorded with
/// the same number of tokens is returned exactly. For another layout or batch, the shares of the nearest recorded
/// (step, layer) are summed over ranks and scaled.
std::unique_ptr<RoutingSource> recorded_routing(const std::filesystem::path& csv, const ModelSpec& model,
                                                const Microbatches& tokens);

/// Counts rounded to whole rows with the same (whole) sum, by the largest remainder. Throws Error{usage} for a count
/// above `tokens`, because a token chooses an expert at most once.
std::vector<std::int64_t> whole_rows(const std::vector<double>& counts, std::int64_t tokens);

/// Rows that each rank of one expert group receives when every source rank of the group sends `counts[source]`.
/// counts: [sources][experts]; returns [expert ranks].
std::vector<double> rows_received(const std::vector<std::vector<double>>& counts, const Layout& layout,
                                  std::int64_t layer);

/// Share of a place's rows that is sent if a token goes to the place once: each of its `rows_of_token` rows goes there
/// with probability `place`.
double share_sent_once(double place, std::int64_t rows_of_token);

}  // namespace wt
