// windtunnel calibrate: makes a machine model from profiles, and reports residuals by class.
#include "sim/cost/calibrate/calibrate.hpp"

#include <fmt/ranges.h>

#include <regex>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "planner/cli/calibrate/calibrate_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "sim/fit/published_times.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> profiles;
  std::string output;
  bool published = false, allow_assumed = false, json = false;
};

/// The same JSON with each list of numbers on a line of its own: tens of thousands of lines fewer.
std::string with_rows_of_numbers(const std::string& json) {
  static const std::regex numbers(R"(\[[-+.\deE,\s]+\])"), space(R"(\s+)");
  std::string out;
  auto rest = json.cbegin();
  for (std::sregex_iterator found(json.begin(), json.end(), numbers), end; found != end; ++found) {
    out.append(rest, (*found)[0].first);
    out += std::regex_replace(found->str(), space, "");
    rest = (*found)[0].second;
  }
  return out.append(rest, json.cend());
}

/// The files of configs/constants anew, or in another folder.
void fit_published(const Options& o) {
  if (!o.profiles.empty() || o.json || o.allow_assumed)
    throw_usage("calibrate --published: found {}, which belongs to profiles; leave it out", o.json ? "--json"
                                                                                            : o.allow_assumed
                                                                                                ? "--allow-assumed"
                                                                                                : "a profile");
  const std::filesystem::path folder = o.output.empty() ? configs_folder() / "constants" : make_folder(o.output);
  for (const auto& [name, document] : PublishedTimes::get().documents()) {
    write_file_atomically(folder / (name + ".json"), with_rows_of_numbers(document.dump(1)) + "\n");
    fmt::print("wrote {}\n", (folder / (name + ".json")).string());
  }
}

void run_calibrate(const Options& o) {
  if (o.published) return fit_published(o);
  if (o.profiles.empty())
    throw_usage("calibrate: found no profile, needs one or more, or --published; windtunnel bench makes them");
  std::vector<Profile> profiles;
  for (const std::string& profile : o.profiles) profiles.push_back(read_profile(find_config("profiles", profile)));
  const CalibrationResult result = calibrate(profiles, {o.allow_assumed});
  if (!o.output.empty()) {
    write_machine(result.model.data(), o.output);
    fmt::print(stderr, "wrote {}\n", o.output);
  }
  Report report = calibrate_report(result);
  report.provenance = provenance({{"profiles", fmt::format("{}", fmt::join(o.profiles, ", "))}});
  put_report(report, o.json);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  const Command command(app, "calibrate",
                        "Make a machine model out of profiles, and say how well it predicts them\n"
                        "Example: windtunnel calibrate profile.json -o machine.json");
  const auto o = command.runs(run_calibrate);
  command.option("PROFILE", o->profiles, "Profiles of one machine: files, or names of yours in configs/profiles");
  command.output(o->output, Output::either, "Machine model (JSON) to write; of --published a folder");
  command.flag("--published", o->published,
               "Instead: fit the published tables of configs/measurements anew, and write configs/constants");
  command.flag("--allow-assumed", o->allow_assumed,
               "Let the model estimate by a roofline what nobody measured, marked as assumed");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
