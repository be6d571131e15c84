// Nodes are lost and come back: spares take their places, the run shrinks and grows, and what it trained is what an
// undisturbed run trains. Virtual nodes of one machine, real deaths.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::json;

namespace {

/// A batch that 2, 3 and 4 ranks divide, and every checkpoint kept.
RunSpec elastic_run(std::int64_t steps) {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.model.layers = 2, run.global_batch = 12;
  run.steps = steps, run.save = true, run.save_interval = 4, run.keep_checkpoints = -1, run.dist_timeout_s = 5;
  return run;
}

Launch with_faults(const std::string& name, const RunSpec& run, const std::string& rest) {
  const fs::path file = scratch(name + ".faults.yaml"), run_file = scratch(name + ".yaml");
  write_file_atomically(run_file, run_to_yaml(run));
  write_file_atomically(file, fmt::format("name: {}\nrun: {}\n{}", name, run_file.string(), rest));
  Launch launch;
  launch.more = {"--faults", file.string()};
  return launch;
}

std::string killed_node(int node, int step, const std::string& more = "") {
  return fmt::format(
      "  - {{who: {{domain: node, index: {}}}, when: {{step: {}, saved: true}}, what: {{kind: kill}}{}}}\n", node, step,
      more);
}

json restarts_of(const fs::path& folder) { return read_json(folder / "agent.json").at("restarts"); }

/// The same samples at each step; at first, losses as close as those of layouts are. Later they grow apart.
void check_same_training(const fs::path& folder, const RunSpec& run) {
  const std::vector<Step> steps = steps_of(folder), undisturbed = steps_of(trained(run));
  REQUIRE(steps.size() == undisturbed.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(steps[i].samples == undisturbed[i].samples);
    if (i < 12) CHECK(std::abs(steps[i].loss - undisturbed[i].loss) < 1e-5);
  }
}

/// It ended as a run does that is started with this file from its checkpoint, bit for bit.
void check_went_on_from(const fs::path& folder, const fs::path& checkpoint, const fs::path& run_file) {
  const fs::path reference = folder.string() + "-reference";
  fs::create_directories(reference / "checkpoints");
  fs::copy(checkpoint, reference / "checkpoints" / checkpoint.filename(), fs::copy_options::recursive);
  write_file_atomically(reference / "checkpoints" / "latest", checkpoint.filename().string() + "\n");
  const Ended direct = train_file(run_file, reference);
  INFO(direct.said);
  REQUIRE(direct.status == 0);
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(reference))));
}

/// Gone, or ended and not yet asked about by its new parent.
bool gone(pid_t pid) {
  try {
    const std::string stat = read_bytes(fmt::format("/proc/{}/stat", pid));
    return stat.substr(stat.rfind(')') + 2, 1) == "Z";
  } catch (const std::exception&) {
    return true;
  }
}

/// Whether the process has connected to another, as a rank that has started has.
bool has_socket(pid_t process) {
  const fs::directory_iterator open("/proc/" + std::to_string(process) + "/fd");
  return std::any_of(begin(open), end(open),
                     [](const auto& file) { return fs::read_symlink(file).string().starts_with("socket:"); });
}

}  // namespace

TEST_CASE("a spare takes the place of a lost node, bit for bit") {
  const RunSpec run = elastic_run(12);
  const fs::path folder = scratch("spare");
  const Launch launch =
      with_faults("spare-run", run,
                  "nodes: {ranks: 1, spares: 1}\npolicy: {on_loss: [spare, restart]}\nevents:\n" + killed_node(1, 6));
  const Ended ended = train(run, folder, launch);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json restarts = restarts_of(folder);
  REQUIRE(restarts.size() == 1);
  CHECK(restarts[0].at("policy") == "spare");
  CHECK(restarts[0].at("ranks") == json{1});
  CHECK(restarts[0].at("node") == 1);
  CHECK(restarts[0].at("nodes") == json({0, 4, 2, 3}));
  CHECK(read_json(folder / "agent.json").at("excluded") == json{1});
  CHECK(steps_of(folder) == steps_of(trained(run)));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
}

TEST_CASE("without spares the run goes on with fewer ranks, as if it had been started on them from the checkpoint") {
  const RunSpec run = elastic_run(12);
  const fs::path folder = scratch("shrunk");
  const Ended ended =
      train(run, folder, with_faults("shrunk-run", run, "policy: {on_loss: [shrink]}\nevents:\n" + killed_node(3, 10)));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json restarts = restarts_of(folder);
  REQUIRE(restarts.size() == 1);
  CHECK(restarts[0].at("policy") == "shrink to 3 ranks");
  CHECK(restarts[0].at("nodes") == json({0, 1, 2}));
  const std::int64_t from = restarts[0].at("checkpoint_step");
  REQUIRE(from >= 4);  // that of 8 begins when that of 4 is written
  check_went_on_from(folder, checkpoint_of(trained(run), from), folder / "remaining.yaml");
  check_same_training(folder, run);
}

