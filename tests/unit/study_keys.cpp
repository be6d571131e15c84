// Keys of a study, its cluster and its model, set by dotted name.
#include "configs/files/study_keys.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/study.hpp"

using namespace wt;

namespace {

const std::string kStudy =
    "model: dbrx\ncluster: hgx-h100\ngpus: 64\ntokens: 1T\nmax_seq_len: 4096\nglobal_train_batch_size: 128\n";

StudySpec with(std::vector<std::pair<std::string, std::string>> assignments, const std::string& study = kStudy) {
  return study_from_text(set_study_keys(study, std::move(assignments), "s"), "s");
}

}  // namespace

TEST_CASE("keys are set by dotted name, and maps are made on the way") {
  std::string text = set_study_key(kStudy, "scale.mtbf", "0.5", "s");
  text = set_study_key(text, "search.shard_sizes", "[32, 64]", "s");
  const StudySpec s = study_from_text(text, "s");
  CHECK(s.scale.mtbf == 0.5);
  CHECK(s.search.shard_sizes == std::vector<std::int64_t>{32, 64});
  CHECK_THROWS_WITH(set_study_key(kStudy, "gpus.count", "1", "s"), Catch::Contains("holds a value, needs a map"));
  CHECK_THROWS_WITH(set_study_key(kStudy, "search..tie", "1", "s"), Catch::Contains("needs dotted study keys"));
}

TEST_CASE("a key of the named cluster takes its file into the study, and counts as assumed") {
  const StudySpec named = study_from_text(kStudy, "s"), s = with({{"cluster.nic.bandwidth", "200Gb/s"}});
  CHECK(s.cluster.nic_Bps == 25e9);
  CHECK(s.cluster.nic_Bps == named.cluster.nic_Bps / 2);
  CHECK(s.cluster.nic_latency_s == named.cluster.nic_latency_s);
  CHECK(s.cluster.name == "hgx-h100");
  REQUIRE(s.cluster.sources.at("nic").size() == 1);
  CHECK(s.cluster.sources.at("nic")[0].kind == Evidence::assumed);
  CHECK(s.cluster.sources.at("nic")[0].source == "set by hand: cluster.nic.bandwidth=200Gb/s");
  CHECK(s.cluster.sources.at("gpu")[0].kind == Evidence::published);
  CHECK(s.cluster.sources.at("storage")[0].source == named.cluster.sources.at("storage")[0].source);
  const StudySpec both = with({{"cluster.nic.bandwidth", "200Gb/s"}, {"cluster.nic.latency", "5us"}});
  CHECK(both.cluster.sources.at("nic")[0].source ==
        "set by hand: cluster.nic.bandwidth=200Gb/s, cluster.nic.latency=5us");
  CHECK(with({{"cluster.nic.bandwidth", "400Gb/s"}}).cluster.sources.at("nic")[0].kind == Evidence::published);
}

TEST_CASE("a study may have its cluster as a map, which writes and reads back") {
  StudySpec named = study_from_text(kStudy, "s");
  named.cluster.sources.erase("storage");  // which cluster_to_yaml leaves out
  std::string map, line;
  for (std::istringstream lines(cluster_to_yaml(named.cluster)); std::getline(lines, line);)
    map += fmt::format("\n  {}", line);
  std::string text = kStudy;
  text.replace(text.find(" hgx-h100"), 9, map);
  const StudySpec s = study_from_text(text, "s");
  CHECK(s.cluster.nic_Bps == named.cluster.nic_Bps);
  CHECK(s.cluster.nodes == 8);
  CHECK(study_from_text(study_yaml(s), "s").cluster.memory_bytes == named.cluster.memory_bytes);
  CHECK_THROWS_WITH(study_from_text("cluster: {name: mine}\n" + kStudy.substr(0, kStudy.find("cluster")) +
                                        kStudy.substr(kStudy.find("gpus")),
                                    "s"),
                    Catch::Contains("s:1: cluster.kind: missing"));
}

TEST_CASE("a key of the named model takes its file into the study; a config.json keeps its own keys") {
  CHECK(with({{"model.n_layers", "20"}}).model.layers == 20);
  CHECK(with({{"model.ffn_config.moe_top_k", "2"}}).model.top_k == 2);
  const std::string file = "tests/data/models/dbrx_config.json";
  const StudySpec s = with({{"model.n_layers", "20"}, {"model", file}});
  CHECK(s.model.layers == 20);
  CHECK(s.model.experts == 16);
  CHECK(s.model.kv_heads == 8);
  CHECK(s.model.router.aux_loss_weight == 0.05);
  CHECK(with({{"model", file}, {"model.ffn_config.moe_top_k", "2"}}).model.top_k == 2);
  CHECK_THROWS_WITH(with({{"model", file}, {"model.n_layers", "many"}}),
                    Catch::Contains("model: n_layers: found \"many\", needs a whole number"));
  const StudySpec whole = with({{"model", file}, {"model.n_layers", "40"}});
  CHECK(whole.model.total_parameters() == read_model("dbrx").total_parameters());
}

TEST_CASE("a key that the study leaves without effect is refused, with the one to set") {
  CHECK_THROWS_WITH(with({{"cluster.nodes", "4"}}),
                    Catch::Contains("cluster.nodes: changes nothing") && Catch::Contains("set gpus"));
  CHECK(with({{"cluster.leaf.oversubscription", "2"}}).cluster.oversubscription == 2);
  CHECK_THROWS_WITH(with({{"cluster.leaf.oversubscription", "2"}}, kStudy + "oversubscription: 3\n"),
                    Catch::Contains("set oversubscription"));
}

TEST_CASE("a key of thousands of parts is refused") {
  std::string key = "tokens";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  CHECK_THROWS_WITH(with({{key, "1"}}), Catch::Contains("of more than 21 parts"));
}

TEST_CASE("a misspelt key finds the known one and its file, also without its section") {
  const auto meant = [](const std::string& key) {
    const auto found = suggested_key(key, kStudy, "study.yaml", {"scale.network_bandwidth"});
    return found ? fmt::format("{} in {}", found->key, std::filesystem::path(found->file).filename().string()) : "";
  };
  CHECK(meant("cluster.nic.bandwith") == "cluster.nic.bandwidth in hgx-h100.yaml");
  CHECK(meant("nic.bandwidth") == "cluster.nic.bandwidth in hgx-h100.yaml");
  CHECK(meant("n_layers") == "model.n_layers in dbrx.yaml");
  CHECK(meant("model.ffn_config.moe_topk") == "model.ffn_config.moe_top_k in dbrx.yaml");
  CHECK(meant("scale.network_bandwith") == "scale.network_bandwidth in study.yaml");
  CHECK(meant("tokns") == "tokens in study.yaml");
  CHECK(meant("q").empty());
}
