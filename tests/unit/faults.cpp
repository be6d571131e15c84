// Faults in a process: what is armed strikes once, at its own place, and says what it did.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/file_write.hpp"
#include "configs/base/linked_folder.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/faults/file_damage.hpp"
#include "trainer/faults/strike.hpp"

using namespace wt;
using namespace wt::test;
using nlohmann::json;
using Place = FaultTime::Place;
using Phase = FaultTime::Phase;

namespace {

Scenario scenario_of(const TempDirectory& folder, const std::string& event) {
  write_bytes(folder / "s.yaml", "name: s\nrun: r\nnodes: {ranks: 2}\nevents:\n  - {" + event + "}\n");
  return read_scenario_file(folder / "s.yaml");
}

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

/// Arms the event in a rank of four, two a node and two a replica.
void arm(const TempDirectory& folder, const std::string& event, std::int64_t rank, int generation = 0) {
  arm_faults(scenario_of(folder, event), {rank, 2, generation, folder.path(), 4, 1, true});
}

const std::string kThrow = "what: {kind: exception}", kRank1 = "who: {domain: rank, index: 1}, ";

void pass_all(std::int64_t step) {
  pass_fault_point(Place::begin, step);
  for (const Phase phase : {Phase::before, Phase::issued, Phase::waiting}) pass_fault_point(step, "a.fwd", phase);
  for (const Phase phase : {Phase::before, Phase::issued, Phase::waiting}) pass_fault_point(step, "b.fwd", phase);
  for (const std::int64_t done : {10, 50, 100}) pass_checkpoint_bytes(step, done, 100);
  pass_fault_point(Place::manifest, step);
}

/// How many places are passed before it strikes; all of them where it does not.
template <typename Pass>
bool strikes_in(Pass&& pass) {
  try {
    pass();
    return false;
  } catch (const Error& e) {
    CHECK_THAT(e.what(), Catch::Contains("an injected exception"));
    return true;
  }
}

}  // namespace

TEST_CASE("an event strikes its rank in its generation, at its place, once") {
  const TempDirectory folder;
  const std::string event = kRank1 + "when: {step: 3, at: b.fwd, phase: issued}, generation: 1, " + kThrow;
  for (const auto& [rank, generation] : {std::pair{0, 1}, {1, 0}, {1, 2}}) {
    arm(folder, event, rank, generation);
    for (int step = 1; step < 6; ++step) CHECK_FALSE(strikes_in([&] { pass_all(step); }));
  }
  arm(folder, event, 1, 1);
  pass_all(2);
  pass_fault_point(3, "b.fwd", Phase::before);
  pass_fault_point(3, "a.fwd", Phase::issued);
  pass_fault_point(3, "b.fwd", Phase::waiting);
  CHECK(strikes_in([] { pass_fault_point(3, "b.fwd", Phase::issued); }));
  CHECK_FALSE(strikes_in([] { pass_all(3); }));
  const auto lines = lines_of(folder / "strikes.jsonl");
  REQUIRE(lines.size() == 1);
  CHECK((lines[0]["event"] == 0 && lines[0]["generation"] == 1 && lines[0]["rank"] == 1 && lines[0]["node"] == 0));
  CHECK((lines[0]["step"] == 3 && lines[0]["at"] == "b.fwd" && lines[0]["kind"] == "exception"));

  arm(folder, event, 1, 1);  // the job was started again in the same folder
  CHECK_FALSE(strikes_in([] { pass_all(3); }));
}

TEST_CASE("a repeated event strikes in so many generations") {
  const TempDirectory folder;
  for (const auto& [generation, struck] : {std::pair{0, false}, {1, true}, {2, true}, {3, false}}) {
    arm(folder, kRank1 + "when: {step: 3}, generation: 1, repeats: 2, " + kThrow, 1, generation);
    CHECK(strikes_in([] { pass_all(3); }) == struck);
  }
}

