// Files of a sharded checkpoint: written with fsync like the trainer's, and read back from disk.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "bench/suites/rank_suite.hpp"
#include "configs/base/error.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors/safetensors.hpp"

namespace wt {
namespace {

const std::size_t kPage_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Asks the kernel to drop a file's pages, which are all clean after fsync. Returns false where some remain: on tmpfs,
/// or if another process maps them.
bool drop_from_cache(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_runtime("{}: written a moment ago and cannot be opened", file.string());
  const bool advised = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0;
  struct stat status {};
  bool resident = fstat(descriptor, &status) != 0;
  if (const auto size = static_cast<std::size_t>(status.st_size); !resident && size > 0) {
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    std::vector<unsigned char> pages((size + kPage_bytes - 1) / kPage_bytes);
    resident = mapped == MAP_FAILED || mincore(mapped, size, pages.data()) != 0 ||
               std::ranges::any_of(pages, [](unsigned char page) { return (page & 1) != 0; });
    if (mapped != MAP_FAILED) munmap(mapped, size);
  }
  close(descriptor);
  return advised && !resident;
}

RankSample timed(Communicators& communicators, const std::function<void()>& call) {
  communicators.barrier();
  const Clocks begin = Clocks::now();
  call();
  const Clocks end = Clocks::now();
  return {end.wall_s - begin.wall_s, end.process_cpu_s - begin.process_cpu_s, end.thread_cpu_s - begin.thread_cpu_s};
}

}  // namespace

void bench_storage(const RankSuite& suite, RankRows& rows) {
  const RankSuiteOptions& options = suite.options;
  Communicators& communicators = suite.communicators;
  const std::int64_t world = suite.mesh.world();
  const auto file = options.folder / fmt::format("rank-{}.safetensors", communicators.rank());
  const auto written = [&](std::int64_t size) { return rank_row("checkpoint_write", size, world); };
  const auto read = [&](std::int64_t size) { return rank_row("checkpoint_read", size, world); };
  std::vector<std::int64_t> bytes = options.bytes;
  std::erase_if(bytes, [&](std::int64_t size) { return rows.has(written(size)) && rows.has(read(size)); });
  if (bytes.empty()) return;
  const std::size_t sizes = bytes.size();
  std::vector<RankCase> own(2 * sizes);  // writes, then reads
  std::vector<RankCase> cold(sizes);     // one sample each: 1 s where the read was cold
  const std::int64_t largest = *std::ranges::max_element(bytes);
  const at::Tensor pattern = at::arange(largest / 4, at::TensorOptions().dtype(at::kFloat)).remainder_(1021);
  for (std::size_t i : sample_order(sizes, options.samples, options.seed)) {
    const std::int64_t count = std::max<std::int64_t>(1, bytes[i] / 4 / world);
    const at::Tensor values = pattern.narrow(0, 0, count);
    const OutgoingTensor tensor{"bench", "F32", {count}, values.data_ptr<float>()};
    own[i].samples.push_back(timed(communicators, [&] { write_safetensors(file, {tensor}); }));
    cold[i].samples.push_back({drop_from_cache(file) ? 1.0 : 0.0, 0, 0});
    at::Tensor back = at::empty({count}, at::kFloat);
    own[sizes + i].samples.push_back(timed(communicators, [&] {
      read_values(read_safetensors(file).tensors.at("bench"), 0, count, back.data_ptr<float>());
    }));
    if (!at::equal(back, values))
      own[sizes + i].error =
          fmt::format("{}: read back other values than were written; this storage loses data", file.string());
  }
  std::filesystem::remove(file);
  const auto all = gather_cases(suite, "storage", own), were_cold = gather_cases(suite, "cold", cold);
  Profile out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Measurement m = rank_measurement(i < sizes ? written(bytes[i]) : read(bytes[i - sizes]), all[i]);
    if (rows.has(m)) continue;
    if (i >= sizes) {
      bool every = true;
      for (const RankCase& rank : were_cold[i - sizes])
        for (const RankSample& sample : rank.samples) every = every && sample.wall_s > 0;
      m.counters["cold"] = every ? 1 : 0;
      m.evidence.source += every ? ", cold caches" : ", warm: the file system keeps pages in memory";
    }
    add_row(out, std::move(m), all[i]);
  }
  rows.add(out);
}

}  // namespace wt
