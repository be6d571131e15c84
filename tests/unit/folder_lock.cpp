// A folder is one process's until that has ended, and then at once the next one's.
#include "configs/base/folder_lock.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "configs/base/running.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace {

const FolderLock::Use kUse{".trial.lock", "trial"};

/// A process that does this, and then lives until it is killed.
pid_t process_that(const std::function<void()>& does) {
  int ready[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    does();
    char done = 1;
    if (write(ready[1], &done, 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  char done = 0;
  REQUIRE(read(ready[0], &done, 1) == 1);
  close(ready[0]);
  return child;
}

void end(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

std::string refusal(const std::filesystem::path& folder) {
  return usage_error([&] { FolderLock(folder, kUse); });
}

}  // namespace

TEST_CASE("a folder that is held is refused with who holds it, and free afterwards without a trace") {
  const TempDirectory folder;
  {
    const FolderLock held(folder.path(), {kUse.file, kUse.what, "job 7"});
    CHECK_THAT(refusal(folder.path()), Contains("found another trial: process " + std::to_string(getpid())) &&
                                           Contains(" on " + host_name()) && Contains(", since 2") &&
                                           Contains("launch job 7") && Contains("needs that to end first"));
    const FolderLock other(folder.path(), {".other.lock", "other"});  // another use
    CHECK(folder.entries() == 2);
  }
  CHECK(folder.entries() == 0);
  CHECK(refusal(folder.path()) == "no error");
}

TEST_CASE("a holder that was killed blocks nobody, though its file stays") {
  const TempDirectory folder;
  std::unique_ptr<FolderLock> held;
  const pid_t child = process_that([&] { held = std::make_unique<FolderLock>(folder.path(), kUse); });
  CHECK_THAT(refusal(folder.path()), Contains("process " + std::to_string(child)));
  end(child);
  CHECK(folder.entries() == 1);
  CHECK(refusal(folder.path()) == "no error");
  CHECK(folder.entries() == 0);
}

TEST_CASE("while a killed holder's children still hold it, the next one waits for them") {
  const TempDirectory folder;
  pid_t left = -1;
  int told[2];
  REQUIRE(pipe2(told, O_CLOEXEC) == 0);
  const pid_t holder = process_that([&] {
    static const FolderLock held(folder.path(), kUse);
    const pid_t child = fork();  // it has the descriptor, too, as ranks have
    if (child == 0) {
      usleep(300'000);
      _exit(0);
    }
    if (write(told[1], &child, sizeof child) != sizeof child) _exit(1);
  });
  REQUIRE(read(told[0], &left, sizeof left) == sizeof left);
  end(holder);
  CHECK(refusal(folder.path()) == "no error");
  CHECK_FALSE(is_running(left));
  close(told[0]), close(told[1]);
}

TEST_CASE("a process that has ended and is not waited for does not run") {
  CHECK(is_running(getpid()));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(kill(child, 0) == 0);  // so that this does not tell
  CHECK_FALSE(is_running(child));
  waitpid(child, nullptr, 0);
  CHECK_FALSE(is_running(child));
}

TEST_CASE("a folder that cannot be written to is trusted") {
  CHECK(refusal("/no/such/folder") == "no error");
  CHECK(FolderLock("/no/such/folder", kUse).descriptor() == -1);
}
