#include "sim/program/routing/routing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/files/limits.hpp"
#include "sim/program/compose/expert_copies.hpp"

namespace wt {
namespace {

std::vector<double> scaled(std::vector<double> shares, double total) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum == 0) return shares;  // a layer without experts
  for (double& share : shares) share *= total / sum;
  return shares;
}

class Histogram : public RoutingSource {
 public:
  Histogram(const std::vector<std::vector<double>>& shares, const Microbatches& rows, std::string description,
            const std::vector<double>& kept = {})
      : microbatches_(rows), description_(std::move(description)) {
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double all = i < kept.size() ? kept[i] : 1;
      each_.push_back(scaled(shares[i], all * static_cast<double>(rows.each)));
      last_.push_back(scaled(shares[i], all * static_cast<double>(rows.last)));
    }
  }
  std::vector<double> counts(std::int64_t, std::int64_t microbatch, std::int64_t layer, std::int64_t) const override {
    const auto& rows = microbatch + 1 < microbatches_.count ? each_ : last_;
    return rows[static_cast<std::size_t>(layer) % rows.size()];
  }
  bool same_in_every_microbatch() const override { return true; }
  bool same_on_every_rank() const override { return true; }
  std::string description() const override { return description_; }

 private:
  Microbatches microbatches_;
  std::vector<std::vector<double>> each_, last_;  ///< scaled to the rows of a full and of the last microbatch
  std::string description_;
};

/// Recorded counts if the size matches, otherwise shares per (step, layer), summed over microbatches and ranks.
class Recording : public RoutingSource {
 public:
  using Key = std::array<std::int64_t, 4>;  ///< step, microbatch, layer, rank
  using Exact = std::map<Key, std::vector<double>>;
  Recording(Exact exact, std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> steps,
            const Microbatches& rows, std::string description)
      : exact_(std::move(exact)), steps_(std::move(steps)), rows_(rows), description_(std::move(description)) {}
  std::vector<double> counts(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                             std::int64_t rank) const override {
    const double rows = static_cast<double>(rows_.of(microbatch));
    if (const auto row = exact_.find({step, microbatch, layer, rank});
        row != exact_.end() && std::accumulate(row->second.begin(), row->second.end(), 0.0) == rows)
      return row->second;
    auto it = steps_.lower_bound(step);
    if (it == steps_.end()) --it;
    const auto& layers = it->second;
    const auto row = layers.find(layer % static_cast<std::int64_t>(layers.size()));
    return scaled(row == layers.end() ? layers.begin()->second : row->second, rows);
  }
  std::vector<std::int64_t> recorded_steps() const override {
    std::vector<std::int64_t> out;
    for (const auto& [step, layers] : steps_) out.push_back(step);
    return out;
  }
  std::string description() const override { return description_; }

 private:
  Exact exact_;
  std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> steps_;
  Microbatches rows_;
  std::string description_;
};

Microbatches rows_of(const ModelSpec& model, const Microbatches& tokens) {
  return {tokens.count, tokens.each * model.top_k, tokens.last * model.top_k};
}

/// Another source's counts without the rows beyond the experts' capacity, and filled up to it if the router pads.
class WithinCapacity : public RoutingSource {
 public:
  WithinCapacity(std::unique_ptr<RoutingSource> all, const ModelSpec& model, const Microbatches& rows)
      : all_(std::move(all)), router_(model.router), rows_(rows) {}
  std::vector<double> counts(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                             std::int64_t rank) const override {
    std::vector<double> out = all_->counts(step, microbatch, layer, rank);
    const auto most =
        static_cast<double>(router_.capacity(rows_.of(microbatch), static_cast<std::int64_t>(out.size())));
    for (double& rows : out) rows = router_.padded ? most : std::min(rows, most);
    return out;
  }
  bool same_in_every_microbatch() const override { return all_->same_in_every_microbatch(); }
  bool same_on_every_rank() const override { return all_->same_on_every_rank(); }
  std::vector<std::int64_t> recorded_steps() const override { return all_->recorded_steps(); }
  std::string description() const override { return all_->description(); }

 private:
  std::unique_ptr<RoutingSource> all_;
  RouterSpec router_;
  Microbatches rows_;
};

std::unique_ptr<RoutingSource> within_capacity(std::unique_ptr<RoutingSource> all, const ModelSpec& model,
                                               const Microbatches& tokens) {
  if (!model.router.drops()) return all;
  return std::make_unique<WithinCapacity>(std::move(all), model, rows_of(model, tokens));
}

/// Reads a CSV with a header line into rows of cells; '#' starts a comment line.
std::vector<std::vector<std::string>> read_cells(const std::filesystem::path& csv) {
  std::ifstream in(csv);
  if (!in) throw_usage("{}: cannot be read; needs a CSV file", csv.string());
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> cells;
    std::stringstream split(line);
    for (std::string cell; std::getline(split, cell, ',');) cells.push_back(cell);
    rows.push_back(std::move(cells));
  }
  if (rows.size() < 2) throw_usage("{}: found no rows, needs a header and at least one row", csv.string());
  return rows;
}

/// The largest count or step number that is accepted; doubles are exact up to here.
constexpr double kLargest = 1e15;

double to_number(const std::string& cell, const std::filesystem::path& csv, std::size_t line) {
  try {
    if (const double value = std::stod(cell); value >= 0 && value <= kLargest) return value;
  } catch (const std::exception&) {  // not a number: reported below
  }
  throw_usage("{}: row {}: found '{}', needs a count from 0 to {}", csv.string(), line, shortened(cell), kLargest);
}

}  // namespace

