#include "configs/machine/host_load.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "configs/machine/device_monitor.hpp"

namespace wt {
namespace {

double cpu_seconds(int of) {
  rusage use{};
  if (getrusage(of, &use) != 0) return 0;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Mean of the lines "cpu MHz : 2596.128"; 0 without such lines.
double mean_clock_MHz() {
  std::ifstream in("/proc/cpuinfo");
  double sum = 0, cores = 0;
  for (std::string line; std::getline(in, line);)
    if (const std::size_t colon = line.find(':'); line.starts_with("cpu MHz") && colon != std::string::npos)
      sum += std::strtod(line.c_str() + colon + 1, nullptr), ++cores;
  return cores > 0 ? sum / cores : 0;
}

}  // namespace

HostLoad parse_proc_stat(const std::string& text, double ticks_per_s) {
  std::istringstream in(text);
  HostLoad load;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    // user and nice already include guest times
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    if (!(words >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal) || name != "cpu")
      continue;
    load.busy_s = (user + nice + system + irq + softirq) / ticks_per_s;
    load.stolen_s = steal / ticks_per_s;
    break;
  }
  return load;
}

HostLoad host_load() {
  std::ifstream in("/proc/stat");
  std::stringstream text;
  text << in.rdbuf();
  HostLoad load = parse_proc_stat(text.str(), static_cast<double>(sysconf(_SC_CLK_TCK)));
  load.at_s = monotonic_s();
  load.own_s = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
  return load;
}

Fingerprint host_conditions(const HostLoad& before, const HostLoad& after) {
  Fingerprint facts;
  const double wall_s = after.at_s - before.at_s;
  if (wall_s > 0 && after.busy_s > 0) {
    const double other_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s);
    facts["run.other_busy_cores"] = fmt::format("{:.2f}", std::max(0.0, other_s / wall_s));
    facts["run.stolen_cores"] = fmt::format("{:.2f}", std::max(0.0, (after.stolen_s - before.stolen_s) / wall_s));
  }
  if (const double clock_MHz = mean_clock_MHz(); clock_MHz > 0) facts["run.cpu_MHz"] = fmt::format("{:.0f}", clock_MHz);
  return facts;
}

}  // namespace wt
