#include "configs/base/atomic_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "configs/base/error.hpp"

namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("wt_atomic_{}", getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::size_t entries() const { return std::distance(fs::directory_iterator(path), fs::directory_iterator()); }
};

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// In a child, so that the limit and the signal's disposition stay there. The exit status says what happened.
int write_under_limit(const fs::path& file, rlim_t limit, void (*disposition)(int)) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, disposition);
    const rlimit small{limit, limit};
    setrlimit(RLIMIT_FSIZE, &small);
    try {
      wt::write_file_atomically(file, std::string(100'000, 'x'));
    } catch (const wt::Error& e) {
      const bool names_it =
          std::string(e.what()).find(file.string() + ": not written: write failed: File too large") == 0;
      _exit(names_it ? e.exit_status() : 90);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("a written file holds exactly the bytes and leaves nothing beside it") {
  const Folder folder;
  const std::string bytes("a\0b\n", 4);
  wt::write_file_atomically(folder.path / "f", "old");
  wt::write_file_atomically(folder.path / "f", bytes);
  CHECK(read(folder.path / "f") == bytes);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a write that hits the file size limit leaves the old file and nothing else") {
  const Folder folder;
  wt::write_file_atomically(folder.path / "f", "old");
  CHECK(write_under_limit(folder.path / "f", 5000, SIG_IGN) == 4);
  CHECK(write_under_limit(folder.path / "f", 5000, SIG_DFL) == 4);  // SIGXFSZ must not end the process either
  CHECK(read(folder.path / "f") == "old");
  CHECK(folder.entries() == 1);
  CHECK(write_under_limit(folder.path / "f", 200'000, SIG_DFL) == 0);
  CHECK(read(folder.path / "f").size() == 100'000);
}

TEST_CASE("a full device is an error that names it") {
  CHECK_THROWS_WITH(wt::write_file_atomically("/dev/full", "x"),
                    Catch::Matchers::Contains("/dev/full") && Catch::Matchers::Contains("No space left on device"));
}

TEST_CASE("a device is written through, never replaced") {
  wt::write_file_atomically("/dev/null", "x");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("no folder, and a folder in the file's place") {
  const Folder folder;
  CHECK_THROWS_WITH(wt::write_file_atomically(folder.path / "no" / "f", "x"),
                    Catch::Matchers::Contains("No such file or directory"));
  CHECK_THROWS_WITH(wt::write_file_atomically(folder.path, "x"), Catch::Matchers::Contains("Is a directory"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("links are followed and an existing file keeps its mode") {
  const Folder folder;
  wt::write_file_atomically(folder.path / "f", "old");
  fs::permissions(folder.path / "f", fs::perms(0640));
  fs::create_symlink("f", folder.path / "link");
  wt::write_file_atomically(folder.path / "link", "new");
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(read(folder.path / "f") == "new");
  CHECK(fs::status(folder.path / "f").permissions() == fs::perms(0640));
}
