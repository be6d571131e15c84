#include "bench/suites/suite_commands.hpp"

#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/store/store_bandwidth.hpp"
#include "bench/suites/aims.hpp"
#include "bench/suites/collective_case.hpp"
#include "bench/suites/kernels_suite.hpp"
#include "bench/suites/partial_profile.hpp"
#include "bench/suites/rank_suite.hpp"
#include "bench/suites/staircase.hpp"
#include "bench/suites/suite_table.hpp"
#include "bench/work/cases.hpp"
#include "bench/work/work_list.hpp"
#include "configs/base/error.hpp"
#include "configs/base/output_place.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/files/find.hpp"
#include "configs/files/profile.hpp"
#include "configs/files/run.hpp"
#include "configs/machine/fingerprint.hpp"
#include "configs/machine/host_load.hpp"
#include "kernels/kernels.h"
#include "trainer/device/device.hpp"
#include "trainer/launch/agent.hpp"
#include "trainer/pch.hpp"

#include <torch/version.h>

namespace wt {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  std::string suite = "all", run = "demo", items, study, output, largest, worth, to;
  std::vector<std::string> models;
  bool dry_run = false, json = false;
  SuiteOptions suite_options;
};

/// 1 and 8 MiB, and the run's whole checkpoint (fp32 masters and two moments), up to 256 MiB (quick: 64 MiB).
std::vector<std::int64_t> storage_sizes(const RunSpec& run, bool quick) {
  std::vector<std::int64_t> out{1 << 20, 8 << 20};
  if (!quick) out.push_back(64 << 20);
  out.push_back(std::min<std::int64_t>(12 * run.model.total_parameters(), (quick ? 64 : 256) << 20));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Runs the suites with several processes, one after another.
class RankSuites {
 public:
  RankSuites(const BenchOptions& o, PartialProfile& partial, const RunSpec& run)
      : o_(o),
        partial_(partial),
        scratch_(".windtunnel-bench", (fs::current_path() / o.output).parent_path()),  // the working folder by default
        run_(run),
        quick_(o.suite_options.quick),
        cuda_(o.suite_options.device == "cuda") {}

  void collectives() {
    const std::vector<std::int64_t> worlds = collective_worlds();
    for (std::int64_t ranks : worlds) run("collectives", ranks, 1, collective_sizes(quick_, largest(ranks)));
    if (!cuda_)
      for (std::int64_t ranks : worlds) run("crowding", ranks, 1, {});
    if (quick_ || worlds.empty()) return;
    // Groups of one axis compete for bandwidth; a few sizes show by how much.
    if (worlds.back() % 4 == 0) run("axes", worlds.back(), 2, collective_sizes(true, largest(worlds.back())));
    for (std::int64_t ranks : worlds) run("overlap", ranks, 1, {1 << 20, 16 << 20});
  }

  void storage() {
    for (std::int64_t ranks : {1, 2, 4}) run("storage", ranks, 1, storage_sizes(run_, quick_));
  }

 private:
  std::vector<std::int64_t> collective_worlds() const {
    if (!cuda_) return {2, 4};
    const std::int64_t devices = visible_devices();
    if (devices < 2 && o_.suite == "collectives")
      throw_runtime("bench collectives: found {} GPU, needs two or more; --device cpu measures them over Gloo",
                    devices);
    if (devices < 2) {
      fmt::print(stderr,
                 "windtunnel bench: found {} GPU, collectives need two and are left out; --device cpu measures them "
                 "over Gloo\n",
                 devices);
      return {};
    }
    return devices == 2 ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{2, devices};
  }

  /// For CPU ranks a quarter of the host's memory, otherwise half of the devices'.
  std::int64_t largest(std::int64_t ranks) const {
    const double host_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    const double device_bytes =
        cuda_ ? std::stod(partial_.profile().fingerprint.at("device_memory_GiB")) * (1 << 30) : 0;
    const std::int64_t fits =
        largest_collective(cuda_ ? static_cast<double>(ranks) * device_bytes / 2 : host_bytes / 4, ranks);
    if (o_.largest.empty()) return fits;
    return std::min(fits, static_cast<std::int64_t>(parse_bytes(o_.largest, "--largest")));
  }

  void run(const std::string& suite, std::int64_t ranks, std::int64_t replicate,
           const std::vector<std::int64_t>& bytes) {
    const std::string word = fmt::format("{}-{}", suite, ranks);
    if (partial_.done(word) || stop_requested() != 0) return;
    const fs::path rows = partial_.file().empty() ? scratch_.path() / "partial.json" : partial_.file();
    write_profile(partial_.profile(), rows);
    // A wake-up on shared cores takes microseconds or a time slice: twice the samples stabilise the median.
    const int samples =
        suite != "collectives" && suite != "axes" ? o_.suite_options.samples : 2 * o_.suite_options.samples + 1;
    if (!quick_)
      fmt::print(
          stderr, "windtunnel bench: {} over {} ranks{}{}\n", suite, ranks,
          bytes.empty()
              ? ""
              : fmt::format(", {} sizes up to {}", bytes.size(), format_bytes(static_cast<double>(bytes.back()))),
          suite == "collectives" && !cuda_ ? ", about " + format_seconds(gloo_estimate_s(bytes, ranks, samples)) : "");
    std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(), "bench-rank",
                                     suite == "axes" ? "collectives" : suite};
    command.insert(command.end(), {"-o", rows.string(), "--folder", scratch_.path().string(), "--samples",
                                   std::to_string(samples), "--seed", std::to_string(o_.suite_options.seed), "--device",
                                   suite == "storage" ? "cpu" : o_.suite_options.device});
    if (quick_) command.push_back("--quick");
    if (replicate > 1) command.insert(command.end(), {"--replicate", std::to_string(replicate)});
    for (std::int64_t size : bytes) command.insert(command.end(), {"--bytes", std::to_string(size)});
    std::string failure;
    try {
      run_ranks(command, ranks);
    } catch (const Error& e) {
      failure = e.what();
    }
    Profile measured = read_profile(rows);
    if (!failure.empty() && stop_requested() == 0) {
      measured.failures.push_back({word, failure});  // it is unknown which of its rows are missing
      fmt::print(stderr, "windtunnel bench: {} failed: {}\n", word, failure);
    }
    const bool all = failure.empty() && measured.failures.size() == partial_.profile().failures.size();
    partial_.put(std::move(measured));
    if (all) partial_.set_done(word);
  }

  /// Estimated time of all kinds with barrier, inputs and check, on ranks that share cores. A rough fit to all sizes
  /// over 2 and 4 ranks on two cores at 2.6 GHz.
  static double gloo_estimate_s(const std::vector<std::int64_t>& bytes, std::int64_t ranks, int samples) {
    constexpr double kStart_s = 3, kCall_s = 1e-3, kPerByte_s = 0.5e-9;
    double seconds = kStart_s;
    for (std::int64_t size : bytes)
      seconds += static_cast<double>((samples_of(size, samples) + 1) * (1 + host_calls(size))) *
                 static_cast<double>(std::size(kCollectiveKinds)) * static_cast<double>(ranks) *
                 (kCall_s + kPerByte_s * static_cast<double>(size));
    return seconds;
  }

  const BenchOptions& o_;
  PartialProfile& partial_;
  ScratchFolder scratch_;  ///< on the output's file system, because that is measured
  const RunSpec& run_;
  bool quick_, cuda_;
};

