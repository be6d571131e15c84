#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "configs/base/number.hpp"
#include "sim/bounds/layer_seconds.hpp"
#include "sim/program/compose/expert_copies.hpp"

namespace wt {
namespace {

/// Rows that each rank of an expert group sends to each expert rank. Every source sends the same.
std::vector<double> rows_sent(const Layout& layout, const RoutingSource& routing, std::int64_t layer) {
  std::vector<double> rows = rows_received({routing.counts(0, 0, layer, 0)}, layout, layer);
  if (layout.whole_experts)  // each tensor rank of a data rank has its share of the tokens
    for (double& each : rows) each /= as_double(layout.tensor);
  return rows;
}

/// Rows of an exchange through a member's ports: its own on the way out, all others' on the way in.
class Ports {
 public:
  Ports(const Layout& layout, const ClusterSpec& cluster, std::int64_t rank, std::int64_t rows_of_token)
      : rows_of_token_(rows_of_token) {
    const Mesh mesh(layout);
    std::map<std::int64_t, std::size_t> numbers;
    for (const std::int64_t member : mesh.members(Axis::expert, mesh.group_index(Axis::expert, rank)))
      node_of_.push_back(numbers.try_emplace(cluster.node_of(member), numbers.size()).first->second);
    members_on_.assign(numbers.size(), 0);
    for (const std::size_t node : node_of_) members_on_[node] += 1;
  }

  /// `sent`: rows from each member to every other member, on their way to the experts. `back`: on the way back.
  PortRows of(std::size_t own, const std::vector<double>& sent, bool back) const {
    const std::size_t here = node_of_[own];
    const double all = back ? as_double(std::ssize(sent)) : std::accumulate(sent.begin(), sent.end(), 0.0);
    std::vector<double> to_node(members_on_.size(), 0.0);
    const auto share = [&](std::size_t member) { return all > 0 ? (back ? 1 : sent[member]) / all : 0; };
    for (std::size_t j = 0; j < sent.size(); ++j) to_node[node_of_[j]] += share(j);
    for (double& place : to_node) place = sent_once(place);
    const double to_own = sent_once(share(own));
    double nic_out = 0, nic_in = 0, nvlink_out = 0, nvlink_in = 0;
    for (std::size_t j = 0; j < sent.size(); ++j) {
      if (j == own) continue;
      const double out = sent[back ? own : j], in = sent[back ? j : own];
      if (node_of_[j] == here) {
        nvlink_out += out * sent_once(share(j)), nvlink_in += in * to_own;
        continue;
      }
      nic_out += out * to_node[node_of_[j]], nic_in += in * to_node[here];
      if (rows_of_token_ == 0) continue;
      const double passed = in * to_own * (1 - 1 / members_on_[here]);
      nvlink_out += passed, nvlink_in += passed;
    }
    return {std::max(nic_out, nic_in), std::max(nvlink_out, nvlink_in)};
  }

 private:
  /// Messages per row to a destination with the share `place` of a member's rows, if each token is sent once.
  double sent_once(double place) const { return rows_of_token_ > 0 ? share_sent_once(place, rows_of_token_) : 1; }

  std::int64_t rows_of_token_;
  std::vector<std::size_t> node_of_;  ///< by member; nodes count from 0
  std::vector<double> members_on_;    ///< by node
};

}  // namespace

LayerLoads LayerLoads::times(double factor) const {
  LayerLoads out = *this;
  for (std::vector<RoutingFloor>* floors : {&out.own, &out.fullest})
    for (RoutingFloor& f : *floors) {
      for (double* rows : {&f.rows, &f.returned_rows, &f.sent_rows}) *rows *= factor;
      for (PortRows* ports : {&f.dispatched, &f.collected}) ports->nic *= factor, ports->nvlink *= factor;
    }
  return out;
}

LayerLoads layer_loads(const ModelSpec& model, const Layout& layout, const ClusterSpec& cluster,
                       const RoutingSource& routing, std::int64_t rank) {
  LayerLoads loads;
  loads.sent = true;
  if (layout.expert == 1) return loads;
  const Ports ports(layout, cluster, rank, sends_once(layout.dispatcher) ? model.top_k : 0);
  const std::size_t own = static_cast<std::size_t>(layout.row_rank(rank) % layout.expert);
  for (std::int64_t layer = 0; layer < model.blocks(); ++layer) {
    const std::vector<double> sent = rows_sent(layout, routing, layer);
    const double all = std::accumulate(sent.begin(), sent.end(), 0.0);
    const auto floor = [&](std::size_t of) {
      const double received = as_double(layout.expert) * sent[of];
      RoutingFloor out{received, all > 0 ? 1 - sent[of] / all : 0, received - sent[of]};
      if (cluster.shared_cores()) return out;
      out.sent_rows = all;
      out.dispatched = ports.of(of, sent, false);
      out.collected = ports.of(of, sent, true);
      return out;
    };
    const auto fullest = static_cast<std::size_t>(std::ranges::max_element(sent) - sent.begin());
    loads.own.push_back(floor(own));
    loads.fullest.push_back(fullest == own ? loads.own.back() : floor(fullest));
  }
  return loads;
}

LayerLoads own_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing, std::int64_t rank) {
  LayerLoads loads;
  if (layout.expert == 1) return loads;
  const std::size_t own = static_cast<std::size_t>(layout.row_rank(rank) % layout.expert);
  for (std::int64_t layer = 0; layer < model.blocks(); ++layer)
    loads.own.push_back({as_double(layout.expert) * rows_sent(layout, routing, layer)[own], 0, 0});
  return loads;
}

std::vector<LayerLoads> group_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing) {
  LayerLoads kernels;
  kernels.kernels_alone = true;
  if (layout.expert == 1) return {kernels};
  const int layers = static_cast<int>(model.blocks());
  const RoutingTable table(routing, layout, layers, 1, 0, {0});
  std::set<std::vector<double>> known;
  std::vector<LayerLoads> out;
  for (std::int64_t e = 0; e < layout.expert; ++e) {
    std::vector<double> rows;
    for (int layer = 0; layer < layers; ++layer)
      rows.push_back(table.rows(0, layer, e * (layout.whole_experts ? 1 : layout.tensor)));
    if (!known.insert(rows).second) continue;
    LayerLoads& loads = out.emplace_back(kernels);
    for (const double each : rows) loads.own.push_back({each, 0, 0});
  }
  return out;
}

}  // namespace wt
