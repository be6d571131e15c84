#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/estimate/layer_seconds.hpp"
#include "sim/replay/routing_table.hpp"

namespace wt {
namespace {

/// What exchanges of rows put on one rank's ports.
class PortsOfRank {
 public:
  PortsOfRank(const Layout& layout, const ClusterSpec& cluster, std::int64_t rank, std::int64_t rows_of_token)
      : n_(static_cast<std::size_t>(layout.expert)),
        own_(static_cast<std::size_t>(layout.row_rank(rank) % layout.expert)),
        rows_of_token_(rows_of_token) {
    const Mesh mesh(layout);
    std::map<std::int64_t, std::size_t> numbers;
    for (const std::int64_t member : mesh.members(Axis::expert, mesh.group_index(Axis::expert, rank)))
      node_of_.push_back(numbers.try_emplace(cluster.node_of(member), numbers.size()).first->second);
    members_on_.assign(numbers.size(), 0);
    for (const std::size_t node : node_of_) members_on_[node] += 1;
  }

  /// `sends`: [source * n + expert rank]; `back`: the other way.
  PortRows rows(const std::vector<double>& sends, bool back) const {
    double nic_out = 0, nic_in = 0, nvlink_out = 0, nvlink_in = 0;
    std::vector<double> to_node(members_on_.size());
    for (std::size_t i = 0; i < n_; ++i) {
      double all = 0;
      std::fill(to_node.begin(), to_node.end(), 0.0);
      const auto row = [&](std::size_t j) { return back ? sends[j * n_ + i] : sends[i * n_ + j]; };
      for (std::size_t j = 0; j < n_; ++j) all += row(j), to_node[node_of_[j]] += row(j);
      const auto once = [&](double rows, double there) {
        return rows_of_token_ > 0 && all > 0 ? rows * share_sent_once(there / all, rows_of_token_) : rows;
      };
      if (i == own_) {
        for (std::size_t j = 0; j < n_; ++j)
          if (j != i && node_of_[j] == node_of_[i])
            nvlink_out += once(row(j), row(j));
          else if (j != i)
            nic_out += once(row(j), to_node[node_of_[j]]);
      } else if (node_of_[i] == node_of_[own_]) {
        nvlink_in += once(row(own_), row(own_));
      } else {
        nic_in += once(row(own_), to_node[node_of_[own_]]);
        if (rows_of_token_ == 0) continue;
        const double passed = once(row(own_), row(own_)) * (1 - 1 / members_on_[node_of_[own_]]);
        nvlink_out += passed, nvlink_in += passed;
      }
    }
    return {std::max(nic_out, nic_in), std::max(nvlink_out, nvlink_in)};
  }

 private:
  std::size_t n_, own_;
  std::int64_t rows_of_token_;
  std::vector<std::size_t> node_of_;  ///< by member, nodes numbered from 0
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
  const std::int64_t rows_of_token = layout.dispatcher == Dispatcher::alltoall ? 0 : model.top_k;
  const Mesh mesh(layout);
  const std::vector<std::int64_t> members = mesh.members(Axis::expert, mesh.group_index(Axis::expert, rank));
  const int layers = static_cast<int>(model.blocks());
  const RoutingTable table(routing, layout, layers, 1, 0, {layout.row_rank(rank) / layout.expert});
  for (int layer = 0; layer < layers; ++layer) {
    const std::int64_t fullest = *std::max_element(members.begin(), members.end(), [&](std::int64_t a, std::int64_t b) {
      return table.rows(0, layer, a) < table.rows(0, layer, b);
    });
    const auto floor = [&](std::int64_t of) {
      RoutingFloor out = floor_of(table, layout, 0, layer, of);
      if (cluster.shared_cores()) return out;
      const PortsOfRank ports(layout, cluster, of, rows_of_token);
      const auto& sends = table.sends(0, layer, of);
      for (auto row = sends.begin(); row != sends.end(); row += layout.expert)
        out.sent_rows = std::max(out.sent_rows, std::accumulate(row, row + layout.expert, 0.0));
      out.dispatched = ports.rows(sends, false);
      out.collected = ports.rows(sends, true);
      return out;
    };
    loads.own.push_back(floor(rank));
    loads.fullest.push_back(fullest == rank ? loads.own.back() : floor(fullest));
  }
  return loads;
}

LayerLoads own_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing, std::int64_t rank) {
  LayerLoads loads;
  if (layout.expert == 1) return loads;
  const int layers = static_cast<int>(model.blocks());
  const RoutingTable table(routing, layout, layers, 1, 0, {layout.row_rank(rank) / layout.expert});
  for (int layer = 0; layer < layers; ++layer) loads.own.push_back({table.rows(0, layer, rank), 0, 0});
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