/// Measures the sizes of the storage suite against the store of --to. After a stop it starts over.
void bench_to_store(const BenchOptions& o, PartialProfile& partial, const RunSpec& run) {
  if (partial.done("store")) return;
  const StoreBenchOptions options{o.to, (fs::current_path() / o.output).parent_path(),
                                  storage_sizes(run, o.suite_options.quick), o.suite_options.samples,
                                  o.suite_options.seed};
  const Profile rows = bench_store(
      options, [](const std::string& next) { fmt::print(stderr, "windtunnel bench: storage, {}\n", next); });
  Profile all = partial.profile();
  for (const Measurement& row : rows.measurements)  // rows of a bench that was stopped while it wrote them
    std::erase_if(all.measurements, [&](const Measurement& m) { return m.name() == row.name(); });
  all.measurements.insert(all.measurements.end(), rows.measurements.begin(), rows.measurements.end());
  all.failures.insert(all.failures.end(), rows.failures.begin(), rows.failures.end());
  partial.put(std::move(all));
  if (rows.failures.empty()) partial.set_done("store");
}

KernelWork staircase_work(const BenchOptions& o, const RunSpec& run, at::Device device) {
  std::vector<ModelSpec> models;
  for (const std::string& model : o.models) models.push_back(read_model(model));
  Staircase stairs = gemm_staircase(models, device, o.suite_options.quick);
  if (!stairs.left_out.empty())
    fmt::print(stderr,
               "windtunnel bench: left out, as they take too long on this device at the fewest rows: products by {}\n",
               fmt::join(stairs.left_out, ", "));
  return {run, std::move(stairs.forward), std::move(stairs.backward)};
}

