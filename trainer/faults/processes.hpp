// The processes of a run on this machine, as /proc shows them: whom a fault kills, stops or cuts off.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace wt {

/// What names the node that a rank is on, the first that is set: our agent, torchrun, Slurm.
inline constexpr const char* kNodeVariables[] = {"WINDTUNNEL_NODE", "GROUP_RANK", "SLURM_NODEID"};

struct RankProcess {
  pid_t pid = -1;
  std::int64_t rank = 0;
  std::optional<std::int64_t> node;  ///< its number, where somebody gave one
};
/// The ranks of this generation on this machine, this one among them: processes of the same launch (command line, port
/// of the store, launcher), and no child of theirs. `members`: process ids by rank, where ranks have regrouped: a
/// process then has another rank and generation than it began with. Empty: what it began with holds.
std::vector<RankProcess> ranks_here(const std::vector<pid_t>& members);

/// The third field of /proc/PID/stat: T stopped, Z ended and not waited for; '?' there is no such process.
char process_state(pid_t pid);
inline bool gone(pid_t pid) { return process_state(pid) == '?' || process_state(pid) == 'Z'; }

/// A TCP connection of this process.
struct Connection {
  int fd = -1;
  int own_port = 0, peer_port = 0;
};
std::vector<Connection> tcp_connections();
/// Ends this process's connections, but those with `store_port` at either end and those to a port of `kept`: whoever
/// waits on one of them fails at once, here and at its other end. Returns their peers' ports.
std::vector<int> end_connections(int store_port, const std::set<int>& kept = {});
/// The inodes of the TCP sockets that a process has, and the own port of each inode of this machine's TCP sockets: the
/// process whose socket has a connection's peer port as its own is at the other end.
std::vector<int> own_ports_of(pid_t pid);

}  // namespace wt