TEST_CASE("places of a save and of a start") {
  const TempDirectory folder;
  arm(folder, kRank1 + "when: {step: 4, at: checkpoint, after: 0.5}, " + kThrow, 1);
  pass_checkpoint_bytes(8, 100, 100);
  pass_checkpoint_bytes(4, 49, 100);
  CHECK(strikes_in([] { pass_checkpoint_bytes(4, 50, 100); }));
  for (const auto& [name, place] : {std::pair{"reload", Place::reload}, {"restart", Place::restart}}) {
    const TempDirectory own;
    arm(own, kRank1 + "when: {at: " + name + "}, generation: 1, " + kThrow, 1, 1);
    pass_all(4);
    CHECK(strikes_in([&, at = place] { pass_fault_point(at, 0); }));
  }
}

TEST_CASE("a computation of a slow rank takes longer by the factor, until it is over") {
  const TempDirectory folder;
  arm(folder, "who: {domain: node, index: 1}, when: {step: 2}, what: {kind: slow, factor: 3}", 3);
  pass_fault_point(Place::begin, 2);
  const double begin = steady_s();
  for (int op = 0; op < 20; ++op) pass_computation(0.001);
  CHECK(steady_s() - begin >= 20 * 2 * 0.001);
  const auto lines = lines_of(folder / "strikes.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(lines[1]["proof"]["computed_s"].get<double>() == Approx(0.02));
  CHECK(lines[1]["proof"]["waited_s"].get<double>() >= 0.04);
}

TEST_CASE("a slowdown that had no end goes on when a later one is over") {
  const TempDirectory folder;
  const std::string who = "who: {domain: node, index: 1}, ";
  arm(folder,
      who + "when: {step: 2}, what: {kind: slow, factor: 3}}\n  - {" + who +
          "when: {step: 3}, what: {kind: slow, factor: 2}, lasts: 0.001s",
      3);
  pass_fault_point(Place::begin, 2);
  for (int op = 0; op < 10; ++op) pass_computation(0.001);
  pass_fault_point(Place::begin, 3);
  pass_computation(0.001);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  pass_computation(0.001);  // the later one is over
  for (int op = 0; op < 10; ++op) pass_computation(0.001);
  const auto lines = lines_of(folder / "strikes.jsonl");
  REQUIRE(lines.size() == 4);
  CHECK((lines[2]["event"] == 1 && lines[2]["proof"]["ops"] == 1));
  CHECK((lines[3]["event"] == 0 && lines[3]["proof"]["ops"] == 20));
  CHECK(lines[3]["proof"]["waited_s"].get<double>() >= 0.04);
}

TEST_CASE("of two slowdowns the larger factor acts, and both are proved") {
  const TempDirectory folder;
  const std::string who = "who: {domain: node, index: 1}, when: {step: 2}, ";
  arm(folder, who + "what: {kind: slow, factor: 4}}\n  - {" + who + "what: {kind: slow, factor: 2}", 3);
  pass_fault_point(Place::begin, 2);
  const double begin = steady_s();
  for (int op = 0; op < 20; ++op) pass_computation(0.001);
  CHECK(steady_s() - begin >= 20 * 3 * 0.001);
  const auto lines = lines_of(folder / "strikes.jsonl");
  REQUIRE(lines.size() == 4);
  for (const std::size_t line : {2, 3}) {
    CHECK(lines[line]["event"] == line - 2);
    CHECK(lines[line]["proof"]["waited_s"].get<double>() >= 0.06);
  }
}

TEST_CASE("one bit flips, or all becomes zero, and the value is read back") {
  FaultEffect what;
  std::vector<float> values{0.5F, 1.0F, 2.0F};
  const HostNumbers numbers{values.data(), 3, 4};
  what.element = 4, what.bit = 31;  // counted around: the second
  CHECK(corrupt(numbers, what) == json{{"element", 1}, {"before", "3f800000"}, {"after", "bf800000"}});
  CHECK(values == std::vector<float>{0.5F, -1.0F, 2.0F});
  what.element = 2, what.bit = 30;
  corrupt(numbers, what);
  CHECK(std::bit_cast<std::uint32_t>(values[2]) == 0U);  // 2.0 has the top bit of the exponent alone
  what.bit.reset();
  CHECK(corrupt(numbers, what).at("bytes_not_zero_before") == 3);  // 3f; bf 80
  CHECK(values == std::vector<float>{0, 0, 0});
  std::vector<std::uint16_t> bf16{0x3f80};
  what.element = 0, what.bit = 15;
  corrupt({bf16.data(), 1, 2}, what);
  CHECK(bf16[0] == 0xbf80);
  what.bit = 16;
  CHECK_THROWS_WITH(corrupt({bf16.data(), 1, 2}, what), Catch::Contains("found bit 16") && Catch::Contains("0..15"));
}

TEST_CASE("a tensor is asked for at the place, and its change is logged") {
  const TempDirectory folder;
  arm(folder, kRank1 + "when: {step: 2, at: a.fwd}, what: {kind: corrupt, tensor: weight, layer: 1, bit: 0}", 1);
  float value = 1;
  give_tensors_to_faults([&](const FaultEffect& what, const auto& change) {
    CHECK((what.tensor == TensorKind::weight && what.layer == 1));
    change({&value, 1, 4});
  });
  pass_all(1);
  CHECK(value == 1);
  pass_all(2);
  CHECK(std::bit_cast<std::uint32_t>(value) == 0x3f800001U);
  CHECK(lines_of(folder / "strikes.jsonl").at(0)["proof"]["after"] == "3f800001");
}

TEST_CASE("a full disk fails as write(2) does, and nothing is left of the file") {
  const TempDirectory folder;
  int told = 0, times = 0;
  limit_writes({1000, [&](int error) { told = error, ++times; }});
  write_file_atomically(folder / "fits", std::string(600, 'a'));
  CHECK_THROWS_WITH(write_file_atomically(folder / "large", std::string(600, 'b')),
                    Catch::Contains("No space left on device"));
  CHECK_THROWS(write_file_atomically(folder / "fits", "c"));
  limit_writes({});
  CHECK((told == ENOSPC && times == 1));
  CHECK(read_bytes(folder / "fits") == std::string(600, 'a'));
  CHECK(folder.entries() == 1);
  write_file_atomically(folder / "large", "there is room again");
}

TEST_CASE("a folder is removed while others write and remove files in it") {
  const TempDirectory folder;
  const std::filesystem::path node = folder / "node";
  for (int round = 0; round < 20; ++round) {
    std::filesystem::create_directory(node);
    for (int i = 0; i < 50; ++i) write_bytes(node / std::to_string(i), "x");
    std::jthread other([&node] {
      for (int i = 0; i < 50; ++i) {
        std::error_code none;
        std::filesystem::remove(node / std::to_string(i), none);
        std::ofstream(node / std::to_string(i + 50)) << "y";  // fails where the folder is gone
      }
    });
    CHECK(remove_linked_folder(node));
    CHECK_FALSE(std::filesystem::exists(node));
  }
}

TEST_CASE("a node that is killed takes its copies with it, also where its folder is a link into its memory") {
  const TempDirectory folder;
  std::filesystem::create_directories(folder / "memory");
  std::filesystem::create_directories(folder / "nodes");
  write_bytes(folder / "memory" / "copy", "x");
  std::filesystem::create_directory_symlink(folder / "memory", folder / "nodes" / "1");
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  FaultEvent event;
  event.what.takes_local_copies = true;
  const FaultedRank self{0, 2, 0, folder.path(), 0, 0, true};
  const StrikeLog log(folder.path());
  const Strike strike{0, 0, 2, 1, 3, "a.fwd", "kill"};
  kill_victims({event, self, log, strike, {{child, 2, 1}}, {strike}});
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(!std::filesystem::exists(std::filesystem::symlink_status(folder / "nodes" / "1")));
  CHECK(!std::filesystem::exists(folder / "memory"));
  CHECK(lines_of(folder / "strikes.jsonl").at(0)["proof"]["copies_removed"] == json{"1"});
}

TEST_CASE("a stopped process is sampled while it is, and goes on after its time") {
  const TempDirectory folder;
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  CHECK(process_state(child) != 'T');
  FaultEvent event;
  event.lasts_s = 0.2;
  const FaultedRank self{1, 2, 0, folder.path(), 0, 0, true};
  const StrikeLog log(folder.path());
  stop_processes({child}, {event, self, log, {0, 0, 1, 0, 3, "a.fwd", "hang"}, {}, {}});
  for (int tenth = 0; tenth < 100 && lines_of(folder / "strikes.jsonl").empty(); ++tenth) usleep(100'000);
  const auto lines = lines_of(folder / "strikes.jsonl");
  REQUIRE(lines.size() == 1);
  const json& proof = lines[0]["proof"];
  CHECK((proof["samples_stopped"] > 0 && proof["samples_moved"] == 0 && proof["continued"] && !proof["ended"]));
  CHECK(process_state(child) != 'T');
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  CHECK((process_state(child) == 'Z' && gone(child)));
  waitpid(child, nullptr, 0);
  CHECK((process_state(child) == '?' && gone(child)));
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

namespace {

void wait_for_files(const std::filesystem::path& folder, const std::string& kind, std::size_t count) {
  const auto there = [&] {
    return std::count_if(std::filesystem::directory_iterator(folder), {},
                         [&](const auto& entry) { return entry.path().extension() == kind; });
  };
  for (int hundredth = 0; hundredth < 3000 && there() < static_cast<std::ptrdiff_t>(count); ++hundredth) usleep(10'000);
}

std::string listed(const std::vector<pid_t>& members) {
  std::vector<std::int64_t> ranks;
  for (const RankProcess& process : ranks_here(members)) ranks.push_back(process.rank);
  std::sort(ranks.begin(), ranks.end());
  return json(ranks).dump();
}

pid_t pid_in(const std::filesystem::path& file) { return std::stoi(read_bytes(file)); }

}  // namespace

// The next one starts it as a rank: it has forked a child, as a strike does, and says whom it sees.
TEST_CASE("a rank sees", "[.rank]") {
  const std::filesystem::path folder = std::getenv("WT_RANKS");
  const std::string name = std::getenv("NAME");
  const pid_t watcher = fork();
  if (watcher == 0)
    for (;;) pause();
  write_file_atomically(folder / (name + ".pid"), std::to_string(getpid()));
  wait_for_files(folder, ".pid", 4);
  const pid_t a = pid_in(folder / "a.pid"), b = pid_in(folder / "b.pid"), c = pid_in(folder / "c.pid");
  write_file_atomically(folder / (name + ".seen"), listed({}) + listed({c, b, a}));
  wait_for_files(folder, ".seen", 4);
  kill(watcher, SIGKILL);
}

TEST_CASE("ranks are those of one launch: of no other one, of no other generation, and no child of a rank") {
  const TempDirectory folder;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<pid_t> started;
  const auto start = [&](const std::string& name, int rank, int port, int generation) {
    const pid_t parent = getpid(), pid = fork();
    started.push_back(pid);
    if (pid != 0) return;
    setenv("WT_RANKS", folder.path().c_str(), 1), setenv("NAME", name.c_str(), 1);
    setenv("RANK", std::to_string(rank).c_str(), 1), setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    setenv("TORCHELASTIC_RESTART_COUNT", std::to_string(generation).c_str(), 1);
    setenv("WINDTUNNEL_PARENT", std::to_string(parent).c_str(), 1);
    execl(own.c_str(), own.c_str(), "a rank sees", nullptr);
    _exit(1);
  };
  start("a", 0, 1111, 0), start("b", 1, 1111, 0), start("c", 1, 1111, 1), start("other", 0, 2222, 0);
  for (const pid_t pid : started) {
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  CHECK(read_bytes(folder / "a.seen") == "[0,1][0,1,2]");  // by membership c is rank 0, b 1, a 2
  CHECK(read_bytes(folder / "b.seen") == "[0,1][0,1,2]");
  CHECK(read_bytes(folder / "c.seen") == "[1][0,1,2]");
  CHECK(read_bytes(folder / "other.seen") == "[0][]");
}
