// Prints the global batches of an epoch for tests/python/streaming_order_test.py: one case a line on stdin, one answer
// a line on stdout, both JSON. A case: "loader" (the text of a run file's train_loader), "shards" (of each stream),
// "global_batch", "nodes" and "ranks_per_node" (of the ranks that read different samples), "state" (of the sampler).
// An answer: "batches" of the state's epoch from there on, or "error".
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/yaml.hpp"
#include "trainer/data/sampler.hpp"

namespace wt {
namespace {

nlohmann::json answer(const nlohmann::json& asked) {
  YamlMap loader = YamlMap::from_text(asked.at("loader").get<std::string>(), "case");
  Sampler sampler(read_train_loader(loader, RunClock()),
                  asked.at("shards").get<std::vector<std::vector<std::int64_t>>>(),
                  {asked.at("nodes").get<std::int64_t>(), asked.at("ranks_per_node").get<std::int64_t>()});
  SamplerState state = sampler_state_from_json(asked.at("state"), "state");
  state.world = sampler.state().world;
  sampler.restore(state);
  nlohmann::json batches = nlohmann::json::array();
  for (;;) {
    const std::vector<std::int64_t> batch = sampler.next_batch(asked.at("global_batch").get<std::int64_t>());
    if (sampler.state().epoch != state.epoch) return {{"batches", std::move(batches)}};
    batches.push_back(batch);
  }
}

}  // namespace
}  // namespace wt

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << wt::answer(wt::parse_json(line, "case")).dump() << std::endl;
    } catch (const wt::Error& e) {
      std::cout << nlohmann::json{{"error", e.what()}}.dump() << std::endl;
    }
  }
}
