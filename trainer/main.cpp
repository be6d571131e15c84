// windtunnel-train: the executable that has LibTorch. `windtunnel train` and `windtunnel bench` hand over to it.
#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/spec/atomic_file.hpp"
#include "configs/spec/error.hpp"
#include "trainer/agent.hpp"
#include "trainer/worker.hpp"

namespace {

using namespace wt;

std::string self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

struct TrainOptions {
  std::string run, folder, fault;
  int max_restarts = 3;
};

void train(const TrainOptions& o) {
  const RunSpec run = read_run(o.run);
  if (run.data.empty() || run.steps < 1)
    throw_error(Code::usage, "{}: needs train_loader.dataset.local and max_duration of at least 1ba to train", o.run);
  WorkerOptions worker;
  worker.folder = o.folder;
  if (!o.fault.empty()) worker.fault = FaultPoint::parse(o.fault);
  if (RankEnvironment::present()) return train_as_rank(run, RankEnvironment::read(), worker);

  std::filesystem::create_directories(worker.folder);
  write_file_atomically(worker.folder / "run.yaml", run_to_yaml(run));
  std::vector<std::string> command{self(), "train", o.run, "-o", o.folder};
  if (!o.fault.empty()) command.insert(command.end(), {"--inject", o.fault});
  AgentOptions agent{run.layout.world(), o.max_restarts, {}};
  agent.progress = [latest = worker.folder / "checkpoints" / "latest"] {
    std::ifstream in(latest);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const AgentResult result = run_ranks(command, agent);
  nlohmann::json restarts = nlohmann::json::array();
  for (const RestartRecord& r : result.restarts)
    restarts.push_back({{"generation", r.generation}, {"rank", r.rank}, {"cause", r.cause}, {"detected_s", r.detected_s}, {"stopped_s", r.stopped_s}});
  write_file_atomically(worker.folder / "agent.json", nlohmann::json{{"wall_s", result.wall_s}, {"restarts", restarts}}.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Real training steps and kernel benchmarks (usually called through ./windtunnel)");
  app.require_subcommand(1);
  TrainOptions options;
  CLI::App* train_command = app.add_subcommand("train", "Train a MoE model on local ranks, or as one rank under torchrun --no-python");
  train_command->add_option("RUN", options.run, "Run file (YAML)")->required();
  train_command->add_option("-o,--output", options.folder, "Folder for metrics, trace, profile, routing and checkpoints")->required();
  train_command->add_option("--max-restarts", options.max_restarts, "How often failed ranks are started again")->capture_default_str();
  train_command->add_option("--inject", options.fault, "Kill a rank: rank=N,step=N,at=OP_ID|checkpoint[,after=SHARE]");
  try {
    app.parse(argc, argv);
    if (train_command->parsed()) train(options);
    return 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Code::usage);
  } catch (const Error& e) {
    fmt::print(stderr, "windtunnel: {}\n", e.what());
    return e.exit_status();
  } catch (const c10::Error& e) {
    fmt::print(stderr, "windtunnel: {}\n", e.what_without_backtrace());
    return static_cast<int>(Code::runtime);
  } catch (const std::exception& e) {
    fmt::print(stderr, "windtunnel: {}\n", e.what());
    return static_cast<int>(Code::runtime);
  }
}
