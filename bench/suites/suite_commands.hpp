// `windtunnel-train bench`, and the hidden `bench-rank` that it starts its ranks with; the hidden `health`.
#pragma once

namespace CLI {
class App;
}

namespace wt {

void add_bench_command(CLI::App& app);
/// What `windtunnel health --fabric` starts: one rank under a launcher, else local ranks.
void add_health_command(CLI::App& app);

}  // namespace wt
