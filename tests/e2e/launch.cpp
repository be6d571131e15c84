// The same ranks without our agent: started by hand in torchrun's environment, rank 0 hosting the store.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "configs/spec/atomic_file.hpp"
#include "tests/support/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(s, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(s);
  return ntohs(address.sin_port);
}

/// Variable names of a launcher.
struct Names {
  std::string rank, world, local_rank;
};

void check_by_hand(const Names& names, const std::string& folder_name) {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.steps = 6, run.save = true;
  const auto folder = scratch(folder_name);
  std::filesystem::create_directories(folder);
  const auto file = scratch(folder_name + ".yaml");
  write_file_atomically(file, run_to_yaml(run));
  std::vector<Started> ranks;
  const std::string port = std::to_string(free_port());
  for (int rank = 0; rank < 4; ++rank) {
    Launch launch;
    launch.environment = {{names.rank, std::to_string(rank)}, {names.world, "4"}, {names.local_rank, std::to_string(rank)},
                          {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
    ranks.push_back(start_trainer({"train", file.string(), "-o", folder.string()}, launch));
  }
  for (const Started& rank : ranks) {
    const Ended ended = wait_for(rank);
    INFO(ended.said);
    CHECK(ended.status == 0);
  }
  const auto agent = trained(run);
  CHECK(steps_of(folder).size() == 6);
  CHECK(steps_of(folder) == steps_of(agent));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(agent))));
}

}  // namespace

TEST_CASE("under torchrun's variables the ranks train as under our agent, bit for bit") {
  check_by_hand({"RANK", "WORLD_SIZE", "LOCAL_RANK"}, "torchrun");
}

TEST_CASE("so they do under Slurm's") { check_by_hand({"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}, "slurm"); }
