// windtunnel: the command line. No LibTorch in here; `train` and `bench` hand over to windtunnel-train.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "configs/base/command_line.hpp"
#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/provenance.hpp"

namespace wt {
namespace {

constexpr const char* kDescription =
    "Predict, plan and prove large MoE training runs from measured profiles.\n"
    "Start with:  windtunnel demo\n"
    "             windtunnel plan --model config.json --cluster hgx-h100 --gpus 256\n"
    "Help of one:  windtunnel help plan";

constexpr const char* kFooter =
    "Exit status: 0 ok; 1 a finding (regression, failed drill, plan does not fit); 2 usage or configuration;\n"
    "3 cannot be compared or decided; 4 device, file system or child process. Of train also: 5 a replica holds other\n"
    "numbers; 75 ended on request, start it again; 93 failed for good, do not start it again.";

/// CLI11 says only that a word was not expected; name the subcommand that was probably meant.
std::string unknown_subcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].starts_with('-')) return "";
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  if (std::ranges::find(names, arguments[0]) != names.end()) return "";
  const std::string near = nearest(arguments[0], names);
  return fmt::format("unknown subcommand '{}'; {}subcommands: {}", arguments[0],
                     near.empty() ? "" : fmt::format("did you mean '{}'? ", near), fmt::join(names, ", "));
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app(kDescription, "windtunnel");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every subcommand");
  app.set_version_flag("--version", version_text, "Version, commit and build of this program");
  for (auto add :
       {add_demo,     add_data,    add_train,     add_bench,   add_import,         add_import_run, add_export,
        add_eval,     add_profile, add_calibrate, add_compare, add_compare_offers, add_simulate,   add_plan,
        add_whatif,   add_drill,   add_faults,    add_gate,    add_health,         add_watch,      add_report,
        add_validate, add_lora,    add_explain,   add_list,    add_completion})
    add(app);
  try {
    std::vector<std::string> arguments = with_help(app, {argv + std::min(argc, 1), argv + argc});
    if (const std::string unknown = unknown_subcommand(app, arguments); !unknown.empty())
      throw Error(Code::usage, unknown);
    refuse_unknown_flags(app, arguments);
    std::ranges::reverse(arguments);  // as CLI11 takes them
    app.parse(arguments);
    return status_found();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Code::usage);
  } catch (const Error& e) {
    print_error("windtunnel: {}\n", fitting(e.what()));
    return e.exit_status();
  } catch (const std::filesystem::filesystem_error& e) {
    fmt::print(stderr, "windtunnel: {}: {}\n", shortened(e.path1().string()), e.code().message());
    return static_cast<int>(Code::runtime);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "windtunnel: found no memory left; ask for fewer ranks, layers, microbatches or runs\n");
    return static_cast<int>(Code::runtime);
  } catch (const std::exception& e) {
    print_error("windtunnel: {}\n", fitting(e.what()));
    return static_cast<int>(Code::runtime);
  }
}

}  // namespace wt

int main(int argc, char** argv) { return wt::run_command_line(argc, argv); }
