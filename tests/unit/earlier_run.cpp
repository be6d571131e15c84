// Moving an earlier run aside: whole or finished at the next start, once for a launch, and nothing of it lost.
#include "trainer/checkpoint/earlier_run.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace fs = std::filesystem;

namespace {

using Files = std::map<std::string, std::string>;

const std::vector<std::string> kMoved{"checkpoints", "checkpoints.jsonl", "metrics.jsonl", "summary.json", ".saved"};

/// Leaves a run of `words` in the folder.
void leave_run(const fs::path& folder, const std::string& words) {
  fs::create_directories(folder / "checkpoints/step-00000002");
  for (const char* file : {"checkpoints/step-00000002/manifest.json", "checkpoints/latest", "checkpoints.jsonl",
                           "metrics.jsonl", "summary.json", ".saved", "run.yaml"})
    write_bytes(folder / file, words + " " + file);
}

Files left_by(const std::string& words) {
  const TempDirectory folder;
  leave_run(folder.path(), words);
  return bytes_below(folder.path());
}

/// What the folder holds beside runs that were moved.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("a move cut short after any of its steps is finished by the next start, a restart or not") {
  for (const bool restart : {false, true})
    for (std::size_t moved = 0; moved <= kMoved.size(); ++moved) {
      INFO(moved << " of " << kMoved.size() << " moved, restart " << restart);
      const TempDirectory folder;
      leave_run(folder.path(), "old");
      write_bytes(folder / ".anew", "\n");  // the old run began so, too
      fs::create_directories(folder / "earlier.partial");
      for (std::size_t i = 0; i < moved; ++i) fs::rename(folder / kMoved[i], folder / "earlier.partial" / kMoved[i]);
      if (moved == kMoved.size()) write_bytes(folder / "earlier.partial/run.yaml", "ol");  // cut short in its middle
      make_way(folder.path(), false, "", restart);
      CHECK((bytes_below(folder / "earlier") == left_by("old")));
      CHECK(names_in(folder.path()) == std::set<std::string>{".anew", "earlier", "run.yaml"});
    }
}

TEST_CASE("a restart keeps what its own launch wrote and moves what another wrote") {
  const TempDirectory folder;
  leave_run(folder.path(), "old");
  make_way(folder.path(), false, "job 1", true);  // the first generation ended before it came to move
  CHECK((bytes_below(folder / "earlier") == left_by("old")));
  leave_run(folder.path(), "own");
  make_way(folder.path(), false, "job 1", true);
  CHECK(fs::exists(folder / "checkpoints/latest"));
  CHECK_FALSE(fs::exists(folder / "earlier-2"));
  make_way(folder.path(), false, "job 2", true);
  CHECK((bytes_below(folder / "earlier-2") == left_by("own")));
  leave_run(folder.path(), "third");
  make_way(folder.path(), false, "job 2", false);  // started again by hand
  CHECK((bytes_below(folder / "earlier-3") == left_by("third")));
  CHECK((bytes_below(folder / "earlier") == left_by("old")));
}

TEST_CASE("a launch that found nothing to move keeps its run, too") {
  const TempDirectory folder;
  make_way(folder.path(), false, "", false);
  leave_run(folder.path(), "own");
  make_way(folder.path(), false, "", true);
  CHECK(names_in(folder.path()).count("earlier") == 0);
  CHECK(fs::exists(folder / "checkpoints/latest"));
}

TEST_CASE("a run that goes on from what is there changes nothing, and is refused where a move was cut short") {
  const TempDirectory folder;
  leave_run(folder.path(), "old");
  make_way(folder.path(), true, "", false);
  CHECK((bytes_below(folder.path()) == left_by("old")));
  fs::create_directories(folder / "earlier.partial");
  fs::rename(folder / "checkpoints", folder / "earlier.partial/checkpoints");
  const Files before = bytes_below(folder.path());
  for (const bool restart : {false, true})
    CHECK_THAT(usage_error([&] { make_way(folder.path(), true, "", restart); }),
               Contains("earlier.partial") && Contains("autoresume: false"));
  CHECK((bytes_below(folder.path()) == before));
}

TEST_CASE("what lies in both places is refused: neither is put over the other") {
  const TempDirectory folder;
  leave_run(folder.path(), "old");
  fs::create_directories(folder / "earlier.partial");
  write_bytes(folder / "earlier.partial/metrics.jsonl", "another");
  const std::string said = usage_error([&] { make_way(folder.path(), false, "", false); });
  CHECK_THAT(said, Contains("found metrics.jsonl there and in " + (folder / "earlier.partial").string()));
  CHECK(read_bytes(folder / "metrics.jsonl") == "old metrics.jsonl");
  CHECK(read_bytes(folder / "earlier.partial/metrics.jsonl") == "another");
  CHECK(read_bytes(folder / "earlier.partial/checkpoints/latest") == "old checkpoints/latest");
}

TEST_CASE("a relative link that is moved points where it did, wherever the move was cut short") {
  for (const bool cut_short : {false, true}) {
    INFO("cut short " << cut_short);
    const TempDirectory folder;
    leave_run(folder / "run", "old");
    fs::rename(folder / "run/checkpoints", folder / "big");
    fs::create_directory_symlink("../big", folder / "run/checkpoints");
    fs::create_symlink("metrics.jsonl", folder / "run/trace.json");
    if (cut_short) {
      fs::create_directories(folder / "run/earlier.partial");
      fs::rename(folder / "run/checkpoints", folder / "run/earlier.partial/checkpoints");
    }
    make_way(folder / "run", false, "", false);
    CHECK(read_bytes(folder / "run/earlier/checkpoints/latest") == "old checkpoints/latest");
    CHECK(fs::is_symlink(folder / "run/earlier/checkpoints"));
    CHECK(fs::read_symlink(folder / "run/earlier/trace.json") == "metrics.jsonl");  // what was moved with it
    CHECK(read_bytes(folder / "big/latest") == "old checkpoints/latest");
  }
}
