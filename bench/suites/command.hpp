// `windtunnel-train bench`, and the hidden `bench-rank` that it starts its ranks with.
#pragma once

namespace CLI {
class App;
}

namespace wt {

void add_bench_command(CLI::App& app);

}  // namespace wt
