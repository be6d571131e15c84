#include "planner/cli/gate/gate_trees.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/process.hpp"
#include "configs/base/run_hook.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

fs::path cache_of_trees() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (const std::string cache = variable("WINDTUNNEL_CACHE"); !cache.empty()) return fs::path(cache) / "gate";
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "windtunnel/gate";
  if (const std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache/windtunnel/gate";
  throw_usage("gate run: found no folder for the trees; set WINDTUNNEL_CACHE");
}

/// Most recently used trees that are kept with their builds: those of the current and of the previous comparisons.
constexpr std::size_t kTreesKept = 6;

void remove_old_trees(const fs::path& cache) {
  std::vector<std::pair<fs::file_time_type, fs::path>> trees;
  for (const auto& entry : fs::directory_iterator(cache))
    if (entry.is_directory()) trees.emplace_back(entry.last_write_time(), entry.path());
  std::sort(trees.rbegin(), trees.rend());
  std::error_code error;  // failing to remove an old tree does not prevent measuring
  for (std::size_t i = kTreesKept; i < trees.size(); ++i) fs::remove_all(trees[i].second, error);
}

/// What git says in the folder; "" where it fails.
std::string git(const fs::path& folder, std::vector<std::string> words) {
  constexpr double kPatience_s = 600;  // a worktree of a large repository on a slow disk
  words.insert(words.begin(), "git");
  return output_of({.words = std::move(words), .folder = folder}, kPatience_s);
}

}  // namespace

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (char c : text) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

GateTrees::GateTrees() {
  repository_ = git(fs::current_path(), {"rev-parse", "--show-toplevel"});
  if (repository_.empty())
    throw_usage("gate run: {} is in no git repository; call it in the one whose revisions it compares",
                fs::current_path().string());
  cache_ = cache_of_trees() / fmt::format("{}-{:08x}", repository_.filename().string(),
                                          static_cast<std::uint32_t>(hash_of(repository_.string())));
  log_ = cache_ / "log";
  std::error_code error;
  fs::create_directories(cache_, error);
  const fs::path lock = cache_.parent_path() / "lock";  // one for all repositories, which share the machine
  lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) throw_runtime("{}: cannot be written; set WINDTUNNEL_CACHE", lock.string());
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    throw_error(Code::undecided, "gate run: another one holds {}; two at once spoil one another, wait for its end",
                lock.string());
  }
  std::ofstream(log_).flush();  // empties the log
}

GateTrees::~GateTrees() { close(lock_); }

GateTree GateTrees::tree(const std::string& revision) {
  const bool here = revision == ".";
  const std::string commit = git(repository_, {"rev-parse", "--verify", "--quiet", "--end-of-options",
                                               (here ? std::string("HEAD") : revision) + "^{commit}"});
  if (commit.empty())
    throw_usage("gate run: found no revision '{}' in {}; name a commit, branch or tag that git log shows",
                here ? "HEAD" : revision, repository_.string());
  if (here) return {repository_, commit, git(repository_, {"status", "--porcelain"}).empty()};
  const fs::path folder = cache_ / commit.substr(0, 12);
  // Of an earlier clone at the same path, the folder may be a worktree that this repository does not know.
  const std::vector<std::string> whose = {"rev-parse", "--path-format=absolute", "--git-common-dir"};
  const bool is_ours = fs::exists(folder / ".git") && git(folder, whose) == git(repository_, whose);
  if (!is_ours) {
    fs::remove_all(folder);
    git(repository_, {"worktree", "prune"});
    git(repository_, {"worktree", "add", "--quiet", "--detach", folder.string(), commit});
  } else {
    git(folder, {"checkout", "--quiet", "--force", "--detach", commit});
  }
  if (git(folder, {"rev-parse", "HEAD"}) != commit)
    throw_runtime("gate run: {} could not be checked out into {}; try: git worktree add --detach {} {}", commit,
                  folder.string(), folder.string(), commit);
  fs::last_write_time(folder, fs::file_time_type::clock::now());
  remove_old_trees(cache_);
  return {folder, commit};
}

bool run_in_tree(const GateTree& tree, const std::string& command, double limit_s, const fs::path& log,
                 std::string& said) {
  const HookEnd end = run_hook(
      {.words = {"bash", "-c", command},
       .environment = environment_with({{"CCACHE_BASEDIR", tree.folder.string()}, {"CCACHE_NOHASHDIR", "true"}}),
       .folder = tree.folder},
      limit_s, log, true);
  said = end.said;
  return end.how == HookEnd::How::ok;
}

}  // namespace wt
