// windtunnel profile show|diff|merge: reports on one profile, compares two, merges several.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/gate/gate.hpp"
#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/profile/profile_report.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> files;
  std::string file, kernel, output;
  bool json = false;
};

void show(const Options& o) {
  Report report = profile_report(read_gate_input({find_config("profiles", o.file)}), o.kernel);
  report.provenance = provenance({{"profile", o.file}});
  put_report(report, o.json);
}

void diff(const Options& o) {
  Report report = difference_report(read_gate_input({find_config("profiles", o.files[0])}),
                                    read_gate_input({find_config("profiles", o.files[1])}));
  report.provenance = provenance({{"a", o.files[0]}, {"b", o.files[1]}});
  put_report(report, o.json);
}

void merge_files(const Options& o) {
  std::vector<fs::path> files;
  for (const std::string& name : o.files) {
    const fs::path file = find_config("profiles", name);
    for (const fs::path& other : files)
      if (std::error_code ignored; fs::equivalent(file, other, ignored))
        throw_usage("profile merge: found {} twice, whose samples would count double; allowed is every file once",
                    name);
    files.push_back(file);
  }
  const Profile all = read_gate_input(files);
  write_profile(all, o.output);
  std::size_t samples = 0, slowed = 0;
  for (const Measurement& m : all.measurements) samples += m.samples.size(), slowed += m.throttled.empty() ? 0 : 1;
  Report report{.title = "Merged profile",
                .answer = fmt::format("{} profiles are one of {} measurements and {} samples: {}.", files.size(),
                                      all.measurements.size(), samples, o.output)};
  if (slowed > 0)
    report.answer_range = fmt::format("{} of them on a throttled device", slowed), report.status = Status::bad;
  report.payload = {
      {"output", o.output}, {"measurements", all.measurements.size()}, {"samples", samples}, {"throttled", slowed}};
  report.provenance = provenance({{"profiles", fmt::format("{}", fmt::join(o.files, ", "))}});
  put_report(report, o.json);
}

}  // namespace

void add_profile(CLI::App& app) {
  const Command command(
      app, "profile", "Look at profiles, compare two, make several one\nExample: windtunnel profile show profile.json");
  command.require_subcommand();
  const auto subcommand = [&](const std::string& name, const std::string& help, void (*run)(const Options&)) {
    auto o = std::make_shared<Options>();
    const Command sub = command.subcommand(name, help);
    sub.flag("--json", o->json, "Print one JSON document");
    sub.runs([o, run] { run(*o); });
    return std::pair{sub, o};
  };
  const auto [one, shown] = subcommand("show",
                                       "Machine, run, measurements by kernel, and what speaks against using "
                                       "them\nExample: windtunnel profile show profile.json gemm",
                                       show);
  one.option("PROFILE", shown->file,
             "Profile, or JSON of Google Benchmark or nvbench: a file, or a name of yours in configs/profiles")
      .required();
  one.option("KERNEL", shown->kernel, "Also list every measurement of this kernel");
  const auto [two, compared] = subcommand("diff",
                                          "Facts that differ, and ratios of medians with their intervals; no "
                                          "verdict\nExample: windtunnel profile diff a.json b.json",
                                          diff);
  two.option("PROFILES", compared->files, "Two profiles, as for show").required().count(2, 2);
  const auto [many, merged] = subcommand("merge",
                                         "Join the samples of several runs on the same machine and software\nExample: "
                                         "windtunnel profile merge a.json b.json -o all.json",
                                         merge_files);
  many.option("PROFILES", merged->files, "Two or more profiles, as for show").required().count(2, 1000);
  many.output(merged->output, Output::file, "Profile (JSON) to write").required();
}

}  // namespace wt
