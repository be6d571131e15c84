// Files of a sharded checkpoint: written with fsync as the trainer does, and read back from the disk.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "bench/suites/rank_suite.hpp"
#include "configs/spec/error.hpp"
#include "trainer/clocks.hpp"
#include "trainer/pch.hpp"
#include "trainer/safetensors.hpp"

namespace wt {
namespace {

/// Asks the kernel to forget a file's pages; they were written with fsync, so none is dirty.
void drop_from_cache(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_error(Code::runtime, "{}: written a moment ago and cannot be opened", file.string());
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
}

RankSample timed(Communicators& communicators, const std::function<void()>& call) {
  communicators.barrier();
  const Clocks begin = Clocks::now();
  call();
  const Clocks end = Clocks::now();
  return {end.wall_s - begin.wall_s, end.process_cpu_s - begin.process_cpu_s, end.thread_cpu_s - begin.thread_cpu_s};
}

}  // namespace

std::vector<Measurement> bench_storage(Communicators& communicators, std::int64_t world,
                                       const RankSuiteOptions& options) {
  const auto file = options.folder / fmt::format("rank-{}.safetensors", communicators.rank());
  const std::size_t sizes = options.bytes.size();
  std::vector<std::vector<RankSample>> own(2 * sizes);  // writes, then reads
  const std::int64_t largest = *std::max_element(options.bytes.begin(), options.bytes.end());
  const at::Tensor pattern = at::arange(largest / 4, at::TensorOptions().dtype(at::kFloat)).remainder_(1021);
  for (std::size_t i : sample_order(sizes, options.samples, options.seed)) {
    const std::int64_t count = std::max<std::int64_t>(1, options.bytes[i] / 4 / world);
    const at::Tensor values = pattern.narrow(0, 0, count);
    const OutgoingTensor tensor{"bench", "F32", {count}, values.data_ptr<float>()};
    own[i].push_back(timed(communicators, [&] { write_safetensors(file, {tensor}); }));
    drop_from_cache(file);
    at::Tensor back = at::empty({count}, at::kFloat);
    own[sizes + i].push_back(timed(communicators, [&] {
      read_values(read_safetensors(file).tensors.at("bench"), 0, count, back.data_ptr<float>());
    }));
    if (!at::equal(back, values))
      throw_error(Code::runtime, "{}: read back other values than were written; this storage loses data",
                  file.string());
  }
  std::filesystem::remove(file);
  const auto all = gather_samples(communicators, world, "storage", own);
  std::vector<Measurement> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    out.push_back(
        rank_measurement(i < sizes ? "checkpoint_write" : "checkpoint_read", options.bytes[i % sizes], world, all[i]));
  return out;
}

}  // namespace wt
