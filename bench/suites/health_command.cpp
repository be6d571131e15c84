// `windtunnel-train health`: the part of `windtunnel health --fabric` that needs devices and process groups.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "bench/suites/health_ranks.hpp"
#include "bench/suites/suite_commands.hpp"
#include "configs/base/error.hpp"
#include "trainer/communication/rank_environment.hpp"
#include "trainer/device/device.hpp"
#include "trainer/launch/agent.hpp"

namespace wt {
namespace {

struct Arguments {
  std::string output, storage = ".";
  std::int64_t ranks = 0;  ///< 0: one per GPU
  HealthRankOptions options;
};

void run_local_ranks(const Arguments& a) {
  const std::int64_t ranks = a.ranks > 0 ? a.ranks : visible_devices();
  if (ranks == 0)
    throw_usage(
        "health --fabric: found neither GPUs nor a launcher's variables; start it with Slurm, MPI or torchrun "
        "--no-python on every node, or add --ranks 4: local ranks on the CPU");
  std::vector<std::string> command{
      std::filesystem::read_symlink("/proc/self/exe").string(), "health", "-o", a.output, "--storage", a.storage};
  if (a.options.quick) command.push_back("--quick");
  if (a.ranks > 0) command.push_back("--rank-is-node");
  run_ranks(command, ranks);
}

void check(Arguments& a) {
  if (RankEnvironment::present() && a.ranks > 0)
    throw_usage("health --fabric: found --ranks {} under a launcher, which has started the ranks; leave it out",
                a.ranks);
  if (!RankEnvironment::present()) return run_local_ranks(a);
  a.options.storage = a.storage;
  check_as_rank(a.options, a.output);
}

}  // namespace

void add_health_command(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("health", "The ranks of windtunnel health --fabric, which starts this")->group("");
  command->add_option("-o", a->output)->required();
  command->add_option("--storage", a->storage);
  command->add_option("--ranks", a->ranks);
  command->add_flag("--quick", a->options.quick);
  command->add_flag("--rank-is-node", a->options.rank_is_node);
  command->callback([a] { check(*a); });
}

}  // namespace wt
