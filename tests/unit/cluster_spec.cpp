// Cluster files: the presets, and what is refused.
#include "configs/files/cluster.hpp"

#include <catch2/catch.hpp>

#include "configs/base/yaml.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/find.hpp"

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
sources:
  gpu: ["published: a: 80 GB", "assumed: usable; or \"less\""]
  nvswitch: "derived: b"
  nic: "measured: c"
  leaf: ["assumed: d"]
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
    for (const auto& [section, sources] : c.sources) {
      CHECK(!sources.empty());
      for (const Provenance& source : sources) CHECK(source.source.size() > 5);
    }
    if (c.shared_cores())
      CHECK(c.usable_memory_bytes * static_cast<double>(c.gpus_per_node) < c.memory_bytes);
    else
      CHECK(c.usable_memory_bytes == c.memory_bytes);
  }
  CHECK(read_cluster("hgx-h100").nodes * read_cluster("hgx-h100").gpus_per_node == 3072);
  CHECK(read_cluster("hgx-h100").nic_per_gpu_Bps() == 50e9);
  CHECK(read_cluster("local-2core").shared_cores());
  const auto node_Gbps = [](const std::string& name) { return read_cluster(name).nic_per_gpu_Bps() * 8 * 8 / 1e9; };
  for (const std::string name : {"aws-p4d", "aws-p4de", "a100-4x100g", "falcon-4096-a100"})
    CHECK(node_Gbps(name) == Approx(400));
  for (const std::string name :
       {"hgx-b200", "hgx-b200-750w", "hgx-h800", "mi300x-8x", "mi355x-8x", "aws-p5", "aws-p5en", "aws-p6-b200",
        "azure-nd-h100-v5", "azure-nd-h200-v5", "gcp-a3-ultra", "gcp-a4", "dbrx-3072-h100", "gb200-nvl72",
        "azure-nd-gb200-v6", "aws-p6e-gb200", "gcp-a4x"})
    CHECK(node_Gbps(name) == Approx(3200));
  for (const std::string name : {"aws-p6-b300", "hgx-b300", "gb300-nvl72"}) CHECK(node_Gbps(name) == Approx(6400));
  for (const std::string name : {"gb200-nvl72", "gb300-nvl72", "azure-nd-gb200-v6", "aws-p6e-gb200", "gcp-a4x"})
    CHECK(read_cluster(name).gpus_per_node == 72);
  CHECK(read_cluster("gh200-alps").transport == "Slingshot");
  CHECK(node_Gbps("gcp-a3-high") == Approx(800));
  CHECK(node_Gbps("gcp-a3-mega") == Approx(1600));
}

TEST_CASE("NICs are shared by the GPUs of a node") {
  const ClusterSpec c = parse(kGpu);
  CHECK(c.nic_per_gpu_Bps() == 25e9);
  CHECK(c.node_of(15) == 1);
  CHECK(c.oversubscription == 3);
  CHECK(c.storage_write_Bps == 0);
}

TEST_CASE("slow nodes, slow links and dead rails are shares of a healthy node's speed") {
  const ClusterSpec c =
      parse(kGpu + "degraded:\n  - {node: 3, compute: 0.8, nvswitch: 0.5}\n  - {node: 0, nic: 0.5, dead_rails: 1}\n");
  REQUIRE(c.degraded.size() == 2);
  CHECK(c.degraded[0].node == 3);
  CHECK(c.degraded[0].compute == 0.8);
  CHECK(c.degraded[0].nvswitch == 0.5);
  CHECK(c.degraded[0].nic == 1);
  CHECK(c.degraded[1].nic == 0.5 * 3 / 4);  // of four
  const auto refused = [](const std::string& entry, const std::string& why) {
    INFO(entry);
    CHECK_THROWS_WITH(parse(kGpu + "degraded: [" + entry + "]\n"), Catch::Contains(why));
  };
  refused("{node: 4}", "node");
  refused("{node: -1}", "node");
  refused("{node: 1, compute: 1.2}", "compute");
  refused("{node: 1, nic: 0}", "nic");
  refused("{node: 1, dead_rails: 4}", "allowed 0 to 3");
  refused("{node: 1, nvlink: 0.5}", "degraded[0].nvlink: unknown key");
  refused("{node: 1}, {node: 1}", "second time");
  refused("{compute: 0.5}", "node");
}

