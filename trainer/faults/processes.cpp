#include "trainer/faults/processes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace wt {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

/// A variable in a process's initial environment.
std::optional<std::string> variable_of(const std::string& environ_bytes, const std::string& name) {
  for (std::size_t at = 0; at < environ_bytes.size(); at = environ_bytes.find('\0', at) + 1) {
    if (environ_bytes.compare(at, name.size() + 1, name + "=") == 0)
      return std::string(environ_bytes.c_str() + at + name.size() + 1);
    if (environ_bytes.find('\0', at) == std::string::npos) break;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_of(const std::string& environ_bytes, const std::string& name) {
  const auto text = variable_of(environ_bytes, name);
  if (!text || text->empty()) return std::nullopt;
  char* end = nullptr;
  const long long number = std::strtoll(text->c_str(), &end, 10);
  return *end == '\0' ? std::optional<std::int64_t>(number) : std::nullopt;
}

std::optional<std::int64_t> node_of(const std::string& environ_bytes) {
  for (const char* name : kNodeVariables)
    if (variable_of(environ_bytes, name).value_or("") != "") return number_of(environ_bytes, name);
  return std::nullopt;
}

/// The fields of /proc/PID/stat after the program's name: "S 1234 ..."; empty: no such process.
std::string fields_behind_name(pid_t pid) {
  const std::string stat = read_all("/proc/" + std::to_string(pid) + "/stat");
  const auto end_of_name = stat.rfind(')');
  return end_of_name == std::string::npos || end_of_name + 2 >= stat.size() ? "" : stat.substr(end_of_name + 2);
}

/// Whether it is a rank started by its launcher, and not forked by a rank.
bool is_launched(pid_t pid, const std::string& environment, const std::string& command) {
  const std::string fields = fields_behind_name(pid);
  if (fields.size() < 3) return false;
  const pid_t parent = std::atoi(fields.c_str() + 2);
  if (const auto agent = number_of(environment, "WINDTUNNEL_PARENT")) return parent == *agent;
  return read_all("/proc/" + std::to_string(parent) + "/cmdline") != command;
}

std::optional<std::int64_t> place_in(const std::vector<pid_t>& members, pid_t pid) {
  const auto at = std::ranges::find(members, pid);
  return at == members.end() ? std::nullopt : std::optional<std::int64_t>(at - members.begin());
}

/// "socket:[123]" -> "123"
std::optional<std::string> socket_inode(const fs::path& fd) {
  std::error_code none;
  const std::string target = fs::read_symlink(fd, none).string();
  if (none || !target.starts_with("socket:[")) return std::nullopt;
  return target.substr(8, target.size() - 9);
}

/// Own ports of this machine's TCP sockets, by inode.
std::map<std::string, int> tcp_ports() {
  std::map<std::string, int> out;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);  // the header
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      std::string slot, own, peer, state, queues, timer, retries, user, timeout, inode;
      fields >> slot >> own >> peer >> state >> queues >> timer >> retries >> user >> timeout >> inode;
      if (const auto colon = own.find(':'); colon != std::string::npos)
        out[inode] = static_cast<int>(std::strtol(own.c_str() + colon + 1, nullptr, 16));
    }
  }
  return out;
}

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

}  // namespace

std::vector<RankProcess> ranks_here(const std::vector<pid_t>& members) {
  const std::string command = read_all("/proc/self/cmdline"), own = read_all("/proc/self/environ");
  std::vector<RankProcess> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_all(entry.path() / "cmdline") != command) continue;
    const std::string environment = read_all(entry.path() / "environ");
    const auto same = [&](const char* variable) {
      return variable_of(environment, variable) == variable_of(own, variable);
    };
    const pid_t pid = std::atoi(name.c_str());
    if (!same("MASTER_PORT") || !same("WINDTUNNEL_PARENT") || !is_launched(pid, environment, command)) continue;
    const auto rank = members.empty() ? number_of(environment, "RANK") : place_in(members, pid);
    if (!rank || (members.empty() && !same("TORCHELASTIC_RESTART_COUNT"))) continue;
    out.push_back({pid, *rank, node_of(environment)});
  }
  return out;
}

char process_state(pid_t pid) {
  const std::string fields = fields_behind_name(pid);
  return fields.empty() ? '?' : fields.front();
}

std::vector<Connection> tcp_connections() {
  std::vector<Connection> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", none)) {
    if (!socket_inode(entry.path())) continue;
    const int fd = std::atoi(entry.path().filename().c_str());
    sockaddr_storage own{}, peer{};
    socklen_t size = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) continue;
    size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || port_of(peer) == 0) continue;
    out.push_back({fd, port_of(own), port_of(peer)});
  }
  return out;
}

std::vector<int> end_connections(int store_port, const std::set<int>& kept) {
  std::vector<int> ended;
  for (const Connection& connection : tcp_connections()) {
    const bool to_store = connection.peer_port == store_port || connection.own_port == store_port;
    if (to_store || kept.count(connection.peer_port)) continue;
    if (shutdown(connection.fd, SHUT_RDWR) == 0) ended.push_back(connection.peer_port);
  }
  return ended;
}

std::vector<int> own_ports_of(pid_t pid) {
  const auto ports = tcp_ports();
  std::vector<int> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", none))
    if (const auto inode = socket_inode(entry.path()))
      if (const auto at = ports.find(*inode); at != ports.end()) out.push_back(at->second);
  return out;
}

}  // namespace wt
