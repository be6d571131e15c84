// A run never goes on as another one: other data or another model at the same path, or a second launch beside the
// first.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/pack.hpp"
#include "trainer/safetensors/sealed_document.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace fs = std::filesystem;

namespace {

RunSpec one_rank(std::int64_t steps) {
  RunSpec run = small_run();
  run.steps = steps, run.save = true, run.global_batch = 8;
  run.optimizer.final_lr_fraction = 1;
  return run;
}

/// So many samples of one letter.
void pack_letters(const fs::path& folder, char letter, int samples) {
  fs::remove_all(folder);
  write_bytes(folder.string() + ".txt", std::string(static_cast<std::size_t>(samples * 48), letter));
  PackOptions options;
  options.seq_len = 48;
  pack_text({folder.string() + ".txt"}, folder, options);
}

std::string refused(const RunSpec& run, const fs::path& folder) {
  const auto before = bytes_below(folder);
  const Ended ended = train(run, folder);
  INFO(ended.said);
  CHECK(ended.status == 2);
  CHECK((bytes_below(folder) == before));
  return ended.said;
}

Started start(const RunSpec& run, const fs::path& folder) {
  const fs::path file = folder.string() + "-started.yaml";
  write_file_atomically(file, run_to_yaml(run));
  return start_trainer({"train", file.string(), "-o", folder.string()});
}

}  // namespace

TEST_CASE("other data at the same path: refused, as many samples or more, and nothing is changed") {
  const fs::path data = scratch("letters"), folder = scratch("other-data");
  pack_letters(data, 'a', 40);
  RunSpec run = one_rank(2);
  run.dataset.use_folder(data);
  REQUIRE(train(run, folder).status == 0);
  run.steps = 4;
  for (const int samples : {40, 50}) {
    pack_letters(data, 'b', samples);
    CHECK_THAT(refused(run, folder), Contains("found other data than the run has read") &&
                                         Contains("samples would not continue") && Contains("autoresume: false"));
  }
  pack_letters(data, 'a', 40);  // the same again, by its contents
  const Ended ended = train(run, folder);
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("continuing after step 2 "));
}

TEST_CASE("what makes another model or step is refused; what was changed on purpose is in the log") {
  const fs::path folder = scratch("other-settings");
  REQUIRE(train(one_rank(2), folder).status == 0);
  RunSpec model = one_rank(4), precision = one_rank(4), on_purpose = one_rank(4);
  model.model.norm_eps = 0.9, model.model.router.scale = 5;
  CHECK_THAT(refused(model, folder), Contains("checkpoint of another model") &&
                                         Contains("model.norm_eps: the run says 0.9, it was 1e-05") &&
                                         Contains("model.ffn_config.moe_route_scale"));
  precision.precision = Precision::bf16;
  CHECK_THAT(refused(precision, folder), Contains("checkpoint of another run: precision"));
  on_purpose.optimizer.lr = 0.001;
  const Ended ended = train(on_purpose, folder);
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("resumed with another optimizer.lr: 0.001, was 0.003") &&
                             Contains("resumed with another max_duration: 4ba, was 2ba"));
}

TEST_CASE("a checkpoint of a build that kept neither settings nor data is resumed, and the log says so") {
  const fs::path folder = scratch("older-build");
  REQUIRE(train(one_rank(2), folder).status == 0);
  const fs::path file = checkpoint_of(folder, 2) / "manifest.json";
  nlohmann::json manifest = read_json(file);
  manifest.erase("settings"), manifest.at("sampler").erase("data");
  write_bytes(file, sealed(manifest).dump());
  RunSpec run = one_rank(4);
  run.optimizer.eps = 1e-6;
  const Ended ended = train(run, folder);
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("was saved by an older build") && Contains("was not checked"));
  const nlohmann::json next = read_json(checkpoint_of(folder, 4) / "manifest.json");
  CHECK((next.at("settings").at("optimizer.eps") == "1e-06" && next.at("sampler").at("data").size() == 1));
}

TEST_CASE("a second launch into a folder is refused with who holds it; after a kill the next one begins at once") {
  const fs::path folder = scratch("two-launches");
  const RunSpec run = one_rank(2000);
  const Started first = start(run, folder);
  wait_for_step(folder, 2);
  RunSpec other = run;
  other.optimizer.lr = 0.03;
  const Ended second = train(other, folder);
  INFO(second.said);
  CHECK(second.status == 2);
  CHECK_THAT(second.said, Contains("found another launch that trains into it: process " + std::to_string(first.pid)));
  const auto ranks = start_ranks(one_rank(2), folder);  // nor is a launcher's rank let in
  const Ended rank = wait_for(ranks.at(0));
  CHECK(rank.status == 2);
  CHECK_THAT(rank.said, Contains("found another launch that trains into it"));
  kill(first.pid, SIGKILL);
  waitpid(first.pid, nullptr, 0);
  const Ended again = train(one_rank(2), folder);
  INFO(again.said);
  CHECK(again.status == 0);
  CHECK(steps_of(folder).size() == 2);
}

TEST_CASE("two runs do not share a save_folder, and one of this machine that was killed holds nobody up") {
  const fs::path folder = scratch("saves-first"), other = scratch("saves-second"), store = scratch("one-store");
  RunSpec run = one_rank(2000);
  run.save_folder = store.string();
  const Started first = start(run, folder);
  wait_for_step(folder, 1);
  const Ended second = train(run, other);
  INFO(second.said);
  CHECK(second.status == 2);
  CHECK_THAT(second.said, Contains("found another run that saves there: process ") && Contains(folder.string()));
  kill(first.pid, SIGKILL);
  waitpid(first.pid, nullptr, 0);
  run.steps = 2;
  CHECK(train(run, other).status == 0);
}