std::unique_ptr<RoutingSource> balanced_routing(const ModelSpec& model, const Microbatches& tokens) {
  const std::vector<std::vector<double>> even{std::vector<double>(static_cast<std::size_t>(model.experts), 1.0)};
  return within_capacity(std::make_unique<Histogram>(even, rows_of(model, tokens), "balanced (assumed)"), model,
                         tokens);
}

std::unique_ptr<RoutingSource> histogram_routing(const ModelSpec& model, const Microbatches& tokens,
                                                 const std::vector<std::vector<double>>& shares,
                                                 std::string description, const std::vector<double>& kept) {
  for (const auto& row : shares)
    if (static_cast<std::int64_t>(row.size()) != model.experts)
      throw_usage("routing histogram: found {} experts a layer, the model has {}; use a recording of the same model",
                  row.size(), model.experts);
  return within_capacity(std::make_unique<Histogram>(shares, rows_of(model, tokens), std::move(description), kept),
                         model, tokens);
}

std::vector<std::vector<double>> read_histogram(const std::filesystem::path& csv, std::int64_t experts) {
  const auto rows = read_cells(csv);
  const auto column = [&](const std::string& name) {
    const auto it = std::ranges::find(rows[0], name);
    if (it == rows[0].end()) throw_usage("{}: column '{}' missing; needs layer, expert, count", csv.string(), name);
    return static_cast<std::size_t>(it - rows[0].begin());
  };
  const std::size_t layer = column("layer"), expert = column("expert"), count = column("count");
  std::map<double, std::vector<double>> layers;
  std::size_t most = static_cast<std::size_t>(experts);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size())
      throw_usage("{}: row {}: found {} cells, needs {}", csv.string(), i + 1, rows[i].size(), rows[0].size());
    auto& shares = layers[to_number(rows[i][layer], csv, i + 1)];
    const double index = to_number(rows[i][expert], csv, i + 1);
    if (index >= static_cast<double>(limits::kExperts))
      throw_usage("{}: row {}: found expert {}, needs one below {}", csv.string(), i + 1, index, limits::kExperts);
    if (experts > 0 && index >= static_cast<double>(experts))
      throw_usage("{}: row {}: found expert {}, the model has {}", csv.string(), i + 1, index, experts);
    most = std::max(most, static_cast<std::size_t>(index) + 1);
    shares.resize(most, 0.0);
    shares[static_cast<std::size_t>(index)] += to_number(rows[i][count], csv, i + 1);
  }
  std::vector<std::vector<double>> out;
  for (auto& [index, shares] : layers) {
    shares.resize(most, 0.0);
    out.push_back(std::move(shares));
  }
  return out;
}

std::unique_ptr<RoutingSource> recorded_routing(const std::filesystem::path& csv, const ModelSpec& model,
                                                const Microbatches& tokens) {
  const auto rows = read_cells(csv);
  const std::size_t experts = static_cast<std::size_t>(model.experts);
  if (rows[0].size() != 4 + experts)
    throw_usage("{}: found {} columns, needs step, microbatch, layer, rank and {} experts", csv.string(),
                rows[0].size(), experts);
  std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> steps;
  Recording::Exact exact;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size())
      throw_usage("{}: row {}: found {} cells, needs {}", csv.string(), i + 1, rows[i].size(), rows[0].size());
    Recording::Key key{};
    for (std::size_t k = 0; k < key.size(); ++k) key[k] = static_cast<std::int64_t>(to_number(rows[i][k], csv, i + 1));
    auto& counts = exact[key];
    for (std::size_t e = 0; e < experts; ++e) counts.push_back(to_number(rows[i][4 + e], csv, i + 1));
    auto& shares = steps[key[0]][key[2]];
    shares.resize(experts, 0.0);
    for (std::size_t e = 0; e < experts; ++e) shares[e] += counts[e];
  }
  return within_capacity(std::make_unique<Recording>(std::move(exact), std::move(steps), rows_of(model, tokens),
                                                     "recorded in " + csv.filename().string()),
                         model, tokens);
}

std::vector<std::int64_t> whole_rows(const std::vector<double>& counts, std::int64_t tokens) {
  std::vector<std::int64_t> rows;
  for (const double count : counts) rows.push_back(static_cast<std::int64_t>(std::floor(count)));
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return counts[a] - std::floor(counts[a]) > counts[b] - std::floor(counts[b]);
  });
  std::int64_t missing = std::llround(std::accumulate(counts.begin(), counts.end(), 0.0)) -
                         std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  for (std::size_t i = 0; missing > 0; ++i, --missing) ++rows[order[i % order.size()]];
  if (const auto most = std::ranges::max_element(rows); most != rows.end() && *most > tokens)
    throw_usage(
        "routing: found {} rows for expert {}, {} tokens allow one each; use a recording or histogram of this model",
        *most, most - rows.begin(), tokens);
  return rows;
}

std::vector<double> rows_received(const std::vector<std::vector<double>>& counts, const Layout& layout,
                                  std::int64_t layer) {
  std::vector<double> rows(static_cast<std::size_t>(layout.expert), 0.0);
  for (const auto& source : counts) {
    const std::vector<double> slots = rows_per_slot(layout, layer, source);
    const std::size_t per_rank = slots.size() / rows.size();
    for (std::size_t slot = 0; slot < slots.size(); ++slot) rows[slot / per_rank] += slots[slot];
  }
  return rows;
}

double share_sent_once(double place, std::int64_t rows_of_token) {
  const double rows = static_cast<double>(rows_of_token);
  return place <= 0 ? 1 : (1 - std::pow(1 - std::min(1.0, place), rows)) / (rows * place);
}

}  // namespace wt
