// windtunnel calibrate: makes a machine model from profiles, and reports residuals by class.
#include "sim/cost/calibrate/calibrate.hpp"
#include "configs/files/find.hpp"
#include "planner/cli/calibrate/calibrate_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> profiles;
  std::string output;
  bool allow_assumed = false, json = false;
};

void run_calibrate(const Options& o) {
  std::vector<Profile> profiles;
  for (const std::string& profile : o.profiles) profiles.push_back(read_profile(find_config("profiles", profile)));
  const CalibrationResult result = calibrate(profiles, {o.allow_assumed});
  if (!o.output.empty()) write_machine(result.model.data(), o.output);
  Report report = calibrate_report(result);
  std::string named;
  for (const std::string& profile : o.profiles) named += (named.empty() ? "" : ", ") + profile;
  report.provenance = provenance({{"profiles", named}});
  put_report(report, o.json);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  const Command command(app, "calibrate",
                        "Make a machine model out of profiles, and say how well it predicts them\n"
                        "Example: windtunnel calibrate profile.json -o machine.json");
  auto o = std::make_shared<Options>();
  command.option("PROFILE", o->profiles, "Profiles of one machine: files, or names of yours in configs/profiles")
      .required();
  command.option("-o,--output", o->output, "Machine model (JSON) to write");
  command.flag("--allow-assumed", o->allow_assumed,
               "Let the model price what nobody measured by a roofline, marked as assumed");
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] { run_calibrate(*o); });
}

}  // namespace wt