TEST_CASE("processes may use all of a GPU's memory unless the cluster says less, on other nodes of their own GPU's") {
  CHECK(parse(kGpu, ", usable_memory: 70GB", "").usable_memory_bytes == 80e9);
  const ClusterSpec c =
      parse(kGpu + "other_nodes: [{first: 2, count: 1, gpu: {name: A100, memory: 40GB}, source: 'published: x'}]\n");
  CHECK(c.usable_memory_bytes == 70e9);
  CHECK(c.all_of(1).usable_memory_bytes == 40e9);
}

TEST_CASE("some nodes may be of another kind: what an entry does not say is as on the others") {
  const std::string a100 =
      "{first: 2, count: 1, gpu: {name: A100, memory: 40GB, usable_memory: 36GB}, nvswitch: {bandwidth: 300GB/s}, "
      "source: ['published: x', 'assumed: z']}";
  const std::string nics = "{first: 3, count: 1, nic: {count: 2, bandwidth: 200Gb/s}, source: 'assumed: y'}";
  const ClusterSpec c =
      parse(kGpu + "other_nodes: [" + a100 + ", " + nics + "]\ndegraded: [{node: 3, dead_rails: 1}]\n");
  REQUIRE(c.others.size() == 2);
  CHECK(c.kind_of(1) == 0);
  CHECK(c.kind_of(2) == 1);
  CHECK(c.kind_of(3) == 2);
  CHECK(c.of_kind(0).gpu_name == "H100");
  CHECK(c.of_kind(1).gpu_name == "A100");
  CHECK(c.nic_per_gpu_Bps(c.of_kind(1)) == c.nic_per_gpu_Bps());
  CHECK(c.of_kind(2).gpu_name == "H100");
  CHECK(c.nic_per_gpu_Bps(c.of_kind(2)) == c.nic_per_gpu_Bps() / 4);
  CHECK(c.degraded[0].nic == 0.5);  // of that node's two
  CHECK(c.all_of(1).usable_memory_bytes == 36e9);
  CHECK(c.all_of(1).others.empty());
  CHECK(c.usable_by_all_bytes(16) == 70e9);
  CHECK(c.usable_by_all_bytes(17) == 36e9);
  CHECK(c.nodes_text(32) == "1 node of 8 A100, 3 nodes of 8 H100");
  CHECK(to_string(c.sources.at("nodes 2 to 2")) == "published: x; assumed: z");
  CHECK_NOTHROW(c.check_one_gpu(16));
  CHECK_THROWS_WITH(c.check_one_gpu(17), Catch::Contains("a profile or machine model is of one GPU"));
  CHECK(c.one_gpu(16) == "H100");
  CHECK(c.one_gpu(17).empty());
  CHECK(parse(kGpu + "other_nodes: [{first: 0, count: 2, gpu: {name: A100, memory: 40GB, usable_memory: 36GB}, source: "
                     "'published: x'}]\n")
            .one_gpu(16) == "A100");
  ClusterSpec smaller = c;
  smaller.set_nodes(3);
  CHECK(smaller.others.size() == 1);
  CHECK(smaller.sources.count("nodes 2 to 2") == 1);
  CHECK(smaller.sources.count("nodes 3 to 3") == 0);
  CHECK(smaller.degraded.empty());
  CHECK_THROWS_WITH(smaller.set_nodes(4), Catch::Contains("of which kind"));
  const auto refused = [](const std::string& entries, const std::string& why) {
    INFO(entries);
    CHECK_THROWS_WITH(parse(kGpu + "other_nodes: [" + entries + "]\n"), Catch::Contains(why));
  };
  refused("{first: 4, count: 1, nic: {count: 2, bandwidth: 200Gb/s}, source: 'assumed: y'}", "first");
  refused("{first: 3, count: 2, nic: {count: 2, bandwidth: 200Gb/s}, source: 'assumed: y'}", "count");
  refused("{first: 3, count: 0, nic: {count: 2, bandwidth: 200Gb/s}, source: 'assumed: y'}", "count");
  refused("{first: 3, count: 1, source: 'assumed: y'}", "needs what differs");
  refused("{first: 3, count: 1, nic: {count: 2, bandwidth: 200Gb/s}}", "source");
  refused("{first: 3, count: 1, nic: {count: 2, bandwidth: 200Gb/s, latency: 1us}, source: 'assumed: y'}",
          "other_nodes[0].nic.latency: unknown key");
  refused("{first: 3, count: 1, gpu: {name: A100, memory: 40GB, usable_memory: 41GB}, source: 'assumed: y'}",
          "needs at most memory");
  refused(a100 + ", {first: 1, count: 2, nic: {count: 2, bandwidth: 200Gb/s}, source: 'assumed: y'}",
          "needs each node in one entry");
}

