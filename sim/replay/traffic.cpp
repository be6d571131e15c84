#include "sim/replay/traffic.hpp"

#include <algorithm>
#include <map>

#include "configs/base/number.hpp"

namespace wt {

PoolLoad PoolSum::take() {
  std::ranges::sort(touched_);
  PoolLoad load;
  load.pools.reserve(touched_.size());
  load.amounts.reserve(touched_.size());
  for (const int pool : touched_) {
    double& sum = amounts_[static_cast<std::size_t>(pool)];
    if (sum > 0) {
      load.pools.push_back(pool);
      load.amounts.push_back(sum);
    }
    sum = 0;
  }
  touched_.clear();
  return load;
}

std::optional<GroupShape> group_shape(const ClusterSpec& cluster, const Layout& layout, Axis axis) {
  const std::int64_t node = cluster.gpus_per_node;
  const std::int64_t stride = Mesh(layout).stride(axis);
  GroupShape shape;
  shape.size = Mesh(layout).size(axis);
  if (cluster.shared_cores() || shape.size == 1) return shape;
  const std::int64_t span = stride * shape.size;  // ranks from the first member to the last, others included
  if ((node % span != 0 && span % node != 0) || (node % stride != 0 && stride % node != 0)) return std::nullopt;
  const std::int64_t members = std::min(shape.size, std::max<std::int64_t>(1, node / stride));
  shape.nodes = shape.size / members;
  const auto alone_s = [&](const PortBytes& ports) {
    return std::max(ports.nvlink / cluster.nvswitch_Bps, ports.nic > 0 ? ports.nic / cluster.nic_per_gpu_Bps() : 0);
  };
  const double n = as_double(shape.size), nodes = as_double(shape.nodes), k = as_double(members);
  shape.gather_s_per_byte = alone_s(gather_ports(n, nodes, k));
  for (const AllReduce each : kAllReduces)
    shape.reduce_s_per_byte[static_cast<std::size_t>(each)] = alone_s(all_reduce_ports(each, n, nodes, k));
  return shape;
}

double ring_bytes(OpKind kind, double bytes, std::int64_t ranks) {
  return kind == OpKind::broadcast ? bytes * as_double(ranks) / as_double(ranks - 1) : bytes;
}

Traffic::Traffic(const ClusterSpec& cluster, const Layout& layout, const Representatives& ranks,
                 const std::vector<NodeHealth>& health)
    : cluster_(cluster), mesh_(layout), shares_(ranks.uplink_shares), uplinks_(cluster.uplinks_matter()) {
  if (cluster_.shared_cores()) {
    capacity_ = {cluster_.cores};
    return;
  }
  local_.assign(static_cast<std::size_t>(layout.world()), -1);
  for (std::size_t i = 0; i < ranks.ranks.size(); ++i)
    local_[static_cast<std::size_t>(ranks.ranks[i])] = static_cast<int>(i);
  for (std::int64_t rank : ranks.ranks) {
    const NodeSpec& node = cluster_.of_kind(cluster_.kind_of(cluster_.node_of(rank)));
    double nic = cluster_.nic_per_gpu_Bps(node), nvlink = node.nvswitch_Bps;
    for (const NodeHealth& entry : health)
      if (entry.node == cluster_.node_of(rank)) nic *= entry.nic, nvlink *= entry.nvswitch;
    capacity_.insert(capacity_.end(), {nvlink, nvlink, nic, nic});
    kinds_.push_back(cluster_.kind_of(cluster_.node_of(rank)));
  }
  if (uplinks_) add_uplinks(ranks.ranks);
  sum_ = PoolSum(capacity_.size());
}

/// Uplink pools of whole leaves, or a share for each rank. A degraded leaf always has whole ones, as all of its ranks
/// are simulated.
void Traffic::add_uplinks(const std::vector<std::int64_t>& ranks) {
  // Bytes/s of a leaf's uplinks on one rail. Nodes missing on the last leaf count like its last node.
  const auto leaf_Bps = [&](std::int64_t leaf) {
    double sum = 0;
    for (std::int64_t i = 0; i < cluster_.nodes_per_leaf; ++i) {
      const std::int64_t node = std::min(leaf * cluster_.nodes_per_leaf + i, cluster_.nodes - 1);
      sum += cluster_.nic_per_gpu_Bps(cluster_.of_kind(cluster_.kind_of(node)));
    }
    return sum / cluster_.oversubscription;
  };
  std::map<std::int64_t, int> first;  // first pool of each leaf
  const auto add = [&](std::int64_t rails, double Bps) {
    const int pool = static_cast<int>(capacity_.size());
    capacity_.insert(capacity_.end(), static_cast<std::size_t>(2 * rails), Bps);
    return pool;
  };
  for (const std::int64_t rank : ranks) {
    const std::int64_t leaf = cluster_.leaf_of(cluster_.node_of(rank));
    if (!whole_uplinks(leaf)) {
      uplink_.push_back(add(1, leaf_Bps(leaf) / as_double(cluster_.nodes_per_leaf)));
      continue;
    }
    const auto [it, fresh] = first.try_emplace(leaf, 0);
    if (fresh) it->second = add(cluster_.gpus_per_node, leaf_Bps(leaf) * cluster_.uplink_of(leaf));
    uplink_.push_back(it->second + static_cast<int>(2 * (rank % cluster_.gpus_per_node)));
  }
}

bool Traffic::whole_uplinks(std::int64_t leaf) const { return !shares_ || cluster_.uplink_of(leaf) < 1; }

std::vector<int> Traffic::cores() const {
  if (cluster_.shared_cores()) return {static_cast<int>(cluster_.cores)};
  return std::vector<int>(capacity_.size(), 1);
}

int Traffic::port(std::int64_t rank, Port which) const {
  return local_[static_cast<std::size_t>(rank)] * kPorts + which;
}

int Traffic::uplink(std::int64_t rank, bool up) const {
  return uplink_[static_cast<std::size_t>(local_[static_cast<std::size_t>(rank)])] + (up ? 0 : 1);
}

GroupInstance Traffic::group(Axis axis, std::int64_t index) const {
  GroupInstance g;
  g.axis = axis;
  g.index = index;
  g.members = mesh_.members(axis, index);
  g.size = static_cast<std::int64_t>(g.members.size());
  if (cluster_.shared_cores() || g.size == 1) return g;
  for (std::int64_t rank : g.members) {
    const std::int64_t node = cluster_.node_of(rank);
    if (g.on_nodes.empty() || g.on_nodes.back().node != node) g.on_nodes.push_back({node, 0});
    ++g.on_nodes.back().count;
  }
  g.nodes = static_cast<std::int64_t>(g.on_nodes.size());
  g.ring = spread(g, [&](double members) { return gather_ports(as_double(g.size), as_double(g.nodes), members); });
  return g;
}

PoolLoad Traffic::all_reduce(const GroupInstance& g, AllReduce algorithm) const {
  return spread(
      g, [&](double members) { return all_reduce_ports(algorithm, as_double(g.size), as_double(g.nodes), members); });
}

PoolLoad Traffic::spread(const GroupInstance& g, const Ports& ports) const {
  each_simulated(g, [&](std::int64_t rank, std::size_t i) {
    const PortBytes bytes = ports(as_double(g.on_nodes[i].count));
    for (Port p : {nvlink_out, nvlink_in}) sum_.add(port(rank, p), bytes.nvlink);
    for (Port p : {nic_out, nic_in}) sum_.add(port(rank, p), bytes.nic);
  });
  if (uplinks_ && g.nodes > 1) ring_uplinks(g, ports);
  return sum_.take();
}

template <class Visit>
void Traffic::each_simulated(const GroupInstance& g, const Visit& visit) const {
  std::size_t member = 0;
  for (std::size_t i = 0; i < g.on_nodes.size(); ++i)
    for (std::int64_t n = 0; n < g.on_nodes[i].count; ++n, ++member)
      if (local_[static_cast<std::size_t>(g.members[member])] >= 0) visit(g.members[member], i);
}

GroupInstance Traffic::channel(std::int64_t from, std::int64_t to) const {
  GroupInstance g;
  g.axis = Axis::pipeline;
  g.members = {from, to};
  g.size = 2;
  if (cluster_.shared_cores()) return g;
  const std::int64_t a = cluster_.node_of(from), b = cluster_.node_of(to);
  g.nodes = a == b ? 1 : 2;
  const bool crosses = uplinks_ && cluster_.leaf_of(a) != cluster_.leaf_of(b);
  for (const bool sends : {true, false}) {
    const std::int64_t rank = sends ? from : to;
    if (local_[static_cast<std::size_t>(rank)] < 0) continue;
    sum_.add(port(rank, a == b ? (sends ? nvlink_out : nvlink_in) : (sends ? nic_out : nic_in)), 1);
    if (crosses) sum_.add(uplink(rank, sends), 1);
  }
  g.ring = sum_.take();
  return g;
}

/// The ring visits the nodes in order. Each hop between leaves loads the sender's uplinks and the receiver's downlinks.
void Traffic::ring_uplinks(const GroupInstance& g, const Ports& ports) const {
  const std::int64_t all_nodes = (mesh_.world() + cluster_.gpus_per_node - 1) / cluster_.gpus_per_node;
  const auto leaf = [&](std::int64_t node) { return cluster_.leaf_of(node); };
  const std::size_t nodes = g.on_nodes.size();
  std::map<std::int64_t, double> out, in, here;  // by leaf: hops of this ring out and in, nodes of this ring
  std::vector<double> leaves_node(nodes), enters_node(nodes);  // hops between leaves
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::size_t next = (i + 1) % nodes;
    const std::int64_t from = leaf(g.on_nodes[i].node), to = leaf(g.on_nodes[next].node);
    here[from] += 1;
    if (from == to) continue;
    leaves_node[i] = enters_node[next] = 1;
    out[from] += 1;
    in[to] += 1;
  }
  // A share is the load of all twins of this ring on the fullest leaf, divided by the nodes that share its uplinks.
  double up = 0, down = 0;
  if (shares_)
    for (const auto& [l, count] : here) {
      const double job_nodes = as_double(std::min(cluster_.nodes_per_leaf, all_nodes - l * cluster_.nodes_per_leaf));
      const double twins = job_nodes / count / as_double(cluster_.nodes_per_leaf);
      up = std::max(up, out[l] * twins);
      down = std::max(down, in[l] * twins);
    }
  each_simulated(g, [&](std::int64_t rank, std::size_t i) {
    const double bytes = ports(as_double(g.on_nodes[i].count)).nic;
    const bool whole = whole_uplinks(leaf(g.on_nodes[i].node));
    sum_.add(uplink(rank, true), bytes * (whole ? leaves_node[i] : up));
    sum_.add(uplink(rank, false), bytes * (whole ? enters_node[i] : down));
  });
}

