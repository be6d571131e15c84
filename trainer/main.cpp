// windtunnel-train: the executable that has LibTorch. `windtunnel train` and `windtunnel bench` hand over to it.
#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/suites/command.hpp"
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

RunProgress progress_of(const std::filesystem::path& folder) {
  RunProgress progress;
  std::ifstream latest(folder / "checkpoints" / "latest"), metrics(folder / "metrics.jsonl");
  std::getline(latest, progress.checkpoint);
  for (std::string line; std::getline(metrics, line);)
    if (const auto entry = nlohmann::json::parse(line, nullptr, false); entry.is_object())
      progress.steps_done = entry.value("step", progress.steps_done);
  return progress;
}

/// "step-00000005" -> 5; 0 when there is no checkpoint.
std::int64_t step_of(const std::string& checkpoint) {
  return checkpoint.starts_with("step-") ? std::stoll(checkpoint.substr(5)) : 0;
}

void train(const TrainOptions& o) {
  const RunSpec run = read_run(o.run);
  if (run.data.empty() || run.steps < 1)
    throw_error(Code::usage, "{}: needs train_loader.dataset.local and max_duration of at least 1ba to train", o.run);
  WorkerOptions worker;
  worker.folder = o.folder;
  if (!o.fault.empty()) worker.fault = parse_inject(o.fault);
  if (RankEnvironment::present()) return train_as_rank(run, RankEnvironment::read(), worker);

  std::filesystem::create_directories(worker.folder);
  write_file_atomically(worker.folder / "run.yaml", run_to_yaml(run));
  std::vector<std::string> command{self(), "train", o.run, "-o", o.folder};
  if (!o.fault.empty()) command.insert(command.end(), {"--inject", o.fault});
  AgentOptions agent{run.layout.world(), o.max_restarts, {}};
  agent.progress = [folder = worker.folder] { return progress_of(folder); };
  const AgentResult result = run_ranks(command, agent);
  nlohmann::json restarts = nlohmann::json::array();
  for (const RestartRecord& r : result.restarts)
    restarts.push_back({{"generation", r.generation}, {"rank", r.rank}, {"cause", r.cause}, {"detected_s", r.detected_s},
                        {"detected_unix_s", r.detected_unix_s}, {"stopped_s", r.stopped_s}, {"checkpoint", r.reached.checkpoint},
                        {"resumed_after", step_of(r.reached.checkpoint)}, {"steps_done", r.reached.steps_done}});
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
  add_bench_command(app);
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