TEST_CASE("a leaf's uplinks may have a share of their rate") {
  const ClusterSpec c = parse(kGpu + "degraded:\n  - {leaf: 1, uplink: 0.25}\n  - {node: 3, nic: 0.5}\n");
  REQUIRE(c.degraded_leaves.size() == 1);
  CHECK(c.degraded_leaves[0].leaf == 1);
  CHECK(c.degraded_leaves[0].uplink == 0.25);
  CHECK(c.degraded.size() == 1);
  CHECK(parse(kGpu).degraded_leaves.empty());
  const auto refused = [](const std::string& entry, const std::string& why) {
    INFO(entry);
    CHECK_THROWS_WITH(parse(kGpu + "degraded: [" + entry + "]\n"), Catch::Contains(why));
  };
  refused("{leaf: 2, uplink: 0.5}", "leaf");  // two leaves of two nodes
  refused("{leaf: -1, uplink: 0.5}", "leaf");
  refused("{leaf: 0}", "uplink");
  refused("{leaf: 0, uplink: 0}", "uplink");
  refused("{leaf: 0, uplink: 1.5}", "uplink");
  refused("{leaf: 0, node: 1, uplink: 0.5}", "found beside node");
  refused("{leaf: 0, uplink: 0.5, compute: 0.5}", "degraded[0].compute: unknown key");
  refused("{node: 1, uplink: 0.5}", "degraded[0].uplink: unknown key");
  refused("{leaf: 0, uplink: 0.5}, {leaf: 0, uplink: 0.4}", "second time");
}

TEST_CASE("sources have kinds, and a cluster that is written reads back with the same") {
  const ClusterSpec c = parse(kGpu);
  REQUIRE(c.sources.at("gpu").size() == 2);
  CHECK(c.sources.at("gpu")[0].kind == Evidence::published);
  CHECK(c.sources.at("gpu")[0].source == "a: 80 GB");
  CHECK(weakest(c.sources.at("gpu")) == Evidence::assumed);
  CHECK(weakest(c.sources.at("nvswitch")) == Evidence::derived);
  CHECK(weakest({{Evidence::derived, "a"}, {Evidence::measured, "b"}}) == Evidence::derived);
  CHECK(weakest({}) == Evidence::assumed);
  const ClusterSpec again = parse(cluster_to_yaml(c));
  CHECK(again.nic_Bps == c.nic_Bps);
  CHECK(again.oversubscription == c.oversubscription);
  REQUIRE(again.sources.size() == 4);
  for (const auto& [section, sources] : c.sources) {
    INFO(section);
    const std::vector<Provenance>& read = again.sources.at(section);
    REQUIRE(read.size() == sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(read[i].kind == sources[i].kind);
      CHECK(read[i].source == sources[i].source);
    }
  }
}

TEST_CASE("a source without a kind or without words is refused with file, line and key") {
  const auto refused = [](const std::string& nic, const std::string& why) {
    INFO(nic);
    CHECK_THROWS_WITH(parse(kGpu, "\"measured: c\"", nic), Catch::Contains(why));
  };
  const std::string forms = "needs 'measured: ...', 'published: ...', 'derived: ...' or 'assumed: ...'";
  refused("data sheet", "c.yaml:12: sources.nic: found 'data sheet', " + forms);
  refused("'recalled: 96 GB'", "c.yaml:12: sources.nic: found 'recalled: 96 GB', " + forms);
  refused("'https://a.b'", "c.yaml:12: sources.nic: found 'https://a.b', " + forms);
  refused("'published:'", "c.yaml:12: sources.nic: found 'published:', needs to say after the colon");
  refused("'published:  '", "c.yaml:12: sources.nic: found 'published:  ', needs to say after the colon");
  refused("[]", "c.yaml:12: sources.nic: found an empty list, " + forms);
  refused("\n    - 'published: a'\n    - b", "c.yaml:14: sources.nic[1]: found 'b', " + forms);
  refused("\n    - 'published: a'\n    - assumed: b",
          "c.yaml:14: sources.nic[1]: found no text, " + forms + ", in quotes");
  refused("{a: b}", "c.yaml:12: sources.nic: found a map");
  const std::string nodes = "other_nodes: [{first: 3, count: 1, nic: {count: 2, bandwidth: 200Gb/s}, source: y}]\n";
  CHECK_THROWS_WITH(parse(kGpu + nodes), Catch::Contains("c.yaml:14: other_nodes[0].source: found 'y', " + forms));
}

