// The run's processes on this machine, from /proc: the ones that a fault can kill, stop or disconnect.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace wt {

/// Variables with a rank's node; the first one set counts: our agent's, torchrun's, Slurm's.
inline constexpr const char* kNodeVariables[] = {"WINDTUNNEL_NODE", "GROUP_RANK", "SLURM_NODEID"};

struct RankProcess {
  pid_t pid = -1;
  std::int64_t rank = 0;
  std::optional<std::int64_t> node;  ///< its number, if a variable gives one
};
/// The ranks of this generation on this machine, including this one: processes of the same launch (command line, port
/// of the store, launcher), without their children. `members`: process ids by rank after ranks have regrouped, when a
/// process's rank and generation differ from its environment. Empty: the environment is valid.
std::vector<RankProcess> ranks_here(const std::vector<pid_t>& members);

/// The third field of /proc/PID/stat: T stopped, Z zombie; '?': no such process.
char process_state(pid_t pid);
inline bool gone(pid_t pid) { return process_state(pid) == '?' || process_state(pid) == 'Z'; }

/// A TCP connection of this process.
struct Connection {
  int fd = -1;
  int own_port = 0, peer_port = 0;
};
std::vector<Connection> tcp_connections();
/// Shuts down this process's connections, except those with `store_port` at either end and those to a port in `kept`.
/// Calls that wait on them fail at once, at both ends. Returns the peers' ports.
std::vector<int> end_connections(int store_port, const std::set<int>& kept = {});
/// Own ports of a process's TCP sockets. A connection's other end is the process that has the connection's peer port as
/// an own port.
std::vector<int> own_ports_of(pid_t pid);

}  // namespace wt
