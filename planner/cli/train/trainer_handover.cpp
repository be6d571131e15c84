// windtunnel train and bench: pass their arguments unchanged to windtunnel-train, which has LibTorch. Rehearsals are
// compared here afterwards, and `bench --for` determines here beforehand what a study lacks.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>

#include "configs/base/error.hpp"
#include "planner/cli/parts/commands.hpp"
#include "trainer/process/trainer_process.hpp"

namespace wt {
namespace {

[[noreturn]] void hand_over(const std::string& subcommand, const std::vector<std::string>& arguments) {
  std::string name = trainer_program().string(), word = subcommand;
  std::vector<std::string> rest = arguments;
  std::vector<char*> argv{name.data(), word.data()};
  for (std::string& argument : rest) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(name.c_str(), argv.data());
  throw_runtime("{}: cannot be run ({}); needs an executable of this machine; run ./windtunnel setup", name,
                std::strerror(errno));
}

void add_handover(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* command = app.add_subcommand(name, description);
  command->set_help_flag();  // windtunnel-train also answers --help
  command->prefix_command();
  command->callback([command, name] {
    const std::vector<std::string> arguments = command->remaining();
    if (name == "train" && asks_for_rehearsal(arguments)) return rehearse(arguments);
    if (name == "bench" && asks_for_study(arguments)) {
      if (const auto work = bench_for(arguments); !work.empty()) hand_over(name, work);
      return;
    }
    hand_over(name, arguments);
  });
}

}  // namespace

void add_train(CLI::App& app) {
  add_handover(app, "train", "Train a MoE model on local ranks; records a profile, routing and a trace");
}
void add_bench(CLI::App& app) {
  add_handover(app, "bench", "Measure kernels and collectives on this machine; records a profile");
}

}  // namespace wt