TEST_CASE("4 -> 3 -> 4 ranks: the run grows at a saved step when its node is back", "[.nightly]") {
  const RunSpec run = elastic_run(60);
  const fs::path folder = scratch("grown");
  const Ended ended =
      train(run, folder,
            with_faults("grown-run", run, "policy: {on_loss: [shrink]}\nevents:\n" + killed_node(0, 6, ", lasts: 1s")));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json restarts = restarts_of(folder);
  REQUIRE(restarts.size() == 2);
  CHECK(restarts[0].at("policy") == "shrink to 3 ranks");
  CHECK(restarts[0].at("excluded") == json{0});
  CHECK(restarts[1].at("policy") == "grow to 4 ranks");
  CHECK(restarts[1].at("cause") == "nodes are back");
  CHECK(restarts[1].at("layout") == run.layout.name());
  CHECK(restarts[1].at("checkpoint_step") == restarts[1].at("steps_done"));  // nothing is done twice
  CHECK(read_json(folder / "agent.json").at("excluded").empty());
  check_went_on_from(folder, checkpoint_of(folder, restarts[1].at("checkpoint_step")), scratch("grown-run.yaml"));
  check_same_training(folder, run);
}

TEST_CASE("4 -> 2 -> 4 ranks, nodes of two", "[.nightly]") {
  const RunSpec run = elastic_run(60);
  const fs::path folder = scratch("halved");
  const Ended ended = train(
      run, folder,
      with_faults("halved-run", run,
                  "nodes: {ranks: 2}\npolicy: {on_loss: [shrink]}\nevents:\n" + killed_node(1, 9, ", lasts: 1s")));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json restarts = restarts_of(folder);
  REQUIRE(restarts.size() == 2);
  CHECK(restarts[0].at("policy") == "shrink to 2 ranks");
  CHECK(restarts[0].at("ranks") == json({2, 3}));
  CHECK(restarts[0].at("nodes") == json{0});
  CHECK(restarts[1].at("policy") == "grow to 4 ranks");
  check_went_on_from(folder, checkpoint_of(folder, restarts[1].at("checkpoint_step")), scratch("halved-run.yaml"));
  check_same_training(folder, run);
}

TEST_CASE("a run waits for a node that comes back", "[.nightly]") {
  const RunSpec run = elastic_run(8);
  const fs::path folder = scratch("waited");
  const Ended ended = train(
      run, folder,
      with_faults("waited-run", run, "policy: {on_loss: [wait]}\nevents:\n" + killed_node(2, 6, ", lasts: 500ms")));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK(restarts_of(folder)[0].at("policy") == "wait");
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
}

TEST_CASE("a process that crashes alone on its node leaves the node alive, and nobody waits for it") {
  const RunSpec run = elastic_run(8);
  const fs::path folder = scratch("crashed");
  const Ended ended =
      train(run, folder,
            with_faults("crashed-run", run,
                        "policy: {on_loss: [wait]}\nevents:\n"
                        "  - {who: {domain: rank, index: 2}, when: {step: 6}, what: {kind: segfault}}\n"));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK(restarts_of(folder)[0].at("policy") == "restart");
}

TEST_CASE(
    "a fault that comes back without a new checkpoint ends the run with 93: a scheduler must not start it again") {
  const RunSpec run = elastic_run(8);
  const fs::path folder = scratch("final");
  const Ended ended =
      train(run, folder, with_faults("final-run", run, "events:\n" + killed_node(1, 6, ", repeats: 5")));
  INFO(ended.said);
  CHECK(ended.status == 93);
  CHECK_THAT(ended.said, Contains("2 times without a new checkpoint") && Contains("restart"));
  CHECK(restarts_of(folder).size() == 2);
}

TEST_CASE("used up restarts end it with 4, a refused run file with 2") {
  const RunSpec run = elastic_run(8);
  Launch launch = with_faults("budget-run", run, "policy: {max_restarts: 0}\nevents:\n" + killed_node(1, 6));
  const fs::path folder = scratch("budget");
  const Ended ended = train(run, folder, launch);
  INFO(ended.said);
  CHECK(ended.status == 4);
  CHECK_THAT(ended.said, Contains("0 restarts were allowed"));
  CHECK(restarts_of(folder).size() == 1);
  RunSpec wrong = run;
  wrong.dataset.use_folder("nowhere");
  CHECK(train(wrong, scratch("refused")).status == 2);
}

