#include "bench/health/collect.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <Eigen/Dense>
#include <array>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {
namespace {

constexpr std::int64_t kSize = 256, kProducts = 24;        // 0.8 GFLOP a repetition: some 40 ms of a core
constexpr std::size_t kCopyBytes = std::size_t{32} << 20;  // per core: larger than its share of the last-level cache
constexpr std::size_t kFileBytes = std::size_t{64} << 20;
constexpr int kFileRepetitions = 3;

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw_runtime("health: sched_getaffinity: {}", std::strerror(errno));
  std::vector<int> out;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) out.push_back(core);
  return out;
}

/// Random values, because constant ones draw less power and so stress the device less.
Eigen::MatrixXf random_matrix() {
  Eigen::MatrixXf out(kSize, kSize);
  std::mt19937 random(1);
  for (float& value : out.reshaped()) value = static_cast<float>(random() >> 8) / 8388608.0f - 1.0f;  // -1 to 1
  return out / std::sqrt(static_cast<float>(kSize) / 3);  // keeps the scale of repeated products
}

void stress(DeviceObservation& device, int repetitions, std::barrier<>& together) {
  const Eigen::MatrixXf a = random_matrix();
  Eigen::MatrixXf x, y(kSize, kSize), first;
  for (int i = -1; i < repetitions; ++i) {  // -1 = warm-up
    x.setIdentity(kSize, kSize);
    together.arrive_and_wait();
    const double begin = thread_cpu_s();
    for (std::int64_t k = 0; k < kProducts; ++k) y.noalias() = a * x, x.swap(y);
    const double seconds = thread_cpu_s() - begin;
    if (i < 0) {
      first = x;
      continue;
    }
    device.stress_s.push_back(seconds);
    device.wrong_results += std::memcmp(first.data(), x.data(), sizeof(float) * kSize * kSize) != 0;
  }
}

void copy(DeviceObservation& device, int repetitions, std::barrier<>& together) {
  std::vector<char> from(kCopyBytes, 1), to(kCopyBytes, 2);
  for (int i = 0; i < repetitions; ++i) {
    together.arrive_and_wait();
    const double begin = thread_cpu_s();
    std::memcpy(to.data(), from.data(), kCopyBytes);
    device.memory_Bps.push_back(2 * static_cast<double>(kCopyBytes) / (thread_cpu_s() - begin));
    if (std::memcmp(to.data(), from.data(), kCopyBytes) != 0) ++device.wrong_results;
  }
}

std::vector<DeviceObservation> stress_cores(int repetitions) {
  const std::vector<int> cores = usable_cores();
  Fingerprint facts = host_facts();
  std::vector<DeviceObservation> devices(cores.size());
  std::barrier<> together(static_cast<std::ptrdiff_t>(cores.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    devices[i].id = fmt::format("core {}", cores[i]);
    devices[i].model = facts["cpu_model"];
    threads.emplace_back([&, i] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cores[i], &one);
      pthread_setaffinity_np(pthread_self(), sizeof one,
                             &one);  // fails if the core is no longer available; then any core is used
      stress(devices[i], repetitions, together);
      copy(devices[i], repetitions, together);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return devices;
}

/// Closes the descriptor and removes the file in every case.
struct ScratchFile {
  std::string name;
  int descriptor = -1;
  explicit ScratchFile(const std::filesystem::path& folder) : name((folder / ".windtunnel-health-XXXXXX").string()) {
    descriptor = mkstemp(name.data());
    if (descriptor < 0) fail("mkstemp", folder.string());
  }
  ~ScratchFile() {
    close(descriptor);
    unlink(name.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  [[noreturn]] static void fail(const char* call, const std::string& where) {
    throw_runtime("{}: {}: {}; name a folder that can be written with --storage", where, call, std::strerror(errno));
  }
};

/// Writes with fsync, then reads the file from disk: the kernel is asked to drop its pages (a file system without a
/// disk, such as tmpfs, still reads memory).
StorageObservation try_storage(const std::filesystem::path& folder, std::size_t bytes) {
  StorageObservation out;
  std::vector<char> pattern(bytes), back(bytes);
  for (std::size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(i * 2654435761u >> 13);
  for (int i = 0; i < kFileRepetitions; ++i) {
    const ScratchFile file(folder);
    const auto move_all = [&](auto call, char* data, const char* what) {
      for (std::size_t done = 0; done < bytes;) {
        const ssize_t n = call(file.descriptor, data + done, bytes - done, static_cast<off_t>(done));
        if (n <= 0) ScratchFile::fail(what, file.name);
        done += static_cast<std::size_t>(n);
      }
    };
    double begin = steady_s();
    move_all(pwrite, pattern.data(), "write");
    if (fsync(file.descriptor) != 0) ScratchFile::fail("fsync", file.name);
    out.write_Bps.push_back(static_cast<double>(bytes) / (steady_s() - begin));
    posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED);
    begin = steady_s();
    move_all(pread, back.data(), "read");
    out.read_Bps.push_back(static_cast<double>(bytes) / (steady_s() - begin));
    if (back != pattern)
      throw_runtime("{}: read back other bytes than were written; this storage loses data, use another", file.name);
  }
  return out;
}

}  // namespace

NodeObservation collect_node(const CollectOptions& options, const std::function<void(const std::string&)>& starting) {
  const int repetitions = stress_repetitions(options.quick);
  NodeObservation out;
  out.name = host_facts()["host"];
  const double begin = steady_s();
  const std::vector<NicObservation> before = read_nics(options.sysfs);
  starting("computing and copying on every core");
  out.devices = stress_cores(repetitions);
  starting(fmt::format("writing and reading in {}", options.storage.string()));
  try {
    out.storage = try_storage(options.storage, options.quick ? kFileBytes / 4 : kFileBytes);
  } catch (const Error& e) {
    out.failures.push_back(e.what());
  }
  out.nics = increases_between(before, read_nics(options.sysfs), steady_s() - begin);
  return out;
}

std::string kernel_log() {
  std::string out;
  const int descriptor = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return out;
  std::array<char, 8192> record;  // the kernel's largest record
  for (;;) {
    const ssize_t n = read(descriptor, record.data(), record.size());
    if (n < 0 && errno == EPIPE) continue;  // the record was overwritten; the next read continues after it
    if (n <= 0) break;
    out.append(record.data(), static_cast<std::size_t>(n));
  }
  close(descriptor);
  return out;
}

}  // namespace wt
