#include "configs/spec/cluster.hpp"

#include "configs/spec/error.hpp"
#include "configs/spec/find.hpp"
#include "configs/spec/quantity.hpp"
#include "configs/spec/yaml.hpp"

namespace wt {
namespace {

constexpr double kSlowest = 1e-3;  // slower is dead: take the node, or the leaf's nodes, out

/// A dead rail leaves the node's traffic to the others.
NodeHealth read_health(YamlMap& map, const ClusterSpec& c) {
  NodeHealth health;
  health.node = map.integer("node", 0, c.nodes - 1);
  health.compute = map.number_or("compute", 1, kSlowest, 1);
  health.nic = map.number_or("nic", 1, kSlowest, 1);
  health.nvswitch = map.number_or("nvswitch", 1, kSlowest, 1);
  const std::int64_t dead = map.integer_or("dead_rails", 0, 0);
  if (dead >= c.nic_count)
    map.fail("dead_rails", fmt::format("found {}, allowed 0 to {} of a node's {} adapters; without any it takes no part", dead, c.nic_count - 1, c.nic_count));
  health.nic *= static_cast<double>(c.nic_count - dead) / static_cast<double>(c.nic_count);
  for (const NodeHealth& other : c.degraded)
    if (other.node == health.node) map.fail("node", fmt::format("found {} a second time; give all of a node's shares in one entry", health.node));
  map.finish();
  return health;
}

LeafHealth read_leaf_health(YamlMap& map, const ClusterSpec& c) {
  LeafHealth health;
  health.leaf = map.integer("leaf", 0, c.leaf_of(c.nodes - 1));
  health.uplink = map.number("uplink", kSlowest, 1);
  for (const LeafHealth& other : c.degraded_leaves)
    if (other.leaf == health.leaf)
      map.fail("leaf", fmt::format("found {} a second time; give a leaf's share in one entry", health.leaf));
  map.finish();
  return health;
}

/// An entry is of a node or of a leaf.
void read_degraded(YamlMap& map, ClusterSpec& c) {
  if (map.has("leaf") && map.has("node")) map.fail("leaf", "found beside node; needs an entry for each");
  if (map.has("leaf")) c.degraded_leaves.push_back(read_leaf_health(map, c));
  else c.degraded.push_back(read_health(map, c));
}

void read_gpu(YamlMap& map, ClusterSpec& c) {
  c.nodes = map.integer("nodes", 1);
  c.gpus_per_node = map.integer("gpus_per_node", 1);
  YamlMap gpu = map.map("gpu");
  c.gpu_name = gpu.text("name");
  c.memory_bytes = gpu.quantity("memory", parse_bytes);
  c.usable_memory_bytes = gpu.quantity("usable_memory", parse_bytes);
  if (c.usable_memory_bytes > c.memory_bytes)
    gpu.fail("usable_memory", fmt::format("found {}, needs at most memory = {}", format_bytes(c.usable_memory_bytes),
                                          format_bytes(c.memory_bytes)));
  gpu.finish();
  YamlMap nvswitch = map.map("nvswitch");
  c.nvswitch_Bps = nvswitch.quantity("bandwidth", parse_bytes_per_second);
  nvswitch.finish();
  YamlMap nic = map.map("nic");
  c.nic_count = nic.integer("count", 1);
  c.nic_Bps = nic.quantity("bandwidth", parse_bytes_per_second);
  c.nic_latency_s = nic.quantity("latency", parse_seconds);
  c.transport = nic.choice("transport", {"IB", "EFA v1", "EFA v2", "EFA v3", "EFA v4", "TCPX"}, "IB");
  nic.finish();
  YamlMap leaf = map.map("leaf");
  c.nodes_per_leaf = leaf.integer("nodes", 1);
  c.oversubscription = leaf.number("oversubscription", 1);
  leaf.finish();
  if (map.has("degraded"))
    for (YamlMap& each : map.maps("degraded")) read_degraded(each, c);
  if (!map.has("storage")) return;
  YamlMap storage = map.map("storage");
  c.storage_write_Bps = storage.quantity("write", parse_bytes_per_second);
  c.storage_read_Bps = storage.quantity("read", parse_bytes_per_second);
  c.storage_node_write_Bps = storage.quantity("node_write", parse_bytes_per_second);
  c.storage_node_read_Bps = storage.quantity("node_read", parse_bytes_per_second);
  storage.finish();
}

void read_shared_cores(YamlMap& map, ClusterSpec& c) {
  c.nodes = 1;
  c.gpus_per_node = map.integer("ranks", 1);
  YamlMap host = map.map("host");
  c.gpu_name = host.text("name");
  c.cores = static_cast<double>(host.integer("cores", 1));
  c.memory_bytes = host.quantity("memory", parse_bytes);
  c.usable_memory_bytes = host.quantity("usable_memory", parse_bytes) / static_cast<double>(c.gpus_per_node);
  if (c.usable_memory_bytes * static_cast<double>(c.gpus_per_node) > c.memory_bytes)
    host.fail("usable_memory", "needs at most the host's memory");
  host.finish();
  if (!map.has("storage")) return;
  YamlMap storage = map.map("storage");
  c.storage_write_Bps = c.storage_node_write_Bps = storage.quantity("write", parse_bytes_per_second);
  c.storage_read_Bps = c.storage_node_read_Bps = storage.quantity("read", parse_bytes_per_second);
  storage.finish();
}

}  // namespace

void ClusterSpec::check_ranks(std::int64_t ranks, const std::string& where) const {
  if (ranks > nodes * gpus_per_node)
    throw_error(Code::usage, "{}: found {} ranks, cluster {} has {} nodes x {} = {}; use a smaller layout or set nodes",
                where, ranks, name, nodes, gpus_per_node, nodes * gpus_per_node);
}

ClusterSpec cluster_from_yaml(YamlMap& map) {
  ClusterSpec c;
  c.name = map.text("name");
  c.kind =
      map.choice("kind", {"gpu", "shared_cores"}) == "gpu" ? ClusterSpec::Kind::gpu : ClusterSpec::Kind::shared_cores;
  const bool gpu = !c.shared_cores();
  gpu ? read_gpu(map, c) : read_shared_cores(map, c);
  YamlMap sources = map.map("sources");
  std::vector<std::string> sections =
      gpu ? std::vector<std::string>{"gpu", "nvswitch", "nic", "leaf"} : std::vector<std::string>{"host"};
  if (c.storage_write_Bps > 0) sections.push_back("storage");
  for (const std::string& section : sections) c.sources[section] = sources.text(section);
  sources.finish();
  map.finish();
  return c;
}

ClusterSpec read_cluster(const std::string& name_or_file) {
  YamlMap map = YamlMap::from_file(find_config("clusters", name_or_file));
  return cluster_from_yaml(map);
}

}  // namespace wt