/// The items of the run, or those chosen by `windtunnel bench --for`.
KernelWork kernel_work(const BenchOptions& o, const RunSpec& run, const Fingerprint& facts, at::Device device,
                       const Aims& aims) {
  const bool quick = o.suite_options.quick;
  if (o.suite == "aims") return {run, {}, aims.cases};
  if (o.suite == "staircase") return staircase_work(o, run, device);
  if (o.items.empty()) return {run, kernel_cases(run, quick), machine_cases(device, quick)};
  WorkList list = read_work_list(o.items);
  const std::string& name = facts.at("device");
  if (!list.gpu.empty() && !is_gpu(name, list.gpu))
    throw_usage("{}: found {} here, its shapes are wanted of {}; run this on one of those", list.study, name, list.gpu);
  return {run, std::move(list.items)};
}

/// Ends by the signal's default action, so that a shell sees it.
[[noreturn]] void end_interrupted(const PartialProfile& partial) {
  if (partial.file().empty())
    fmt::print("{}", bench_table(partial.profile()));
  else
    fmt::print(stderr,
               "windtunnel bench: interrupted; {} has {} measurements, and the same command goes on from there\n",
               partial.file().string(), partial.profile().measurements.size());
  std::fflush(nullptr);
  signal(stop_requested(), SIG_DFL);
  raise(stop_requested());
  std::abort();
}

void bench(const BenchOptions& o) {
  if (!o.study.empty() || o.dry_run || !o.worth.empty())
    throw_usage(
        "bench: found {}, windtunnel-train only measures; call windtunnel bench --for, which finds the shapes of a "
        "study",
        !o.study.empty() ? "--for"
        : o.dry_run      ? "--dry-run"
                         : "--worth");
  const bool staircase = o.suite == "staircase";
  if (staircase != !o.models.empty())
    throw_usage(
        "bench: found {} --models, which says what the staircase is of and nothing else; e.g. bench staircase --models "
        "dbrx,olmoe-1b-7b",
        staircase ? "staircase without" : o.suite + " with");
  if (!o.to.empty() && o.suite != "storage")
    throw_usage("bench: found --to with {}, allowed is storage; e.g. bench storage --to s3://bucket/prefix", o.suite);
  const RunSpec run = read_run(find_config("runs", o.run));
  const bool all = o.suite == "all", of_aims = o.suite == "aims",
             of_ranks = all || o.suite == "collectives" || o.suite == "storage",
             kernels = all || !of_ranks || !o.items.empty();
  const at::Device device = open_device(o.suite_options.device);
  const HostLoad before = host_load();
  Fingerprint facts = host_facts();
  for (const auto& [key, value] : Fingerprint{{"torch", TORCH_VERSION},
                                              {"isa", wt_kernel_isa()},
                                              {"threads", "1"},
                                              {"run.name", run.name},
                                              {"run.seed", std::to_string(o.suite_options.seed)},
                                              {"run.samples", std::to_string(o.suite_options.samples)},
                                              {"run.quick", o.suite_options.quick ? "yes" : "no"},
                                              {"run.data", "standard normal"}})
    facts[key] = value;
  if (!o.largest.empty()) facts["run.largest"] = o.largest;
  if (!o.to.empty()) facts.merge(store_facts(o.to));
  if (staircase) facts["run.models"] = fmt::format("{}", fmt::join(o.models, ", "));
  facts.merge(device_facts(kernels || o.suite == "collectives" ? device : at::Device(at::kCPU)));
  const Aims aims = of_aims ? kernel_aims(device, device.is_cpu()) : Aims{};
  const KernelWork work = kernels ? kernel_work(o, run, facts, device, aims) : KernelWork{};
  PartialProfile partial(o.output, facts);
  catch_stop_signals();
  if (kernels) {
    const Profile measured = bench_kernels(work, o.suite_options, Profile(partial.profile()),
                                           [&](const Profile& p) { partial.put_kernels(p); });
    partial.put_kernels(measured);
    partial.add_facts(measured.fingerprint);
  }
  if (!o.to.empty())
    bench_to_store(o, partial, run);
  else if (o.items.empty() && of_ranks) {
    RankSuites suites(o, partial, run);
    if (o.suite != "storage") suites.collectives();
    if (o.suite != "collectives") suites.storage();
  }
  if (stop_requested() != 0) {
    if (of_aims) fmt::print("{}", aims_table(aims.aims, partial.profile()));
    end_interrupted(partial);
  }
  partial.add_facts(host_conditions(before, host_load()));
  if (!o.output.empty()) write_profile(partial.profile(), o.output);
  const Profile profile = partial.finish();
  if (const std::string note = throttling_note(profile); !note.empty())
    fmt::print(stderr, "windtunnel bench: {}\n", note);
  if (o.json)
    fmt::print("{}\n", to_json(profile).dump(1));
  else
    fmt::print("{}{}", bench_table(profile), of_aims ? "\n" + aims_table(aims.aims, profile) : "");
  std::fflush(stdout);  // before the error, so that it is the last line of a log of both streams
  if (!profile.failures.empty())
    throw_runtime("bench: {} of {} benchmarks failed; their rows say why, and the others stand",
                  profile.failures.size(), profile.failures.size() + profile.measurements.size());
}

}  // namespace

