#include "configs/files/cluster.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/find.hpp"
#include "configs/files/limits.hpp"

namespace wt {
namespace {

constexpr double kSlowest = 1e-3;        // a slower node or leaf is dead: it must leave the cluster
constexpr double kLongestLatency_s = 1;  // of one message; a link around the world takes a fifth of it

/// A dead rail: the node's traffic moves to the other rails.
NodeHealth read_health(YamlMap& map, const ClusterSpec& c) {
  NodeHealth health;
  health.node = map.integer("node", 0, c.nodes - 1);
  health.compute = map.number_or("compute", 1, kSlowest, 1);
  health.nic = map.number_or("nic", 1, kSlowest, 1);
  health.nvswitch = map.number_or("nvswitch", 1, kSlowest, 1);
  const std::int64_t dead = map.integer_or("dead_rails", 0, 0);
  const std::int64_t count = c.of_kind(c.kind_of(health.node)).nic_count;
  if (dead >= count)
    map.fail("dead_rails", "found {}, allowed 0 to {} of a node's {} adapters; without any it takes no part", dead,
             count - 1, count);
  health.nic *= static_cast<double>(count - dead) / static_cast<double>(count);
  for (const NodeHealth& other : c.degraded)
    if (other.node == health.node)
      map.fail("node", "found {} a second time; give all of a node's shares in one entry", health.node);
  map.finish();
  return health;
}

LeafHealth read_leaf_health(YamlMap& map, const ClusterSpec& c) {
  LeafHealth health;
  health.leaf = map.integer("leaf", 0, c.leaf_of(c.nodes - 1));
  health.uplink = map.number("uplink", kSlowest, 1);
  for (const LeafHealth& other : c.degraded_leaves)
    if (other.leaf == health.leaf)
      map.fail("leaf", "found {} a second time; give a leaf's share in one entry", health.leaf);
  map.finish();
  return health;
}

/// An entry names either a node or a leaf.
void read_degraded(YamlMap& map, ClusterSpec& c) {
  if (map.has("leaf") && map.has("node")) map.fail("leaf", "found beside node; needs an entry for each");
  if (map.has("leaf"))
    c.degraded_leaves.push_back(read_leaf_health(map, c));
  else
    c.degraded.push_back(read_health(map, c));
}

void read_gpu(YamlMap gpu, NodeSpec& node) {
  node.gpu_name = gpu.text("name");
  node.gpu_like.clear();
  if (gpu.has("data_sheet")) {
    YamlMap sheet = gpu.map("data_sheet");
    node.gpu_like = sheet.text("like");
    node.gpu_name = know_data_sheet(data_sheet_from_yaml(sheet, node.gpu_name));
  }
  node.memory_bytes = gpu.quantity("memory", parse_bytes);
  node.usable_memory_bytes = gpu.has("usable_memory") ? gpu.quantity("usable_memory", parse_bytes) : node.memory_bytes;
  if (node.usable_memory_bytes > node.memory_bytes)
    gpu.fail("usable_memory", "found {}, needs at most memory = {}", format_bytes(node.usable_memory_bytes),
             format_bytes(node.memory_bytes));
  gpu.finish();
}

double read_bandwidth(YamlMap& link) {
  const double rate = link.quantity("bandwidth", parse_bytes_per_second);
  if (!(rate >= limits::kSlowestLink_Bps && rate <= limits::kFastestLink_Bps))
    link.fail("bandwidth", "found {}, allowed {:g} to {:g} GB/s", link.text("bandwidth"),
              limits::kSlowestLink_Bps / 1e9, limits::kFastestLink_Bps / 1e9);
  return rate;
}

void read_nvswitch(YamlMap nvswitch, NodeSpec& node) {
  node.nvswitch_Bps = read_bandwidth(nvswitch);
  nvswitch.finish();
}

void read_nics(YamlMap& nic, NodeSpec& node) {
  node.nic_count = nic.integer("count", 1, limits::kGpusOfNode);
  node.nic_Bps = read_bandwidth(nic);
}

std::string source_of(const OtherNodes& other) {
  return fmt::format("nodes {} to {}", other.first, other.first + other.count - 1);
}

/// A key that an entry omits keeps the cluster's value.
void read_others(YamlMap& map, ClusterSpec& c) {
  OtherNodes other{c, map.integer("first", 0, c.nodes - 1), 0};
  other.count = map.integer("count", 1, c.nodes - other.first);
  for (const OtherNodes& known : c.others)
    if (other.first < known.first + known.count && known.first < other.first + other.count)
      map.fail("first", "found nodes {} to {}, of which some are among {} to {}; needs each node in one entry",
               other.first, other.first + other.count - 1, known.first, known.first + known.count - 1);
  const bool differs = map.has("gpu") || map.has("nvswitch") || map.has("nic");
  if (!differs) map.fail("count", "found nodes without gpu, nvswitch or nic; needs what differs");
  if (map.has("gpu")) read_gpu(map.map("gpu"), other);
  if (map.has("nvswitch")) read_nvswitch(map.map("nvswitch"), other);
  if (map.has("nic")) {
    YamlMap nic = map.map("nic");
    read_nics(nic, other);
    nic.finish();
  }
  c.sources[source_of(other)] = read_sources(map);
  map.finish();
  c.others.push_back(other);
}

void read_gpu_cluster(YamlMap& map, ClusterSpec& c) {
  c.gpus_per_node = map.integer("gpus_per_node", 1, limits::kGpusOfNode);
  c.nodes = map.integer("nodes", 1, limits::kGpus / c.gpus_per_node);
  c.nodes_per_rack = map.integer_or("nodes_per_rack", 0, 1);
  read_gpu(map.map("gpu"), c);
  read_nvswitch(map.map("nvswitch"), c);
  YamlMap nic = map.map("nic");
  read_nics(nic, c);
  c.nic_latency_s = nic.quantity("latency", parse_seconds);
  if (c.nic_latency_s > kLongestLatency_s)
    nic.fail("latency", "found {}, allowed up to {}; give the time of one message, as 2.7us",
             format_seconds(c.nic_latency_s), format_seconds(kLongestLatency_s));
  c.transport =
      nic.choice("transport", {"IB", "EFA", "EFA v1", "EFA v2", "EFA v3", "EFA v4", "TCPX", "Slingshot"}, "IB");
  c.fabric = nic.text("fabric", "");
  nic.finish();
  YamlMap leaf = map.map("leaf");
  c.nodes_per_leaf = leaf.integer("nodes", 1);
  c.oversubscription = leaf.number("oversubscription", 1, 1e3);
  leaf.finish();
  if (map.has("other_nodes"))
    for (YamlMap& each : map.maps("other_nodes")) read_others(each, c);
  if (map.has("degraded"))
    for (YamlMap& each : map.maps("degraded")) read_degraded(each, c);
  if (!map.has("storage")) return;
  YamlMap storage = map.map("storage");
  read_storage_rates(storage, c);
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

std::size_t ClusterSpec::kind_of(std::int64_t node) const {
  for (std::size_t i = 0; i < others.size(); ++i)
    if (node >= others[i].first && node < others[i].first + others[i].count) return i + 1;
  return 0;
}

ClusterSpec ClusterSpec::all_of(std::size_t kind) const {
  ClusterSpec same = *this;
  static_cast<NodeSpec&>(same) = of_kind(kind);
  same.others.clear();
  return same;
}

std::vector<std::size_t> ClusterSpec::kinds(std::int64_t ranks) const {
  std::set<std::size_t> all;
  for (std::int64_t node = 0; node * gpus_per_node < ranks; ++node) all.insert(kind_of(node));
  return {all.begin(), all.end()};
}

double ClusterSpec::usable_by_all_bytes(std::int64_t ranks) const {
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t kind : kinds(ranks)) least = std::min(least, of_kind(kind).usable_memory_bytes);
  return least;
}

std::string ClusterSpec::one_gpu(std::int64_t ranks) const {
  std::set<std::string> gpus;
  for (const std::size_t kind : kinds(ranks)) gpus.insert(of_kind(kind).gpu_name);
  return gpus.size() == 1 ? *gpus.begin() : "";
}

void ClusterSpec::check_one_gpu(std::int64_t ranks) const {
  if (one_gpu(ranks).empty())
    throw_usage(
        "cluster {}: found {}, and a profile or machine model is of one GPU; use a stack, whose times are of any "
        "published GPU (--stack torchtitan, stack: torchtitan)",
        name, nodes_text(ranks));
}

std::string ClusterSpec::nodes_text(std::int64_t ranks) const {
  std::map<std::string, std::int64_t> count;
  for (std::int64_t node = 0; node * gpus_per_node < ranks; ++node) ++count[of_kind(kind_of(node)).gpu_name];
  return joined(count, ", ", [&](const auto& kind) {
    return fmt::format("{} of {} {}", counted(kind.second, "node"), gpus_per_node, kind.first);
  });
}

void ClusterSpec::set_nodes(std::int64_t count) {
  if (!others.empty() && count > nodes)
    throw_usage(
        "cluster {}: found {} nodes, of several kinds, for {}; say in its file of which kind the further ones are",
        name, nodes, count);
  nodes = count;
  std::erase_if(others, [&](const OtherNodes& other) {
    if (other.first >= count) sources.erase(source_of(other));
    return other.first >= count;
  });
  std::erase_if(degraded, [&](const NodeHealth& entry) { return entry.node >= count; });
  std::erase_if(degraded_leaves, [&](const LeafHealth& entry) { return entry.leaf > leaf_of(count - 1); });
}

void ClusterSpec::check_ranks(std::int64_t ranks, const std::string& where) const {
  if (ranks > nodes * gpus_per_node)
    throw_usage("{}: found {} ranks, cluster {} has {} nodes x {} = {}; use a smaller layout or set nodes", where,
                ranks, name, nodes, gpus_per_node, nodes * gpus_per_node);
}

ClusterSpec cluster_from_yaml(YamlMap& map) {
  ClusterSpec c;
  c.name = map.text("name");
  c.kind = map.enumerator<ClusterSpec::Kind>("kind", std::array{"gpu", "shared_cores"});
  const bool gpu = !c.shared_cores();
  gpu ? read_gpu_cluster(map, c) : read_shared_cores(map, c);
  YamlMap sources = map.map("sources");
  std::vector<std::string> sections =
      gpu ? std::vector<std::string>{"gpu", "nvswitch", "nic", "leaf"} : std::vector<std::string>{"host"};
  if (c.storage_write_Bps > 0) sections.push_back("storage");
  for (const std::string& section : sections) c.sources[section] = read_sources(sources, section);
  sources.finish();
  if (map.has("prices")) c.prices = prices_from_yaml(map.map("prices"));
  map.finish();
  return c;
}

void read_storage_rates(YamlMap& storage, ClusterSpec& c) {
  c.storage_write_Bps = storage.quantity("write", parse_bytes_per_second);
  c.storage_read_Bps = storage.quantity("read", parse_bytes_per_second);
  c.storage_node_write_Bps = storage.quantity("node_write", parse_bytes_per_second);
  c.storage_node_read_Bps = storage.quantity("node_read", parse_bytes_per_second);
}

std::string cluster_to_yaml(const ClusterSpec& c) {
  YAML::Emitter out;
  const auto number = [](double value, const char* unit) { return fmt::format("{}{}", value, unit); };
  out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << c.name << YAML::Key << "kind" << YAML::Value << "gpu";
  out << YAML::Key << "nodes" << YAML::Value << c.nodes << YAML::Key << "gpus_per_node" << YAML::Value
      << c.gpus_per_node;
  if (c.nodes_per_rack > 0) out << YAML::Key << "nodes_per_rack" << YAML::Value << c.nodes_per_rack;
  out << YAML::Key << "gpu" << YAML::Value << YAML::BeginMap << YAML::Key << "name" << YAML::Value << c.gpu_name
      << YAML::Key << "memory" << YAML::Value << number(c.memory_bytes / 1e9, "GB") << YAML::Key << "usable_memory"
      << YAML::Value << number(c.usable_memory_bytes / 1e9, "GB");
  if (!c.gpu_like.empty()) {
    out << YAML::Key << "data_sheet" << YAML::Value;
    data_sheet_to_yaml(data_sheet(c.gpu_name).value(), c.gpu_like, out);
  }
  out << YAML::EndMap;
  out << YAML::Key << "nvswitch" << YAML::Value << YAML::BeginMap << YAML::Key << "bandwidth" << YAML::Value
      << number(c.nvswitch_Bps / 1e9, "GB/s") << YAML::EndMap;
  out << YAML::Key << "nic" << YAML::Value << YAML::BeginMap << YAML::Key << "count" << YAML::Value << c.nic_count
      << YAML::Key << "bandwidth" << YAML::Value << number(c.nic_Bps / 1e9, "GB/s") << YAML::Key << "latency"
      << YAML::Value << number(c.nic_latency_s * 1e6, "us") << YAML::Key << "transport" << YAML::Value << c.transport;
  if (!c.fabric.empty()) out << YAML::Key << "fabric" << YAML::Value << c.fabric;
  out << YAML::EndMap << YAML::Key << "leaf" << YAML::Value << YAML::BeginMap << YAML::Key << "nodes" << YAML::Value
      << c.nodes_per_leaf << YAML::Key << "oversubscription" << YAML::Value << c.oversubscription << YAML::EndMap;
  out << YAML::Key << "sources" << YAML::Value << YAML::BeginMap;
  for (const auto& [section, sources] : c.sources) {
    out << YAML::Key << section << YAML::Value << YAML::BeginSeq;
    for (const Provenance& source : sources) out << to_string(source);
    out << YAML::EndSeq;
  }
  out << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

std::int64_t usable_gpus(std::int64_t gpus, std::int64_t gpus_per_node, std::int64_t global_batch) {
  gpus = std::min(gpus, global_batch);
  if (gpus > gpus_per_node) gpus -= gpus % gpus_per_node;
  while (gpus > 0 && global_batch % gpus != 0) gpus -= gpus > gpus_per_node ? gpus_per_node : 1;
  return gpus;
}

ClusterSpec read_cluster(const std::string& name_or_file) {
  YamlMap map = YamlMap::from_file(find_config("clusters", name_or_file));
  return cluster_from_yaml(map);
}

ClusterSpec cluster_of(YamlMap& file) {
  if (file.node("cluster").IsScalar()) return read_cluster(file.text("cluster"));
  YamlMap map = file.map("cluster");
  return cluster_from_yaml(map);
}

}  // namespace wt
