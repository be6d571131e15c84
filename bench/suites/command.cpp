#include "bench/suites/command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/profile/fingerprint.hpp"
#include "bench/profile/host_load.hpp"
#include "bench/suites/kernels_suite.hpp"
#include "bench/suites/rank_suite.hpp"
#include "bench/suites/table.hpp"
#include "configs/spec/error.hpp"
#include "configs/spec/profile.hpp"
#include "configs/spec/run.hpp"
#include "kernels/kernels.h"
#include "reports/progress.hpp"
#include "trainer/agent.hpp"
#include "trainer/device.hpp"
#include "trainer/pch.hpp"

#include <torch/version.h>

namespace wt {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  std::string suite = "all", run = "configs/runs/demo.yaml", output;
  bool json = false;
  SuiteOptions suite_options;
};

/// A folder of its own beside the output (the file system that is meant), gone at the end whatever happens.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& beside) {
    path_ = (beside.has_parent_path() ? beside.parent_path() : fs::current_path()) /
            fmt::format(".windtunnel-bench-{}", getpid());
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Runs a suite of several processes and adds what it measured.
void bench_ranks(const std::string& suite, std::int64_t ranks, const std::vector<std::int64_t>& bytes,
                 const BenchOptions& o, const fs::path& folder, Profile& profile) {
  const fs::path output = folder / fmt::format("{}-{}.json", suite, ranks);
  // A wake-up on shared cores takes microseconds or a scheduler's slice: twice the samples settle the median.
  const int samples = suite == "collectives" ? 2 * o.suite_options.samples + 1 : o.suite_options.samples;
  std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(),
                                   "bench-rank",
                                   suite,
                                   "-o",
                                   output.string(),
                                   "--folder",
                                   folder.string(),
                                   "--samples",
                                   std::to_string(samples),
                                   "--seed",
                                   std::to_string(o.suite_options.seed)};
  for (std::int64_t size : bytes) command.insert(command.end(), {"--bytes", std::to_string(size)});
  run_ranks(command, {ranks, 0, {}});
  const Profile part = read_profile(output);
  profile.measurements.insert(profile.measurements.end(), part.measurements.begin(), part.measurements.end());
}

/// 1 and 8 MiB, and the run's whole checkpoint (fp32 masters and two moments) up to 256 MiB, 64 MiB if quick.
std::vector<std::int64_t> storage_sizes(const RunSpec& run, bool quick) {
  std::vector<std::int64_t> out{1 << 20, 8 << 20};
  if (!quick) out.push_back(64 << 20);
  out.push_back(std::min<std::int64_t>(12 * run.model.total_parameters(), (quick ? 64 : 256) << 20));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void warn_of_throttling(const Profile& profile) {
  std::size_t slowed = 0;
  for (const Measurement& m : profile.measurements) slowed += m.throttled.empty() ? 0 : 1;
  if (slowed > 0)
    fmt::print(stderr, "windtunnel bench: {} of {} measurements were taken on a throttled device ({}); they are marked so, and gate does not compare them\n",
               slowed, profile.measurements.size(), profile.fingerprint.at("run.clock_events"));
}

void bench(const BenchOptions& o) {
  const RunSpec run = read_run(o.run);
  const bool all = o.suite == "all";
  const at::Device device = open_device(o.suite_options.device);
  const HostLoad before = host_load();
  Profile profile;
  profile.fingerprint = host_facts();
  for (const auto& [key, value] : Fingerprint{{"torch", TORCH_VERSION},
                                              {"isa", wt_kernel_isa()},
                                              {"threads", "1"},
                                              {"run.name", run.name},
                                              {"run.seed", std::to_string(o.suite_options.seed)},
                                              {"run.data", "standard normal"}})
    profile.fingerprint[key] = value;
  profile.fingerprint.merge(device_facts(all || o.suite == "kernels" ? device : at::Device(at::kCPU)));
  if (all || o.suite == "kernels") {
    Profile kernels = bench_kernels(run, o.suite_options);
    profile.measurements = std::move(kernels.measurements);
    profile.fingerprint.merge(kernels.fingerprint);
  }
  if (all || o.suite != "kernels") {
    const ScratchFolder scratch(o.output);
    const bool quick = o.suite_options.quick;
    Progress progress("ranks", 5);
    std::int64_t done = 0;
    for (std::int64_t ranks : {2, 4}) {
      if (o.suite == "storage") continue;
      progress.update(done++, fmt::format("collectives over {} ranks", ranks));
      bench_ranks("collectives", ranks, collective_sizes(quick), o, scratch.path(), profile);
    }
    for (std::int64_t ranks : {1, 2, 4}) {
      if (o.suite == "collectives") continue;
      progress.update(done++, fmt::format("storage over {} ranks", ranks));
      bench_ranks("storage", ranks, storage_sizes(run, quick), o, scratch.path(), profile);
    }
  }
  profile.fingerprint.merge(host_conditions(before, host_load()));
  if (!o.output.empty()) write_profile(profile, o.output);
  warn_of_throttling(profile);
  if (o.json)
    fmt::print("{}\n", to_json(profile).dump(1));
  else
    fmt::print("{}", bench_table(profile));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  const auto o = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench",
                                         "Time and check the kernels, collectives and storage that a run uses\n"
                                         "Example: windtunnel bench --quick -o out/profile.json");
  command->add_option("SUITE", o->suite, "kernels | collectives | storage | all")
      ->check(CLI::IsMember({"kernels", "collectives", "storage", "all"}))
      ->capture_default_str();
  command->add_option("--run", o->run, "Run file whose shapes are measured")->capture_default_str();
  command
      ->add_option("--device", o->suite_options.device,
                   "cpu | cuda: of the kernels; collectives and storage are measured on the CPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_flag("--quick", o->suite_options.quick, "Fewer shapes and sizes, shorter samples");
  command->add_option("--samples", o->suite_options.samples, "Samples of each benchmark")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  command->add_option("--seed", o->suite_options.seed, "Of the input data and the order of samples")
      ->capture_default_str();
  command->add_option("-o,--output", o->output, "Profile (JSON) to write; storage is measured in its folder");
  command->add_flag("--json", o->json, "The profile on standard output instead of the table");
  command->callback([o] { bench(*o); });

  struct RankArguments {
    std::string suite, output, folder;
    RankSuiteOptions options;
  };
  const auto r = std::make_shared<RankArguments>();
  CLI::App* rank = app.add_subcommand("bench-rank", "One rank of a suite; started by bench")->group("");
  rank->add_option("SUITE", r->suite)->required();
  rank->add_option("-o", r->output)->required();
  rank->add_option("--folder", r->folder);
  rank->add_option("--samples", r->options.samples);
  rank->add_option("--seed", r->options.seed);
  rank->add_option("--bytes", r->options.bytes);
  rank->callback([r] {
    r->options.folder = r->folder;
    bench_as_rank(r->suite, r->options, r->output);
  });
}

}  // namespace wt
