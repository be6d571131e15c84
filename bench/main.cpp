// windtunnel-train: the executable that has LibTorch. `windtunnel train` and `windtunnel bench` hand over to it.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <iostream>

#include "bench/suites/suite_commands.hpp"
#include "configs/base/command_line.hpp"
#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/launch/agent.hpp"
#include "trainer/launch/train_command.hpp"

using namespace wt;

namespace {

int run(int argc, char** argv) {
  open_standard_streams();
  // Keep freed blocks: activations come and go every step, and giving them to the kernel and back costs page faults
  // (17.5k -> 20.0k tokens/s on the tiny run).
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  signal(SIGXFSZ, SIG_IGN);  // writing beyond a file-size limit then fails with an error
  signal(SIGPIPE, SIG_IGN);  // so does writing to a peer or a reader that has ended
  CLI::App app("Real training steps and kernel benchmarks (usually called through ./windtunnel)");
  app.require_subcommand(1);
  int status = 0;
  add_train_command(app, status);
  add_bench_command(app);
  add_health_command(app);
  try {
    end_with_launcher();
    refuse_unknown_flags(app, {argv + std::min(argc, 1), argv + argc});
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Code::usage);
  } catch (const Error& e) {
    print_error("windtunnel: {}\n", fitting(e.what()));
    return e.exit_status();
  } catch (const c10::Error& e) {
    print_error("windtunnel: {}\n", e.what_without_backtrace());
    return static_cast<int>(Code::runtime);
  } catch (const std::exception& e) {
    print_error("windtunnel: {}\n", fitting(e.what()));
    return static_cast<int>(Code::runtime);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc, argv);
  std::cout.flush();
  std::fflush(nullptr);
  // LibTorch would take its operators out of their tables one by one: 0.17 s of a processor in each process that ends.
  _exit(status);
}
