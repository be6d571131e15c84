// How many tokens go to which expert. Sizes that depend on routing are symbols in the program; a RoutingSource binds
// them: the trainer from its count exchange, the simulator from a recording or a histogram.
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
  /// Rows that a source rank sends to each logical expert in this step, microbatch and layer; sums to tokens * top_k of
  /// that microbatch, less what a capacity drops (in the mean over ranks where only totals are known: rank_totals.hpp).
  virtual std::vector<double> counts(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                                     std::int64_t source_rank) const = 0;
  /// Whether microbatches of a step that have as many tokens are routed alike.
  virtual bool same_in_every_microbatch() const { return false; }
  /// In order; none where it was not recorded. Other steps are routed as the nearest of these.
  virtual std::vector<std::int64_t> recorded_steps() const { return {}; }
  /// Said in reports: "recorded on ...", "histogram of ...", "balanced (assumed)".
  virtual std::string description() const = 0;
};

/// Every expert gets the same share. `tokens`, here and below: of one rank.
std::unique_ptr<RoutingSource> balanced_routing(const ModelSpec& model, const Microbatches& tokens);

/// A histogram of expert shares per layer (rows of any positive scale), the same for every rank and step; a model with
/// more layers reuses the rows in order, one with another number of experts is refused with Error{usage}. `kept`: the
/// share of tokens * top_k that is not dropped, by row of `shares`; none = all.
std::unique_ptr<RoutingSource> histogram_routing(const ModelSpec& model, const Microbatches& tokens,
                                                 const std::vector<std::vector<double>>& shares,
                                                 std::string description, const std::vector<double>& kept = {});
/// Reads columns layer, expert, count (others ignored, '#' comments) as shares per layer. `experts` 0 = as many as the
/// file names.
std::vector<std::vector<double>> read_histogram(const std::filesystem::path& csv, std::int64_t experts);

/// So many steps at the end of a run are in the trainer's recording.
inline constexpr std::int64_t kRecordedSteps = 64;

/// The trainer's recording (routing.csv: step, microbatch, layer, rank, then one count per expert), for the same model.
/// A (step, microbatch, layer, rank) that was recorded with the same number of tokens is given back as it was; another
/// layout or batch is served by the shares of the nearest recorded (step, layer), summed over ranks and scaled.
std::unique_ptr<RoutingSource> recorded_routing(const std::filesystem::path& csv, const ModelSpec& model,
                                                const Microbatches& tokens);

/// Counts in whole rows with the same (whole) sum, rounded by the largest remainder. A token chooses an expert once, so
/// none may be above `tokens`: Error{usage}.
std::vector<std::int64_t> whole_rows(const std::vector<double>& counts, std::int64_t tokens);

/// Rows that each rank of one expert group receives when every source rank of the group sends `counts[source]`.
/// counts: [sources][experts]; returns [expert ranks].
std::vector<double> rows_received(const std::vector<std::vector<double>>& counts, const Layout& layout,
                                  std::int64_t layer);

/// Of rows that go to a place, the share that is sent where a token goes there once: of its `rows_of_token` rows each
/// goes there with a probability of `place`.
double share_sent_once(double place, std::int64_t rows_of_token);

}  // namespace wt
