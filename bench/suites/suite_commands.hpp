// `windtunnel-train bench`, the hidden `bench-rank` that it starts for its ranks, and the hidden `health`.
#pragma once

namespace CLI {
class App;
}

namespace wt {

void add_bench_command(CLI::App& app);
/// `windtunnel health --fabric` starts it: one rank under a launcher, otherwise local ranks.
void add_health_command(CLI::App& app);

}  // namespace wt
