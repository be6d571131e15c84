#include "tests/support/launched_ranks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "tests/support/temp_directory.hpp"

namespace wt::test {

namespace fs = std::filesystem;

int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = bind(s, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(s);
  if (!bound) throw_error(Code::runtime, "no free port");
  return ntohs(address.sin_port);
}

std::vector<Started> start_ranks(const std::vector<fs::path>& run_files, int world, const fs::path& folder,
                                 const LauncherNames& names) {
  fs::create_directories(folder);
  const std::string port = std::to_string(free_port());
  std::vector<Started> out;
  for (std::size_t rank = 0; rank < run_files.size(); ++rank) {
    Launch launch;
    launch.environment = {{names.rank, std::to_string(rank)},
                          {names.world, std::to_string(world)},
                          {names.local_rank, std::to_string(rank)},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", port}};
    launch.environment.insert(names.more.begin(), names.more.end());
    out.push_back(start_trainer({"train", run_files[rank].string(), "-o", folder.string()}, launch));
  }
  return out;
}

std::vector<Started> start_ranks(const RunSpec& run, const fs::path& folder,
                                 const std::function<void(RunSpec&, int)>& change, int ranks,
                                 const LauncherNames& names) {
  const int world = static_cast<int>(run.layout.world());
  std::vector<fs::path> files;
  for (int rank = 0; rank < (ranks < 0 ? world : ranks); ++rank) {
    RunSpec own = run;
    if (change) change(own, rank);
    files.push_back(folder.string() + fmt::format("-{}.yaml", rank));
    write_file_atomically(files.back(), run_to_yaml(own));
  }
  return start_ranks(files, world, folder, names);
}

pid_t rank_process(pid_t agent, int rank) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    try {
      const std::string environment = '\0' + read_bytes(entry.path() / "environ");
      const auto has = [&](const std::string& entry_text) {
        return environment.find('\0' + entry_text + '\0') != std::string::npos;
      };
      if (has(fmt::format("WINDTUNNEL_PARENT={}", agent)) && has(fmt::format("RANK={}", rank)))
        return static_cast<pid_t>(std::stoi(name));
    } catch (const std::exception&) {  // gone meanwhile, or not ours to read
    }
  }
  throw_error(Code::runtime, "agent {} has no rank {}", agent, rank);
}

}  // namespace wt::test