void add_bench_command(CLI::App& app) {
  const auto o = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench",
                                         "Time and check the kernels, collectives and storage that a run uses\n"
                                         "Example: windtunnel bench --quick -o out/profile.json");
  command
      ->add_option("SUITE", o->suite,
                   "kernels | collectives | storage | all; staircase: products of --models; aims: what our kernels are "
                   "to reach on an H200")
      ->check(CLI::IsMember({"kernels", "collectives", "storage", "all", "staircase", "aims"}))
      ->capture_default_str();
  command->add_option("--run", o->run, "Run whose shapes are measured: a file or a preset of configs/runs")
      ->capture_default_str();
  command
      ->add_option(
          "--models", o->models,
          "With staircase: models (presets or files, by commas) whose dense products are measured at rising row counts")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--for", o->study,
                      "Instead: the shapes that this study (YAML or preset) needs and its profiles do not have");
  command->add_flag("--dry-run", o->dry_run, "With --for: list them and how long they take, measure nothing");
  command->add_option("--worth", o->worth,
                      "With --for: measure only what is worth most to the study's plan, in this time, as 10m");
  command->add_option("--to", o->to,
                      "With storage: a store, s3://bucket/prefix or a folder, measured beside the local disk");
  command->add_option("--items", o->items, "Work list that bench --for wrote")->group("");
  command->add_option("--largest", o->largest,
                      "Largest message of the collectives, e.g. 64MiB; without, what memory allows");
  command
      ->add_option("--device", o->suite_options.device,
                   "cpu | cuda: of the kernels, and of the collectives where there are two GPUs")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_flag("--quick", o->suite_options.quick, "Fewer shapes and sizes, shorter samples");
  command->add_option("--samples", o->suite_options.samples, "Samples of each benchmark")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  command->add_option("--seed", o->suite_options.seed, "Of the input data and the order of samples")
      ->capture_default_str();
  command->add_option("-o,--output", o->output, "Profile (JSON) to write; storage is measured in its folder")
      ->check(writable(Output::file));
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
  rank->add_option("--device", r->options.device);
  rank->add_option("--replicate", r->options.replicate);
  rank->add_flag("--quick", r->options.quick);
  rank->add_option("--samples", r->options.samples);
  rank->add_option("--seed", r->options.seed);
  rank->add_option("--bytes", r->options.bytes);
  rank->callback([r] {
    r->options.folder = r->folder;
    bench_as_rank(r->suite, r->options, r->output);
  });
}

}  // namespace wt
