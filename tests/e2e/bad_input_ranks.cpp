// What is wrong for every rank is said once, by rank 0, and all ranks end with status 2: started by hand in torchrun's
// environment, and under the agent where only the ranks can find it.
#include <catch2/catch.hpp>

#include "tests/support/launched_ranks.hpp"
#include "tests/support/temp_directory.hpp"

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
  for (std::size_t at = said.find("windtunnel: "); at != std::string::npos; at = said.find("windtunnel: ", at + 1)) ++found;
  return found;
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
  CHECK_THAT(refused(edited("expert_parallel_degree: 2", "expert_parallel_degree: 3")), Contains("expert parallelism 3"));
}

TEST_CASE("a world that does not factor into the layout: said once, by rank 0") {
  CHECK_THAT(refused(run_to_yaml(run_of_two()), 3), Contains("launched with 3 ranks") && Contains("= 2"));
}

TEST_CASE("data that is missing or of another vocabulary: said once, by rank 0") {
  RunSpec run = run_of_two();
  run.data = scratch("no-such-data");
  CHECK_THAT(refused(run_to_yaml(run)), Contains("no-such-data"));
  run = run_of_two();
  run.model.vocab = 100;
  CHECK_THAT(refused(run_to_yaml(run)), Contains("vocab_size is 100"));
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
