#include "configs/base/scratch_folder.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "configs/base/error.hpp"
#include "tests/fixtures/temp_directory.hpp"

namespace fs = std::filesystem;
using Catch::Contains;

TEST_CASE("a scratch folder is new, has its parents made, and goes with all that is in it") {
  const wt::test::TempDirectory folder;
  const fs::path parent = folder / "a/b";
  std::optional<wt::ScratchFolder> first(std::in_place, "run", parent), second(std::in_place, "run", parent);
  CHECK(first->path() != second->path());
  CHECK(first->path().parent_path() == parent);
  fs::create_directories(first->path() / "deep/er");
  const fs::path gone = first->path();
  first.reset();
  CHECK_FALSE(fs::exists(gone));
  CHECK(fs::is_directory(second->path()));
}

TEST_CASE("a scratch folder that cannot be is an error that says where") {
  CHECK_THROWS_WITH(wt::ScratchFolder("run", "/proc/nowhere"), Contains("/proc/nowhere/run-") && Contains("may write"));
  const char* before = std::getenv("TMPDIR");
  const std::optional<std::string> kept = before ? std::optional<std::string>(before) : std::nullopt;
  setenv("TMPDIR", "/nowhere", 1);
  CHECK_THROWS_WITH(wt::ScratchFolder("run"), Contains("TMPDIR"));
  kept ? setenv("TMPDIR", kept->c_str(), 1) : unsetenv("TMPDIR");
}
