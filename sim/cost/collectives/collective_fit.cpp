#include "sim/cost/collectives/collective_fit.hpp"

#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/support/error.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"
#include "sim/cost/fit/least_squares.hpp"
#include "sim/measurements/fabric.hpp"

namespace wt {
namespace {

constexpr double kNodeFloor_s = 17e-6;  // any all-reduce inside a node: 1 KiB on 8 H100 (dgxc-benchmarking: 16.9 us)
constexpr double kPythonPrior_s = 15e-6;
constexpr double kResidualScale = 0.1;
// Spread of the constants' logarithms over links and fabrics: latencies by a factor
// over links (InfiniBand against EFA) and by a third over fabrics of one link, rates by a tenth.
constexpr std::array<double, 3> kLinkSpread = {0.8, 0.8, 0.1}, kFabricSpread = {0.3, 0.3, 0.1};
constexpr double kBaseSpread = 1.5;  // of the base around its start: all but free
// Where fits begin: latency and fill of a step, share of the nominal rate.
constexpr std::array<double, 3> kOneNode = {20e-6, 5e-6, 0.8}, kManyNodes = {40e-6, 20e-6, 0.9};

// Of NVLink's nominal rate, published plateaus on one node: 270 of 450 GB/s with SHARP, 232 of 300 and 370 of 450 in a
// ring.
constexpr double kSwitchShare = 0.6, kRingShare = 0.8;

double as_double(std::int64_t value) { return static_cast<double>(value); }

bool switch_reduces(const CollectiveRow& row, const DataSheet& gpu) {
  const std::int64_t least = nvls_least_ranks(gpu.generation);
  return row.collective == "all_reduce" && gpu.nvlink() && least > 0 && row.fewest() >= as_double(least) &&
         !forced_ring(row);
}

/// In a ring each GPU passes its share on; with SHARP it sends the buffer once, whatever the number of GPUs.
double in_node_s(const CollectiveRow& row, const DataSheet& gpu) {
  return (switch_reduces(row, gpu) ? row.bytes : row.bytes * bus_share(row.collective, row.gpus)) / gpu.link_Bps;
}

/// A GPU drives its own adapters. Where nodes hold unlike numbers of a group's ranks, the node with fewest decides:
/// each ring and tree enters and leaves every node, through what that one drives, and in an exchange its ranks send the
/// most to other nodes.
double over_nodes_s(const CollectiveRow& row, const DataSheet& gpu, double node_Bps) {
  const double n = as_double(row.gpus), fewest = row.fewest();
  const double gpu_Bps = node_Bps / as_double(row.gpus_per_node);
  const double adapters_Bps = node_Bps * std::min(1.0, fewest / as_double(row.gpus_per_node));
  if (row.collective == "sendrecv") return std::max(row.bytes / std::min(gpu_Bps, adapters_Bps), in_node_s(row, gpu));
  if (row.collective == "alltoall") return row.bytes * (n - fewest) / n * fewest / adapters_Bps;
  // Two nodes reduce inside first and exchange their sums; more pass a ring or trees through every adapter.
  if (row.collective == "all_reduce" && row.nodes == 2)
    return std::max(row.bytes / adapters_Bps,
                    in_node_s(row, gpu) / (switch_reduces(row, gpu) ? kSwitchShare : kRingShare));
  return std::max(row.bytes * bus_share(row.collective, row.gpus) / adapters_Bps, in_node_s(row, gpu));
}

}  // namespace

CollectiveSample collective_sample(const CollectiveRow& row) {
  CollectiveSample s;
  s.row = &row;
  s.group = fmt::format("{} | {} | {} nodes, {} GPUs | {}", row.source, row.gpu, row.nodes, row.gpus, row.fabric);
  s.python = timed_from_python(row);
  s.reason = row.unusable;
  if (row.collective == "all_reduce")
    s.kind = "all-reduce";
  else if (row.collective == "all_gather" || row.collective == "reduce_scatter" || row.collective == "broadcast" ||
           row.collective == "sendrecv")
    s.kind = "gather";
  else if (row.collective == "alltoall")
    s.kind = "exchange";
  else if (s.reason.empty())
    s.reason = fmt::format("no model of '{}'", row.collective);
  const auto gpu = data_sheet(row.gpu);
  if (!gpu && s.reason.empty()) s.reason = fmt::format("no data sheet of '{}'", row.gpu);
  if (row.seconds <= 0 && s.reason.empty()) s.reason = "neither time nor bandwidth measured";
  if (reduces_in_network(row) && s.reason.empty()) s.reason = "reduction in the network's switches is not modelled";
  const auto fabric = s.many() ? fabric_of(row) : std::nullopt;
  if (s.many() && !fabric && s.reason.empty())
    s.reason = fmt::format("'{}' does not say how many adapters a node has and how fast they are (8x400G)", row.fabric);
  if (!s.reason.empty()) return s;
  if (s.many()) {
    s.link = fabric->family;
    s.fabric = row.fabric;
    s.transport = fabric->transport;
    s.steps = s.kind == "all-reduce"         ? std::log2(as_double(row.nodes))
              : row.collective == "sendrecv" ? 1
                                             : as_double(row.nodes - 1);
    s.transfer_s = over_nodes_s(row, *gpu, fabric->node_Bps);
  } else {
    s.link = gpu->nvlink()
                 ? fmt::format("NVLink{} {}", gpu->generation - 5, switch_reduces(row, *gpu) ? "SHARP" : "ring")
                 : "PCIe";
    s.transfer_s = in_node_s(row, *gpu);
  }
  return s;
}

namespace {

double price(const CollectiveSample& s, const CollectiveFit::Constants& c, double python_s) {
  const double transfer = s.transfer_s / c.share;
  return (s.many() ? kNodeFloor_s : 0) + (s.python ? python_s : 0) + c.latency_s * s.steps +
         2 * std::sqrt(c.fill_s * s.steps * transfer) + transfer;
}

}  // namespace

CollectiveFit::CollectiveFit(const std::vector<const CollectiveSample*>& samples) {
  if (samples.empty()) throw_error(Code::usage, "fit of collectives: found no measurement, allowed at least one");
  // Parameters: logarithms of the base, of a factor each link and each fabric, and the host time.
  std::map<std::string, Eigen::Index> link_at, fabric_at;
  for (const CollectiveSample* s : samples) link_at.emplace(s->link, 0), fabric_at.emplace(s->fabric, 0);
  Eigen::Index next = 3;
  for (auto& [name, at] : link_at) at = next, next += 3;
  const Eigen::Index fabrics_at = next;
  for (auto& [name, at] : fabric_at) at = next, next += 3;
  const Eigen::Index python_at = next++;

  const auto& typical = samples.front()->many() ? kManyNodes : kOneNode;
  const auto at_row = [&](const Eigen::VectorXd& p, Eigen::Index link, Eigen::Index fabric) {
    std::array<double, 3> c{};
    for (Eigen::Index i = 0; i < 3; ++i)
      c[static_cast<std::size_t>(i)] =
          typical[static_cast<std::size_t>(i)] * std::exp(std::clamp(p[i] + p[link + i] + p[fabric + i], -20.0, 20.0));
    return Constants{c[0], c[1], c[2]};
  };
  std::vector<std::pair<Eigen::Index, Eigen::Index>> places;
  for (const CollectiveSample* s : samples) places.emplace_back(link_at.at(s->link), fabric_at.at(s->fabric));
  const auto rows = static_cast<Eigen::Index>(samples.size());
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    for (Eigen::Index i = 0; i < rows; ++i) {
      const CollectiveSample& s = *samples[static_cast<std::size_t>(i)];
      const auto [link, fabric] = places[static_cast<std::size_t>(i)];
      const double seconds = price(s, at_row(p, link, fabric), kPythonPrior_s * std::abs(p[python_at]));
      out[i] = robust(std::log(seconds / s.row->seconds) / kResidualScale);
    }
    for (Eigen::Index j = 0; j < python_at; ++j) {
      const auto constant = static_cast<std::size_t>(j % 3);
      out[rows + j] = p[j] / (j < 3 ? kBaseSpread : j < fabrics_at ? kLinkSpread[constant] : kFabricSpread[constant]);
    }
    out[rows + python_at] = p[python_at] - 1;
  };
  Eigen::VectorXd start = Eigen::VectorXd::Zero(next);
  start[python_at] = 1;
  const Eigen::VectorXd p = least_squares(residuals, rows + next, start);

  const auto three = [&](Eigen::Index at) { return Logs{p[at], p[at + 1], p[at + 2]}; };
  base_ = three(0);
  for (std::size_t i = 0; i < 3; ++i) base_[i] += std::log(typical[i]);
  for (const auto& [name, at] : link_at) links_[name] = three(at);
  for (const auto& [name, at] : fabric_at) fabrics_[name] = three(at);
  python_s_ = kPythonPrior_s * std::abs(p[python_at]);
}

CollectiveFit::Constants CollectiveFit::constants(const std::string& link, const std::string& fabric) const {
  Logs logs = base_;
  const auto add = [&](const std::map<std::string, Logs>& factors, const std::string& name) {
    if (const auto found = factors.find(name); found != factors.end())
      for (std::size_t i = 0; i < 3; ++i) logs[i] += found->second[i];
  };
  add(links_, link);
  add(fabrics_, fabric);
  return {std::exp(logs[0]), std::exp(logs[1]), std::exp(logs[2])};
}

double CollectiveFit::seconds(const CollectiveSample& sample) const {
  return price(sample, constants(sample.link, sample.fabric), python_s_);
}

}  // namespace wt
