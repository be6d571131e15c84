// Cluster files: the presets, and what is refused.
#include "configs/spec/cluster.hpp"

#include <catch2/catch.hpp>

#include "configs/spec/find.hpp"
#include "configs/spec/yaml.hpp"

using namespace wt;

namespace {

const std::string kGpu = R"(name: c
kind: gpu
nodes: 4
gpus_per_node: 8
gpu: {name: H100, memory: 80GB, usable_memory: 70GB}
nvswitch: {bandwidth: 450GB/s}
nic: {count: 4, bandwidth: 400Gb/s, latency: 2us}
leaf: {nodes: 2, oversubscription: 3}
sources: {gpu: a, nvswitch: b, nic: c, leaf: d}
)";

ClusterSpec parse(std::string text, const std::string& from = "", const std::string& to = "") {
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  YamlMap map = YamlMap::from_text(text, "c.yaml");
  return cluster_from_yaml(map);
}

}  // namespace

TEST_CASE("every preset reads, under its own name, with a source for every section") {
  for (const std::string& name : preset_names("clusters")) {
    const ClusterSpec c = read_cluster(name);
    CHECK(c.name == name);
    CHECK(!c.sources.empty());
    for (const auto& [section, source] : c.sources) CHECK(source.size() > 10);
    CHECK(c.usable_memory_bytes > 0);
  }
  CHECK(read_cluster("hgx-h100").nodes * read_cluster("hgx-h100").gpus_per_node == 3072);
  CHECK(read_cluster("hgx-h100").nic_per_gpu_Bps() == 50e9);
  CHECK(read_cluster("local-2core").shared_cores());
}

TEST_CASE("NICs are shared by the GPUs of a node") {
  const ClusterSpec c = parse(kGpu);
  CHECK(c.nic_per_gpu_Bps() == 25e9);
  CHECK(c.node_of(15) == 1);
  CHECK(c.oversubscription == 3);
  CHECK(c.storage_write_Bps == 0);
}

TEST_CASE("impossible clusters are refused with file, line and key") {
  CHECK_THROWS_WITH(parse(kGpu, "oversubscription: 3", "oversubscription: 0.5"),
                    Catch::Contains("c.yaml:8: leaf.oversubscription"));
  CHECK_THROWS_WITH(parse(kGpu, "usable_memory: 70GB", "usable_memory: 90GB"), Catch::Contains("gpu.usable_memory"));
  CHECK_THROWS_WITH(parse(kGpu, "count: 4", "count: 0"), Catch::Contains("nic.count"));
  CHECK_THROWS_WITH(parse(kGpu, ", leaf: d", ""), Catch::Contains("sources.leaf"));
  CHECK_THROWS_WITH(parse(kGpu, "kind: gpu", "kind: gpus"), Catch::Contains("allowed gpu, shared_cores"));
  CHECK_THROWS_WITH(parse(kGpu, "nodes: 4", "node: 4"), Catch::Contains("did you mean"));
  CHECK_THROWS_WITH(parse(kGpu, "latency: 2us", "latency: 2us, rails: 8"), Catch::Contains("nic.rails"));
  CHECK_THROWS_WITH(parse(kGpu).check_ranks(33, "layout 1x33"), Catch::Contains("4 nodes x 8 = 32"));
}
