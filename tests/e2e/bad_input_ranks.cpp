// What is wrong for every rank is said once, by rank 0, and all ranks end with status 2: started by hand in torchrun's
// environment, and under the agent where only the ranks can find it.
#include <catch2/catch.hpp>

#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Contains;

namespace {

RunSpec run_of_two() {
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 2, run.save = true;
  return run;
}

std::string edited(const std::string& from, const std::string& to) {
  std::string text = run_to_yaml(run_of_two());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::size_t messages(const std::string& said) {
  std::size_t found = 0;
  for (std::size_t at = said.find("windtunnel: "); at != std::string::npos; at = said.find("windtunnel: ", at + 1))
    ++found;
  return found;
}

/// A run on which the ranks begin with the weights of a folder that it has exported, spoilt: all occurrences of `from`
/// in the file are `to`, as long as it, so that the tensors stay where they are.
std::string with_spoilt_weights(const std::string& file, const std::string& from, const std::string& to,
                                RunSpec run = run_of_two()) {
  static int count = 0;
  RunSpec exporter = run_of_two();
  exporter.save = false, exporter.export_path = scratch("exported");
  trained(exporter);
  run.load_path = scratch(fmt::format("spoilt-{}", ++count));
  fs::copy(fs::path(exporter.export_path), fs::path(run.load_path), fs::copy_options::recursive);
  std::string bytes = read_bytes(fs::path(run.load_path) / file);
  REQUIRE((from.size() == to.size() && bytes.find(from) != std::string::npos));
  for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size())
    bytes.replace(at, from.size(), to);
  write_bytes(fs::path(run.load_path) / file, bytes);
  return run_to_yaml(run);
}

/// Starts so many ranks on the run file and returns what rank 0 said; the others must have said nothing.
std::string refused(const std::string& yaml, int ranks = 2, const fs::path& folder = {}) {
  static int count = 0;
  const fs::path place = folder.empty() ? scratch(fmt::format("by-hand-{}", ++count)) : folder;
  const fs::path file = place.string() + ".yaml";
  write_bytes(file, yaml);
  std::string first;
  const auto started = start_ranks(std::vector<fs::path>(static_cast<std::size_t>(ranks), file), ranks, place);
  for (std::size_t rank = 0; rank < started.size(); ++rank) {
    const Ended ended = wait_for(started[rank]);
    INFO("rank " << rank << ": " << ended.said);
    CHECK(ended.status == 2);
    CHECK(messages(ended.said) == (rank == 0 ? 1 : 0));
    if (rank == 0) first = ended.said;
  }
  return first;
}

}  // namespace

TEST_CASE("a run file that is wrong: said once, by rank 0") {
  CHECK_THAT(refused(edited("save_interval", "save_intervall")), Contains("did you mean 'save_interval'"));
  CHECK_THAT(refused(edited("moe_num_experts: 8", "moe_num_experts: 7")), Contains("7 experts"));
  CHECK_THAT(refused(edited("expert_parallel_degree: 2", "expert_parallel_degree: 3")),
             Contains("expert parallelism 3"));
}

TEST_CASE("a world that does not factor into the layout: said once, by rank 0") {
  CHECK_THAT(refused(run_to_yaml(run_of_two()), 3), Contains("launched with 3 ranks") && Contains("= 2"));
}

TEST_CASE("data that is missing or of another vocabulary: said once, by rank 0") {
  RunSpec run = run_of_two();
  run.dataset.use_folder(scratch("no-such-data"));
  CHECK_THAT(refused(run_to_yaml(run)), Contains("no-such-data"));
  run = run_of_two();
  run.model.vocab = 100;
  CHECK_THAT(refused(run_to_yaml(run)), Contains("vocab_size is 100"));
}

