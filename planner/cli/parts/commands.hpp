// Shared by the subcommands. Each file declares one and registers a callback that throws wt::Error or sets the status.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace wt {

/// All subcommands; each is defined in the file of its name.
void add_data(CLI::App& app);
void add_train(CLI::App& app);
void add_bench(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_compare(CLI::App& app);
void add_completion(CLI::App& app);
void add_compare_offers(CLI::App& app);
void add_simulate(CLI::App& app);
void add_explain(CLI::App& app);
void add_plan(CLI::App& app);
void add_whatif(CLI::App& app);
void add_drill(CLI::App& app);
void add_gate(CLI::App& app);
void add_health(CLI::App& app);
void add_eval(CLI::App& app);
void add_export(CLI::App& app);
void add_import(CLI::App& app);
void add_import_run(CLI::App& app);
void add_list(CLI::App& app);
void add_lora(CLI::App& app);
void add_profile(CLI::App& app);
void add_report(CLI::App& app);
void add_demo(CLI::App& app);
void add_faults(CLI::App& app);
void add_validate(CLI::App& app);
void add_watch(CLI::App& app);

/// windtunnel train --rehearse: whether the arguments ask for it, and running it. Throws CLI::ParseError.
bool asks_for_rehearsal(const std::vector<std::string>& arguments);
void rehearse(std::vector<std::string> arguments);

/// windtunnel bench --for: whether the arguments ask for it, and the resulting arguments of windtunnel-train (empty =
/// nothing to do). Throws Error{usage} where this machine cannot measure for the study.
bool asks_for_study(const std::vector<std::string>& arguments);
std::vector<std::string> bench_for(const std::vector<std::string>& arguments);

/// Exit status of a subcommand that succeeded with a finding (1 = regression, failed drill, plan does not fit; 3 =
/// undecided). main returns it.
void set_status(int status);
int status_found();

/// Prints a document to stdout, or writes it atomically where `file` is not empty and not "-".
void put_document(const std::string& document, const std::string& file);

}  // namespace wt
