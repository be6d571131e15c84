#include "configs/machine/fingerprint.hpp"

#include <fmt/chrono.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <set>

#include "configs/base/installed.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/lookup.hpp"

namespace wt {
namespace {

// The value of "key : value" in /proc/cpuinfo or /proc/meminfo.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

Fingerprint host_facts() {
  Fingerprint facts;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) facts[key] = value;
  };
  utsname system{};
  if (uname(&system) == 0) {
    add("host", system.nodename);
    add("kernel", fmt::format("{} {}", system.sysname, system.release));
  }
  std::string cpu = proc_value("/proc/cpuinfo", "model name");
  if (cpu.empty()) cpu = proc_value("/proc/cpuinfo", "CPU part");  // Arm has no "model name"
  add("cpu_model", cpu);
  add("cores", std::to_string(usable_cores()));
  std::string governor;
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> governor;
  add("cpu_governor", governor);
  // Whole GiB, because the memory that the kernel reserves changes from boot to boot.
  const std::string total_KiB = proc_value("/proc/meminfo", "MemTotal");
  if (!total_KiB.empty()) add("memory_GiB", fmt::format("{:.0f}", std::round(std::stod(total_KiB) / (1 << 20))));
#if defined(__clang__)
  add("compiler", "clang " __clang_version__);
#else
  add("compiler", "gcc " __VERSION__);
#endif
  add("commit", source_commit());
  add("date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))));
  return facts;
}

bool is_run_fact(const std::string& key) {
  static const std::set<std::string> run_facts = {"commit",  "date", "host",     "gpu_uuid",  "pci_bus_id",
                                                  "command", "seed", "load_avg", "executable"};
  return run_facts.count(key) > 0 || key.rfind("run.", 0) == 0;
}

std::vector<FingerprintDifference> differences(const Fingerprint& left, const Fingerprint& right,
                                               const std::vector<std::string>& ignored) {
  std::set<std::string> keys;
  for (const auto& [key, value] : left) keys.insert(key);
  for (const auto& [key, value] : right) keys.insert(key);
  std::vector<FingerprintDifference> found;
  for (const std::string& key : keys) {
    if (is_run_fact(key) || std::ranges::find(ignored, key) != ignored.end()) continue;
    if (value_or(left, key) != value_or(right, key)) found.push_back({key, value_or(left, key), value_or(right, key)});
  }
  return found;
}

std::string to_string(const std::vector<FingerprintDifference>& differences) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : "'" + value + "'"; };
  return joined(differences, "; ", [&](const FingerprintDifference& each) {
    return fmt::format("{}: {} and {}", each.key, shown(each.left), shown(each.right));
  });
}

}  // namespace wt
