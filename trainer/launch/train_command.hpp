// windtunnel-train train: all ranks on this machine, one rank under a launcher, or the measuring half of a rehearsal.
#pragma once

namespace CLI {
class App;
}

namespace wt {

/// Adds the subcommand; where it is called, `status` becomes its exit status.
void add_train_command(CLI::App& app, int& status);

}  // namespace wt
