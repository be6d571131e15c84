#include "tests/fixtures/golden.hpp"

#include <catch2/catch.hpp>
#include <optional>

using namespace wt::test;

namespace {

/// An environment variable, as it was when the case ends.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("a golden file is written where that is asked for, and nowhere else") {
  const TempDirectory folder;
  const auto file = folder / "golden.txt";
  write_bytes(file, "old");
  const Variable ci("CI", nullptr), update("WT_UPDATE_GOLDEN", nullptr);
  CHECK(golden(file, "new") == "old");
  const Variable now("WT_UPDATE_GOLDEN", "1");
  CHECK(golden(file, "new") == "new");
  CHECK(read_bytes(file) == "new");
}

TEST_CASE("no golden file is written in CI") {
  const TempDirectory folder;
  const auto file = folder / "golden.txt";
  write_bytes(file, "old");
  const Variable ci("CI", "true"), update("WT_UPDATE_GOLDEN", "1");
  CHECK_THROWS_WITH(golden(file, "new"), Catch::Contains("allowed outside CI alone"));
  CHECK(read_bytes(file) == "old");
  const Variable elsewhere("CI", "false");
  CHECK(golden(file, "new") == "new");
}
