// Opens every door to inputs that nobody would write (mutation.hpp), and to those of tests/fuzz/corpus, a folder a
// door: texts that it reads, and inputs that once came through. Whatever comes, a door reads it or throws Error{usage},
// within ten seconds of processor time (and four times that by the clock, else it waits for something) and one
// gigabyte. What a door names as its seeds, it reads.
//
// Every door runs in a process of its own, so that one that crashes is a finding, and the next input follows.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"
#include "tests/fuzz/door.hpp"
#include "tests/fuzz/mutation.hpp"

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Read by the sanitizers before main: memory beyond the limit ends the process, as any other finding does.
extern "C" const char* __asan_default_options();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "detect_leaks=0:strict_string_checks=1:max_allocation_size_mb=1024:hard_rss_limit_mb=3072";
}

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr rlim_t kMostMemory = rlim_t{1} << 30;  // bytes, above what the process has at its start
constexpr std::int64_t kMostFindings = 20;       // of a door, then it is left

struct Options {
  std::vector<std::string> doors;
  std::int64_t inputs = 1000, first = 0;
  double seconds = 1e9;  // a door
  std::uint64_t seed = 1;
  std::string findings = "out/fuzz";
  bool say = false, planted = false;
  double longest_s = 10;  // of processor time, an input
};

/// What a door's process tells while it lives, in memory that outlives it.
struct Progress {
  std::int64_t next = 0;  ///< input that is read now; mutated ones follow those of the corpus
  std::int64_t read = 0, refused = 0, findings = 0;
  double slowest_s = 0, total_s = 0;
  std::int64_t slowest = -1;
};

double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Of one input. SIGPROF and SIGALRM end the process; 0 s stop both.
void limit_time(double seconds) {
  constexpr double kWaiting = 4;  // others may have the processors
  const auto set = [](int which, double s) {
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(s);
    timer.it_value.tv_usec = static_cast<suseconds_t>(1e6 * (s - std::floor(s)));
    setitimer(which, &timer, nullptr);
  };
  set(ITIMER_PROF, seconds);
  set(ITIMER_REAL, kWaiting * seconds);
}

void limit_memory() {
  if (kSanitized) return;  // its shadow is terabytes; see the options above
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMostMemory;
  const rlimit memory{limit, limit};
  setrlimit(RLIMIT_AS, &memory);
}

class Inputs {
 public:
  Inputs(const Door& door, std::uint64_t seed)
      : seeds_(known_inputs(door)), words_(words_of(seeds_)), seed_(hash_of(door.name) ^ seed) {}
  std::int64_t known() const { return static_cast<std::int64_t>(seeds_.size()); }
  std::string at(std::int64_t i) const {
    if (i < known()) return seeds_[static_cast<std::size_t>(i)];
    Draws draws(seed_ + static_cast<std::uint64_t>(i - known()) * 0x2545f4914f6cdd1d);
    return mutated(seeds_, words_, draws);
  }

 private:
  std::vector<std::string> seeds_, words_;
  std::uint64_t seed_;
};

void keep(const Options& o, const Door& door, std::int64_t i, const std::string& input, const std::string& what) {
  fs::create_directories(o.findings);
  const fs::path file = fs::path(o.findings) / fmt::format("{}-{}", door.name, i);
  std::ofstream(file, std::ios::binary) << input;
  fmt::print(stderr, "{}: input {} ({} bytes, kept as {}): {}\n", door.name, i, input.size(), file.string(),
             shortened(what));
}