TEST_CASE("weights to begin with that are not the model's: said once, by rank 0") {
  const std::string weights = "model.safetensors", config = "config.json";
  CHECK_THAT(
      refused(with_spoilt_weights(weights, "layers.1.input_layernorm", "layers.1.inputtlayernorm")),
      Contains(
          "spoilt-1: found no tensor model.layers.1.input_layernorm.weight, the model small needs it with shape (88)"));
  CHECK_THAT(refused(with_spoilt_weights(weights, "[257,88]", "[88,257]")),
             Contains("shape (88, 257), the model small needs (257, 88)"));
  CHECK_THAT(refused(with_spoilt_weights(weights, "layers.2.", "layers.3.")),
             Contains("found no tensor model.layers.2."));
  RunSpec shorter = run_of_two();  // all that it needs is there, and more
  shorter.model.layers = 2;
  CHECK_THAT(refused(with_spoilt_weights(config, "mixtral", "mixtral", shorter)),
             Contains("tensor model.layers.2.") && Contains("is not known in family mixtral"));
  CHECK_THAT(refused(with_spoilt_weights(config, "mixtral", "gptneox")), Contains("gptneox"));
  fs::path cut = scratch("cut-off");
  RunSpec run = run_of_two();
  run.load_path = cut;
  fs::copy(scratch("exported"), cut, fs::copy_options::recursive);
  fs::resize_file(cut / weights, fs::file_size(cut / weights) / 2);
  CHECK_THAT(refused(run_to_yaml(run)), Contains("cut-off/model.safetensors"));
}

TEST_CASE("weights of another family: said once, by rank 0 of two and of four, and by the agent before it starts any") {
  for (RunSpec run : {run_of_two(), with_layout(run_of_two(), 2, 2, 2)}) {
    INFO(run.layout.name());
    run.model.attention.qk_norm = AttentionSpec::QkNorm::full;
    const std::string yaml = with_spoilt_weights("config.json", "mixtral", "mixtral", run);
    const std::string message =
        "config.json is of family mixtral, the run's model small is of family olmoe; give the run this folder as its "
        "model";
    CHECK_THAT(refused(yaml, static_cast<int>(run.layout.world())), Contains(message));
    const fs::path folder = scratch("agent-" + run.layout.name());
    write_bytes(folder.string() + ".yaml", yaml);
    const Ended agent = train_file(folder.string() + ".yaml", folder);
    INFO(agent.said);
    CHECK(agent.status == 2);
    CHECK(messages(agent.said) == 1);
    CHECK_THAT(agent.said, Contains(message));
    CHECK_FALSE(fs::exists(folder));
  }
}

TEST_CASE("weights that one rank alone finds wrong: every rank ends, and it is said once, by whom") {
  RunSpec run = run_of_two();
  run.model.attention.qk_norm = AttentionSpec::QkNorm::full;
  const fs::path folder = scratch("one-rank"), wrong = folder.string() + "-wrong.yaml",
                 right = folder.string() + "-right.yaml";
  write_bytes(wrong, with_spoilt_weights("config.json", "mixtral", "mixtral", run));
  run.load_path.clear();
  write_bytes(right, run_to_yaml(run));
  const auto started = start_ranks({right, wrong}, 2, folder);
  std::string said;
  for (const Started& rank : started) {
    const Ended ended = wait_for(rank);
    CHECK(ended.status == 2);
    said += ended.said;
  }
  INFO(said);
  CHECK(messages(said) == 1);
  CHECK_THAT(said, Contains("rank 1: ") && Contains("config.json is of family mixtral"));
}

TEST_CASE("a checkpoint of another model: said once, by hand and under the agent, and it stays") {
  RunSpec run = run_of_two();
  const fs::path folder = scratch("other-model");
  REQUIRE(train(run, folder).status == 0);
  const State before = state_of(latest_checkpoint(folder));
  run.model.ffn = 112, run.steps = 4;
  CHECK_THAT(refused(run_to_yaml(run), 2, folder), Contains("checkpoint of another model") && Contains("112"));
  const Ended agent = train(run, folder);
  INFO(agent.said);
  CHECK(agent.status == 2);
  CHECK(messages(agent.said) == 2);  // the rank's and the agent's, which refers to it
  CHECK_THAT(agent.said, Contains("checkpoint of another model") && Contains("see its message above"));
  CHECK((state_of(latest_checkpoint(folder)) == before));
}

TEST_CASE("a node that has no number cannot be struck: refused with the variable and its value") {
  RunSpec run = small_run();
  run.steps = 1;
  for (const char* variable : {"WINDTUNNEL_NODE", "GROUP_RANK"}) {
    Launch launch;
    launch.environment = {{"RANK", "0"},
                          {"WORLD_SIZE", "1"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", std::to_string(free_port())},
                          {variable, "left"}};
    launch.more = {"--faults", fault_file("struck-node", {killed(0, "step: 1")})};
    const Ended ended = train(run, scratch("named-node"), launch);
    INFO(ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains(fmt::format("environment {}: found 'left', needs a whole number", variable)));
  }
}