TEST_CASE("impossible clusters are refused with file, line and key") {
  CHECK_THROWS_WITH(parse(kGpu, "oversubscription: 3", "oversubscription: 0.5"),
                    Catch::Contains("c.yaml:8: leaf.oversubscription"));
  CHECK_THROWS_WITH(parse(kGpu, "usable_memory: 70GB", "usable_memory: 90GB"), Catch::Contains("gpu.usable_memory"));
  CHECK_THROWS_WITH(parse(kGpu, "count: 4", "count: 0"), Catch::Contains("nic.count"));
  CHECK_THROWS_WITH(parse(kGpu, "  leaf: [\"assumed: d\"]\n", ""), Catch::Contains("sources.leaf"));
  CHECK_THROWS_WITH(parse(kGpu, "kind: gpu", "kind: gpus"), Catch::Contains("allowed gpu, shared_cores"));
  CHECK_THROWS_WITH(parse(kGpu, "nodes: 4", "node: 4"), Catch::Contains("did you mean"));
  CHECK_THROWS_WITH(parse(kGpu, "latency: 2us", "latency: 2us, rails: 8"), Catch::Contains("nic.rails"));
  CHECK_THROWS_WITH(parse(kGpu, "latency: 2us", "latency: 1d"), Catch::Contains("nic.latency: found 24.0 h"));
  CHECK(parse(kGpu, "latency: 2us", "latency: 1s").nic_latency_s == 1);
  CHECK_THROWS_WITH(parse(kGpu, "450GB/s", "0GB/s"), Catch::Contains("nvswitch.bandwidth: found 0GB/s, allowed"));
  CHECK_THROWS_WITH(parse(kGpu, "450GB/s", "1e300TB/s"), Catch::Contains("nvswitch.bandwidth"));
  CHECK_THROWS_WITH(parse(kGpu, "400Gb/s", "0Gb/s"), Catch::Contains("nic.bandwidth"));
  CHECK_THROWS_WITH(parse(kGpu, "nodes: 4", "nodes: 1000000000"), Catch::Contains("nodes: found '1000000000'"));
  CHECK_THROWS_WITH(parse(kGpu).check_ranks(33, "layout 1x33"), Catch::Contains("4 nodes x 8 = 32"));
}

TEST_CASE("a GPU without a built-in data sheet is described by its cluster's file") {
  const ClusterSpec next = read_cluster("example-next-gpu");
  const DataSheet sheet = data_sheet("next-gpu").value(), like = data_sheet("GB200").value();
  CHECK(next.gpu_like == "GB200");
  CHECK((sheet.flops == 5e15 && sheet.memory_Bps == 16e12 && sheet.link_Bps == 1800e9 && sheet.power_W == 1800));
  CHECK((sheet.generation == like.generation && sheet.processors == like.processors));
  CHECK(sheet.fp32_flops == Approx(2 * like.fp32_flops));  // what is not given stays in proportion
  CHECK((relative_rate(sheet, "fp8") == 2. && relative_rate(sheet, "nvfp4") == 4.));

  const std::string sheet_of = "gpu: {name: H100, ", own = "gpu: {name: of-mine, data_sheet: {like: H100, ";
  const auto with = [&](const std::string& more) { return parse(kGpu, sheet_of, own + more + "}, "); };
  CHECK(with("bf16_tflops: 500").gpu_name == "of-mine");
  CHECK(with("bf16_tflops: 500").gpu_name == "of-mine");
  CHECK(with("bf16_tflops: 600").gpu_name == "of-mine (2)");
  YamlMap again = YamlMap::from_text(cluster_to_yaml(with("bf16_tflops: 500, power: 650W, cache: 60MB")), "again.yaml");
  CHECK(cluster_from_yaml(again).gpu_name == "of-mine (3)");  // the same sheet, by the same name
  CHECK((data_sheet("of-mine")->flops == 5e14 && data_sheet("of-mine (2)")->flops == 6e14));
  CHECK_THROWS_WITH(parse(kGpu, sheet_of, "gpu: {name: H100, data_sheet: {like: B200}, "),
                    Catch::Contains("whose data sheet is built in"));
  CHECK_THROWS_WITH(parse(kGpu, sheet_of, "gpu: {name: of-mine, data_sheet: {like: MI9000}, "),
                    Catch::Contains("found 'MI9000'"));
  CHECK_THROWS_WITH(with("bf16_tflop: 1"), Catch::Contains("did you mean 'bf16_tflops'"));
}