TEST_CASE("the agent is killed: its ranks are gone, and the next start goes on, bit for bit") {
  const RunSpec run = elastic_run(40);
  const fs::path folder = scratch("orphans"), file = scratch("orphans.yaml");
  write_file_atomically(file, run_to_yaml(run));
  const Started agent = start_trainer({"train", file.string(), "-o", folder.string()});
  wait_for_step(folder, 10);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(rank_process(agent.pid, rank));
  kill(agent.pid, SIGKILL);
  CHECK(wait_for(agent).status == 128 + SIGKILL);
  const auto all_gone = [&] { return std::all_of(ranks.begin(), ranks.end(), gone); };
  for (int waited_ms = 0; !all_gone() && waited_ms < 30'000; waited_ms += 5) usleep(5000);
  CHECK(all_gone());
  const Ended again = train(run, folder);
  INFO(again.said);
  REQUIRE(again.status == 0);
  CHECK_THAT(again.said, Contains("continuing after step "));
  CHECK(steps_of(folder) == steps_of(trained(run)));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
}

TEST_CASE("a rank that never comes to the others is named, and started again") {
  const RunSpec run = elastic_run(4);
  const fs::path file = scratch("absent.yaml");
  write_file_atomically(file, run_to_yaml(run));
  // The rank is stopped while it loads its libraries. On a busy machine it can be too late for that.
  fs::path folder;
  Started agent;
  pid_t rank = -1;
  for (int tries = 0; rank < 0 && tries < 20; ++tries) {
    folder = scratch("absent-" + std::to_string(tries));
    agent = start_trainer({"train", file.string(), "-o", folder.string()});
    while (rank < 0) try {
        rank = rank_process(agent.pid, 3);
      } catch (const Error&) {  // not started yet
      }
    kill(rank, SIGSTOP);
    if (!has_socket(rank)) break;
    kill(agent.pid, SIGKILL);
    kill(rank, SIGKILL);
    wait_for(agent);
    rank = -1;
  }
  REQUIRE(rank > 0);
  const Ended ended = wait_for(agent);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json restarts = restarts_of(folder);
  REQUIRE(restarts.size() == 1);
  CHECK_THAT(restarts[0].at("message").get<std::string>(), Contains("rank 3 has not started"));
  CHECK(restarts[0].at("ranks") == json{3});
  CHECK(gone(rank));
}

TEST_CASE("all ranks are stopped, so that none can tell: the agent does", "[.nightly]") {
  const RunSpec run = elastic_run(24);
  const fs::path folder = scratch("all-stopped"), file = scratch("all-stopped.yaml");
  write_file_atomically(file, run_to_yaml(run));
  const Started agent = start_trainer({"train", file.string(), "-o", folder.string()});
  wait_for_step(folder, 6);
  for (int rank = 0; rank < 4; ++rank) kill(rank_process(agent.pid, rank), SIGSTOP);
  const Ended ended = wait_for(agent);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json restarts = restarts_of(folder);
  REQUIRE(restarts.size() == 1);
  CHECK(restarts[0].at("cause") == "silence");
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
}

TEST_CASE(
    "fewer ranks under torchrun go on in another layout, by the checkpoints that are there, whatever `latest` says") {
  RunSpec run = elastic_run(8);
  const fs::path folder = scratch("fewer"), file = scratch("fewer.yaml");
  REQUIRE(train(run, folder).status == 0);
  fs::remove(folder / "checkpoints" / "latest");
  run.steps = 12;
  write_file_atomically(file, run_to_yaml(run));
  const std::string port = std::to_string(free_port());
  std::vector<Started> ranks;
  std::string said;
  for (int rank = 0; rank < 2; ++rank) {
    Launch launch;
    launch.environment = {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"},   {"LOCAL_RANK", std::to_string(rank)},
                          {"MASTER_ADDR", "127.0.0.1"},   {"MASTER_PORT", port}, {"TORCHELASTIC_RUN_ID", "fewer"}};
    ranks.push_back(start_trainer({"train", file.string(), "-o", folder.string()}, launch));
  }
  for (const Started& rank : ranks) {
    const Ended ended = wait_for(rank);
    CHECK(ended.status == 0);
    said += ended.said;
  }
  INFO(said);
  CHECK_THAT(said, Contains("2 ranks in place of the 4 of ") && Contains("continuing after step 8 "));
  CHECK(steps_of(folder).size() == 12);
}