PoolLoad Traffic::all_to_all(const GroupInstance& g, const std::vector<double>& bytes,
                             std::int64_t rows_of_token) const {
  const std::size_t n = g.members.size();
  std::vector<std::size_t> node_of(n);  // index into g.on_nodes, by member
  for (std::size_t node = 0, member = 0; node < g.on_nodes.size(); ++node)
    for (std::int64_t k = 0; k < g.on_nodes[node].count; ++k) node_of[member++] = node;
  const auto simulated = [&](std::size_t member) { return local_[static_cast<std::size_t>(g.members[member])] >= 0; };
  std::vector<double> to_node(g.on_nodes.size());
  for (std::size_t i = 0; i < n; ++i) {
    double all = 0;
    std::ranges::fill(to_node, 0.0);
    for (std::size_t j = 0; j < n; ++j) all += bytes[i * n + j], to_node[node_of[j]] += bytes[i * n + j];
    const auto sent = [&](double there) { return rows_of_token > 0 ? share_sent_once(there / all, rows_of_token) : 1; };
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j || bytes[i * n + j] <= 0) continue;  // a rank's own rows stay in its memory
      const std::int64_t from = g.members[i], to = g.members[j];
      const std::int64_t a = cluster_.node_of(from), b = cluster_.node_of(to);
      const double amount = bytes[i * n + j] * sent(a == b ? bytes[i * n + j] : to_node[node_of[j]]);
      if (simulated(i)) sum_.add(port(from, a == b ? nvlink_out : nic_out), amount);
      if (!simulated(j)) continue;
      sum_.add(port(to, a == b ? nvlink_in : nic_in), amount);
      // The receiving member passes it on to the other members of its node, as all members of the node do.
      if (rows_of_token > 0 && a != b) {
        const double passed =
            bytes[i * n + j] * sent(bytes[i * n + j]) * (1 - 1 / as_double(g.on_nodes[node_of[j]].count));
        sum_.add(port(to, nvlink_out), passed);
        sum_.add(port(to, nvlink_in), passed);
      }
      if (!uplinks_ || !simulated(i) || cluster_.leaf_of(a) == cluster_.leaf_of(b)) continue;
      sum_.add(uplink(from, true), amount);
      sum_.add(uplink(to, false), amount);
    }
  }
  return sum_.take();
}

PoolLoad Traffic::by_kind(PoolLoad load, const std::vector<double>& factors) const {
  const double least = *std::ranges::min_element(factors);
  for (std::size_t i = 0; i < load.pools.size(); ++i) {
    const std::size_t rank = static_cast<std::size_t>(load.pools[i]) / kPorts;
    load.amounts[i] *= rank < kinds_.size() ? factors[kinds_[rank]] : least;
  }
  return load;
}

double Traffic::alone_s(const PoolLoad& load, std::optional<std::size_t> kind) const {
  double seconds = 0;
  for (std::size_t i = 0; i < load.pools.size(); ++i) {
    const std::size_t pool = static_cast<std::size_t>(load.pools[i]), rank = pool / kPorts;
    if (!kind || rank >= kinds_.size() || kinds_[rank] == *kind)
      seconds = std::max(seconds, load.amounts[i] / capacity_[pool]);
  }
  return seconds;
}

}  // namespace wt
