// A loss that diverges again after the rollback: found in the metrics, by the watch itself.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/files/run.hpp"
#include "planner/watch/run_watch.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/sealed_document.hpp"

using namespace wt;
using namespace wt::test;
using nlohmann::json;

namespace {

/// Steps of a loss of 4 and, from `bad` on, of 9; the first of them ends at `unix_s`.
std::string rows(std::int64_t first, std::int64_t last, std::int64_t bad, double unix_s) {
  std::string out;
  for (std::int64_t step = first; step <= last; ++step) {
    const json row = {{"step", step}, {"unix_s", unix_s++}, {"step_s", 1}, {"loss", step < bad ? 4 : 9}};
    out += row.dump() + "\n";
  }
  return out;
}

/// Hooks that do nothing but say that it went well; nobody can sweep.
WatchHooks hooks() {
  WatchHooks out;
  for (const HookKind kind : {HookKind::stop, HookKind::start, HookKind::tell}) out.commands[kind] = {{"true"}, 60};
  return out;
}

}  // namespace

TEST_CASE("a finite loss that jumps again is met from the next older checkpoint, however late the watch looks") {
  const TempDirectory folder;
  write_bytes(folder / "run.yaml", read_bytes("configs/runs/tiny-moe.yaml"));
  for (const int step : {4, 8, 12}) {
    const auto checkpoint = folder / "checkpoints" / fmt::format("step-{:08}", step);
    std::filesystem::create_directories(checkpoint);
    const json empty = json::object();
    const json manifest = {
        {"schema", kCheckpointSchema}, {"step", step}, {"data", empty}, {"model", empty}, {"sampler", empty},
        {"files", json::array()}};
    write_bytes(checkpoint / "manifest.json", sealed(manifest).dump());
  }
  const auto metrics = [&](const std::string& text) { write_file_atomically(folder / "metrics.jsonl", text); };
  double now = 0;
  std::vector<json> starts;
  RunWatchOptions options;
  options.rules.window = 4, options.rules.verify_steps = 2, options.rules.rollback = {2, 1};
  options.rules.signals = {{"jump", WatchedMetric::loss, true, 0.5, WatchReference::before, 2, 0, /*deviations=*/4,
                            /*level=*/4, /*within=*/8}};
  options.hooks = hooks();
  options.ask = [](const auto&) { return LossFigures{}; };
  options.utilisation = [] { return std::optional<double>(); };
  options.clock = [&] { return now; };
  options.on_decision = [&](const json& decision) {
    if (decision["action"].is_object() && decision["action"]["hook"] == "start") starts.push_back(decision);
  };
  metrics(rows(1, 12, 11, 1001));
  now = 1012;
  RunWatch watch(folder.path(), std::move(options));
  watch.look();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0]["action"]["rollback"]["step"] == 8);

  // The checkpoint of step 8 has the fault in it. When the watch looks again nothing jumps any more.
  metrics(rows(1, 8, 11, 1001) + rows(9, 24, 9, 1020));
  now = 1036;
  for (int look = 0; look < 3; ++look) watch.look();
  REQUIRE(starts.size() == 2);
  CHECK(starts[1]["action"]["rollback"]["step"] == 4);
  CHECK(starts[1]["action"]["rollback"]["bad_step"] == 9);
}

TEST_CASE(
    "a start for another reason leaves out what the job itself leaves out, and nothing that it trained on since") {
  const std::vector<BatchRange> ever{{3, 5}, {9, 12}};
  CHECK(common(ever, {{3, 5}, {9, 12}}) == ever);
  CHECK(common(ever, {}).empty());
  CHECK(common(ever, {{4, 10}}) == std::vector<BatchRange>{{4, 5}, {9, 10}});
  CHECK(common(ever, {{6, 8}}).empty());
}
