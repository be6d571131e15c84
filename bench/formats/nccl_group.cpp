#include "bench/formats/nccl_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "configs/base/text.hpp"

namespace wt {
namespace {

/// busbw / algbw of a run, within the rounding of its columns.
struct Ratio {
  double least = 0, most = 4;
  void narrow(const NcclSide& side) {
    const auto [alg, alg_half] = side.algbw_GBps;
    const auto [bus, bus_half] = side.busbw_GBps;
    if (alg <= alg_half) return;
    least = std::max(least, (bus - bus_half) / (alg + alg_half));
    most = std::min(most, (bus + bus_half) / (alg - alg_half));
  }
  bool holds(double ratio) const { return ratio >= least * (1 - 1e-9) && ratio <= most * (1 + 1e-9); }
};

Ratio ratio_of(const NcclRun& run) {
  Ratio out;
  for (const NcclRow& row : run.rows) out.narrow(row.out_of_place), out.narrow(row.in_place);
  return out;
}

bool tells_ranks(const std::string& test) { return nccl_bus_factor(test, 2) != nccl_bus_factor(test, 3); }

/// The only number of ranks up to `most` that the ratio is of.
std::optional<std::int64_t> ranks_by(const Ratio& ratio, const std::string& test, std::int64_t most) {
  std::optional<std::int64_t> only;
  for (std::int64_t n = 1; tells_ranks(test) && n <= most; ++n) {
    if (!ratio.holds(nccl_bus_factor(test, static_cast<double>(n)))) continue;
    if (only) return std::nullopt;
    only = n;
  }
  return only;
}

NcclGroup listed_group(const NcclRun& run) {
  NcclGroup out;
  out.ranks = static_cast<std::int64_t>(run.devices.size());
  std::set<std::int64_t> groups;
  std::set<std::string> hosts;
  std::map<std::string, std::int64_t> on_host;
  for (const NcclDevice& device : run.devices) {
    groups.insert(device.group);
    out.gpus_per_host = std::max(out.gpus_per_host, ++on_host[device.host]);
    if (device.group != run.devices.front().group) continue;
    out.members.push_back(device.rank);
    hosts.insert(device.host);
  }
  out.groups = static_cast<std::int64_t>(groups.size());
  out.hosts = static_cast<std::int64_t>(hosts.size());
  return out;
}

NcclGroup said_group(const NcclTestsOptions& options) {
  NcclGroup out;
  out.ranks = options.gpus;
  out.gpus_per_host = std::min(options.gpus, options.gpus_per_host);
  out.hosts = (options.gpus + out.gpus_per_host - 1) / out.gpus_per_host;
  for (std::int64_t rank = 0; rank < options.gpus; ++rank) out.members.push_back(rank);
  return out;
}

}  // namespace

double nccl_bus_factor(const std::string& test, double ranks) {
  if (test == "all_reduce") return 2 * (ranks - 1) / ranks;
  const bool whole = test == "broadcast" || test == "reduce" || test == "send_recv" || test == "hypercube";
  return whole ? 1 : (ranks - 1) / ranks;
}

NcclGroup group_of(const NcclRun& run, const std::string& test, const NcclTestsOptions& options,
                   const std::string& origin) {
  const Ratio ratio = ratio_of(run);
  constexpr std::int64_t kMostRanks = 100000;  // beyond, the ratio's digits no longer tell
  if (run.devices.empty() && options.gpus == 0) {
    const auto by_ratio = ranks_by(ratio, test, kMostRanks);
    refuse_nccl(origin, "no list of devices ('#  Rank  0 ... on HOST device  0 [..] GPU')",
                fmt::format("the tests' whole output; or say what ran: --gpus {} and --cluster{}",
                            by_ratio ? std::to_string(*by_ratio) : "N",
                            by_ratio ? " (busbw / algbw is that of " + counted(*by_ratio, "GPU") + ")" : ""));
  }
  if (!run.devices.empty() && options.gpus > 0 && options.gpus != static_cast<std::int64_t>(run.devices.size()))
    refuse_nccl(origin, fmt::format("a list of {}", counted(static_cast<std::int64_t>(run.devices.size()), "device")),
                fmt::format("the {} of --gpus; leave the flag out", options.gpus));
  NcclGroup out = run.devices.empty() ? said_group(options) : listed_group(run);
  const auto size = static_cast<std::int64_t>(out.members.size());
  if (ratio.holds(nccl_bus_factor(test, static_cast<double>(size)))) return out;

  const auto found = ranks_by(ratio, test, out.ranks);
  const std::string betrayed =
      found ? "is that of " + counted(*found, "rank")
      : ratio.least > ratio.most
          ? "differs from row to row"
          : fmt::format("({:.4g} to {:.4g}) is that of no number of ranks", ratio.least, ratio.most);
  // On one host it does not matter which of the ranks are a group.
  if (found && *found > 1 && out.groups == 1 && out.hosts == 1 && out.ranks % *found == 0) {
    out.groups = out.ranks / *found;
    out.members.resize(static_cast<std::size_t>(*found));
    return out;
  }
  refuse_nccl(
      run.rows.front().where,
      fmt::format("{} of {} ranks, but busbw / algbw {}",
                  run.devices.empty() ? "--gpus"
                  : out.groups > 1    ? "a group"
                                      : "a list",
                  size, betrayed),
      fmt::format("{:.4g}, as {} prints it for {}; {}", nccl_bus_factor(test, static_cast<double>(size)), test, size,
                  found && *found == 1 ? kNcclOneRun
                                       : "name the test with --test if its name is wrong, and keep the groups in "
                                         "the list of devices if the run was split (NCCL_TESTS_SPLIT)"));
}

}  // namespace wt
