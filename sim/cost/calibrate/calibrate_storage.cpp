// Rows of bench storage: times to write and read a save's files. Several ranks work at once, on one or more nodes:
// seconds = latency + bytes / rate(ranks of a node, nodes), with one latency for all rows.
#include <algorithm>
#include <map>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "sim/cost/calibrate/calibration.hpp"
#include "sim/statistics/non_negative_fit.hpp"

namespace wt::detail {
namespace {

/// The store limits the rate if all nodes together reach less than this share of the sum of their single rates.
constexpr double kShared = 0.9;

struct StorageRow {
  std::int64_t bytes = 0, ranks = 1, nodes = 1;  ///< bytes of all ranks
  double seconds = 0;
  Evidence evidence = Evidence::assumed;
  std::int64_t node_ranks() const { return ceil_div(ranks, nodes); }
};

StorageRow storage_row(const Measurement& m) {
  const StorageRow row{shape_value(m, "bytes"), shape_value(m, "ranks"), value_or(m.shape, "nodes", 1), m.median(),
                       m.evidence.kind};
  if (row.bytes < 1 || row.ranks < 1 || row.nodes < 1 || row.nodes > row.ranks)
    throw_usage(
        "profile, measurement '{}': found {} bytes by {} ranks on {} nodes, allowed are at least one byte and one rank "
        "a node; run 'windtunnel bench storage' again",
        m.name(), row.bytes, row.ranks, row.nodes);
  if (!(row.seconds > 0))
    throw_usage(
        "profile, measurement '{}': found a median of {} s, allowed is a time above 0; run 'windtunnel bench storage' "
        "again",
        m.name(), row.seconds);
  return row;
}

using Together = std::pair<std::int64_t, std::int64_t>;  // nodes, ranks of each node

/// Bytes per second of each group of rows, and in `latency_s` the latency of all rows.
std::map<Together, double> fit_groups(const std::vector<StorageRow>& rows, double& latency_s) {
  std::map<Together, std::size_t> columns;
  std::map<Together, const StorageRow*> largest;
  for (const StorageRow& row : rows) {
    const Together group{row.nodes, row.node_ranks()};
    columns.emplace(group, columns.size());
    const StorageRow*& known = largest[group];
    if (known == nullptr || known->bytes < row.bytes) known = &row;
  }
  std::vector<std::vector<double>> features;
  std::vector<double> seconds;
  for (const StorageRow& row : rows) {
    std::vector<double>& f = features.emplace_back(columns.size() + 1, 0.0);
    f[columns.at({row.nodes, row.node_ranks()})] = as_double(row.bytes);
    f.back() = 1;  // last column: of equally good fits, the one without a latency wins
    seconds.push_back(row.seconds);
  }
  const std::vector<double> fit = fit_relative(features, seconds);
  latency_s = fit.back();
  std::map<Together, double> rates;
  for (const auto& [group, column] : columns) {
    const StorageRow& row = *largest.at(group);  // used if the rows are too small to fit a rate
    rates[group] = fit[column] > 0 ? 1 / fit[column] : as_double(row.bytes) / row.seconds;
  }
  return rates;
}

/// The rates of one node are measured on the fewest nodes that had so many ranks each. The largest number of nodes
/// tells what share of the sum of these rates all nodes reach together.
StorageRate storage_rate(const std::vector<StorageRow>& rows, const std::string& kernel) {
  StorageRate out{.rows = static_cast<std::int64_t>(rows.size())};
  std::map<std::int64_t, double> node;
  const std::map<Together, double> groups = fit_groups(rows, out.latency_s);
  for (const auto& [group, Bps] : groups) node.emplace(group.second, Bps / as_double(group.first));
  for (const auto& [ranks, Bps] : node)  // if more ranks reach less, the rate of fewer ranks counts
    out.node.push_back({ranks, std::max(Bps, out.node.empty() ? 0.0 : out.node.back().Bps)});
  double reached = 0;
  for (const auto& [group, Bps] : groups) {
    const auto& [nodes, ranks] = group;
    if (nodes > out.nodes) out.nodes = nodes, reached = 0;
    reached = std::max(reached, Bps / (as_double(nodes) * out.node_Bps(ranks)));
    out.all_Bps = std::max(out.all_Bps, Bps);
  }
  out.limited = out.nodes > 1 && reached < kShared;
  Evidence weakest = Evidence::measured;
  std::int64_t most_ranks = 1;
  for (const StorageRow& row : rows) {
    weakest = std::max(weakest, row.evidence);
    most_ranks = std::max(most_ranks, row.node_ranks());
    out.largest_bytes = std::max(out.largest_bytes, row.bytes / row.ranks);
  }
  out.evidence = {weakest, fmt::format("{} of {}, up to {} on each of {}, {} a rank", counted(out.rows, "row"), kernel,
                                       counted(most_ranks, "rank"), counted(out.nodes, "node"),
                                       format_bytes(as_double(std::max<std::int64_t>(1, out.largest_bytes))))};
  return out;
}

double predicted_s(const StorageRate& rate, const StorageRow& row) {
  const double nodes = as_double(row.nodes) * rate.node_Bps(row.node_ranks());
  return rate.latency_s + as_double(row.bytes) / (rate.limited ? std::min(nodes, rate.all_Bps) : nodes);
}

}  // namespace

bool is_storage(const Measurement& m) { return m.kernel == kCheckpointWrite || m.kernel == kCheckpointRead; }

bool is_beside_storage(const Measurement& m) {
  return m.kernel == "disk_write" || m.kernel == "disk_read" || m.kernel == "client_write" || m.kernel == "client_read";
}

std::string store_of(const Profile& profile, const Measurement& m) {
  const std::string address = !m.backend.empty() ? m.backend : value_or(profile.fingerprint, "run.store");
  const bool folder = address.find("://") == std::string::npos || address.starts_with("file://");
  return folder ? "" : address;
}

void calibrate_storage(const std::vector<Sample>& samples, Calibration& out) {
  struct Rows {
    std::string name;
    std::map<std::string, std::vector<StorageRow>> of = {};  // by kernel
    std::int64_t warm = 0, cold = 0;
  };
  std::vector<Rows> stores;
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    const std::string name = store_of(*sample.profile, m);
    auto found = std::ranges::find_if(stores, [&](const Rows& rows) { return same_store(rows.name, name); });
    if (found == stores.end()) found = stores.insert(found, Rows{.name = name});
    const StorageRow row = storage_row(m);
    const auto cold = m.counters.find("cold");
    const bool warm = m.kernel == kCheckpointRead && cold != m.counters.end() && cold->second == 0;
    (warm ? found->warm : found->cold) += m.kernel == kCheckpointRead ? 1 : 0;
    if (!warm) found->of[m.kernel].push_back(row);
  }
  for (Rows& rows : stores) {
    if (rows.warm > 0 && rows.cold == 0) {  // a file system that keeps every page in memory also writes to memory
      out.notes.push_back(fmt::format(
          "left out: {} of checkpoint_write to {} whose files stay in memory (every read is warm); measure the storage "
          "that saves go to",
          counted(static_cast<std::int64_t>(rows.of[kCheckpointWrite].size()), "row"), store_words(rows.name)));
      continue;
    }
    if (rows.warm > 0)
      out.notes.push_back(fmt::format("left out: {} of checkpoint_read with warm caches", counted(rows.warm, "row")));
    StorageRates rates{.store = rows.name};
    for (const auto& [kernel, points] : rows.of) {
      StorageRate& rate = kernel == kCheckpointWrite ? rates.write : rates.read;
      rate = storage_rate(points, kernel);
      std::vector<double> measured, predicted;
      for (const StorageRow& row : points) measured.push_back(row.seconds), predicted.push_back(predicted_s(rate, row));
      out.residuals.push_back(
          residual_row(rates.store.empty() ? kernel : kernel + " " + rates.store, "storage", measured, predicted, {}));
    }
    if (rates.write.measured() || rates.read.measured()) out.data.storage.push_back(std::move(rates));
  }
}

}  // namespace wt::detail