/// In a process of its own: all inputs from progress.next on.
void open_door(const Options& o, const Door& door, const Inputs& inputs, const fs::path& folder, Progress& progress) {
  limit_memory();
  for (const std::int64_t end = inputs.known() + o.inputs; progress.next < end; ++progress.next) {
    if (progress.total_s > o.seconds || progress.findings >= kMostFindings) return;
    const std::string input = inputs.at(progress.next);
    const double begin_s = cpu_s();
    limit_time(o.longest_s);
    std::string refused;
    std::string wrong = answer(door, input, folder, refused);
    if (progress.next < static_cast<std::int64_t>(door.seeds.size()) && wrong.empty() && !refused.empty())
      wrong = "a seed is refused: " + refused;
    limit_time(0);
    const double took_s = cpu_s() - begin_s;
    progress.total_s += took_s;
    if (took_s > progress.slowest_s) progress.slowest_s = took_s, progress.slowest = progress.next;
    ++progress.read, progress.refused += refused.empty() ? 0 : 1;
    if (o.say) fmt::print("{}: input {}: {}\n", door.name, progress.next, refused.empty() ? "read" : refused);
    if (!wrong.empty()) ++progress.findings, keep(o, door, progress.next, input, wrong);
  }
}

/// Findings of the door. One that ends its process is told of by the parent.
std::int64_t findings_at(const Options& o, const Door& door, Progress& progress) {
  const Inputs inputs(door, o.seed);
  progress = {};
  progress.next = o.first;
  while (true) {
    const ScratchFolder folder("fuzz");  // here: a process that is ended leaves its own behind
    const pid_t child = fork();
    if (child < 0) throw_runtime("{}: no process could be started", door.name);
    if (child == 0) {
      open_door(o, door, inputs, folder.path(), progress);
      std::fflush(nullptr);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    ++progress.findings, ++progress.read;
    keep(o, door, progress.next, inputs.at(progress.next),
         WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF   ? fmt::format("more than {} s", o.longest_s)
         : WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "waits for something"
         : WIFSIGNALED(status)                                ? fmt::format("ended by signal {}", WTERMSIG(status))
                                                              : fmt::format("ended with {}", WEXITSTATUS(status)));
    ++progress.next;
    if (progress.findings >= kMostFindings) break;
  }
  fmt::print(
      "{:22} {:9} inputs {:5.1f} % refused {:7.1f} s, slowest {:.3f} s (input {}), {} findings\n", door.name,
      progress.read,
      100.0 * static_cast<double>(progress.refused) / static_cast<double>(std::max<std::int64_t>(1, progress.read)),
      progress.total_s, progress.slowest_s, progress.slowest, progress.findings);
  std::fflush(stdout);
  return progress.findings;
}

int run(const Options& o) {
  const std::vector<Door> doors = o.planted ? planted_doors() : all_doors();
  for (const std::string& name : o.doors)
    if (std::none_of(doors.begin(), doors.end(), [&](const Door& door) { return door.name == name; }))
      throw_usage("found no door '{}'", name);
  auto* const progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  bool as_wanted = true;
  for (const Door& door : doors)
    if (o.doors.empty() || std::find(o.doors.begin(), o.doors.end(), door.name) != o.doors.end())
      as_wanted = (findings_at(o, door, *progress) > 0) == o.planted && as_wanted;
  return as_wanted ? 0 : 1;
}

}  // namespace
}  // namespace wt::fuzz

int main(int argc, char** argv) try {
  wt::fuzz::Options o;
  CLI::App app("Readers against inputs that nobody would write; run it in the root of the source tree");
  app.add_option("DOOR", o.doors, "Doors to try (all)");
  app.add_option("--inputs", o.inputs, "Mutated inputs a door, after the corpus")->capture_default_str();
  app.add_option("--first", o.first, "Number of the first input")->capture_default_str();
  app.add_option("--seconds", o.seconds, "Processor time a door, at most");
  app.add_option("--seed", o.seed, "Of the inputs")->capture_default_str();
  app.add_flag("--planted", o.planted, "Doors that fail instead: 0 where each is found out");
  app.add_option("--longest", o.longest_s, "Processor time of an input, seconds")->capture_default_str();
  app.add_flag("--say", o.say, "Say of each input why it was refused");
  app.add_option("--findings", o.findings, "Folder for inputs that came through")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return wt::fuzz::run(o);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
