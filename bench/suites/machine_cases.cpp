// Costs of the machine itself: copies, and launches of a nearly empty kernel.
#include <cstring>

#include "bench/suites/bench_case.hpp"
#include "configs/base/clock.hpp"
#include "trainer/device/device.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

enum class Copy { host_to_device, device_to_host, device_to_device };

/// Page-locked, so that a copy is one transfer without the driver's staging buffer.
Tensor host_memory(std::int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
}

BenchCase copy_case(Copy kind, std::int64_t bytes, at::Device device) {
  constexpr const char* kNames[] = {"host_to_device", "device_to_host", "device_to_device"};
  BenchCase out;
  out.row.kernel = kNames[static_cast<int>(kind)];
  out.row.pass = "";
  out.row.shape = {{"bytes", bytes}};
  out.row.clock = clock_of(device);
  out.beyond_l2 = kind == Copy::device_to_device;
  out.row.counters = {{"bytes", (kind == Copy::device_to_device ? 2.0 : 1.0) * static_cast<double>(bytes)}};
  out.make = [=](NormalPool& normal) {
    const std::int64_t count = bytes / 4;
    KernelProblem p;
    Tensor from = normal.take({count}, at::kFloat);
    if (kind == Copy::host_to_device) from = host_memory(count).copy_(from);
    // Zeroed, because memory from the allocator may still contain the expected result.
    const Tensor to = kind == Copy::device_to_host
                          ? host_memory(count).zero_()
                          : at::zeros({count}, at::TensorOptions().dtype(at::kFloat).device(device));
    p.inputs = {from, to};
    if (device.is_cpu())  // memcpy of this size bypasses the caches, LibTorch's copy_ does not
      p.run = [](const Tensors& in) {
        std::memcpy(in[1].data_ptr(), in[0].data_ptr(), in[0].nbytes());
        return Tensors{in[1]};
      };
    else
      p.run = [](const Tensors& in) { return Tensors{in[1].copy_(in[0], /*non_blocking=*/true)}; };
    p.verify = [device](const Tensors& in, const Tensors& results) {
      wait_for_device(device);
      return at::equal(in[0].to(device), results[0].to(device)) ? 0.0 : 1.0;
    };
    return p;
  };
  return out;
}

constexpr std::int64_t kRow = 16;  // floats that the launched kernel copies, in a single block
constexpr int kIssued = 200;

/// Seconds between launches that are queued on the device. Counter issue_s: the host's time to issue one.
BenchCase launch_case(at::Device device) {
  BenchCase out;
  out.row.kernel = "launch";
  out.row.pass = "";
  out.row.clock = "device";
  out.beyond_l2 = false;
  out.make = [device](NormalPool& normal) {
    KernelProblem p;
    const Tensor index = at::zeros({1}, at::TensorOptions().dtype(at::kLong).device(device));
    p.inputs = {normal.take({1, kRow}, at::kFloat),
                at::zeros({1, kRow}, at::TensorOptions().dtype(at::kFloat).device(device))};
    p.run = [index](const Tensors& in) {
      check_kernel(wt_gather_rows(stream_of(in[0]), WT_FP32, in[0].data_ptr(), index.data_ptr<std::int64_t>(), 1, 1,
                                  kRow, in[1].data_ptr()));
      return Tensors{in[1]};
    };
    p.verify = [](const Tensors& in, const Tensors& results) { return at::equal(in[0], results[0]) ? 0.0 : 1.0; };
    return p;
  };
  out.also = [make = out.make, device](Measurement& row) {
    NormalPool normal(1, device);
    const KernelProblem p = make(normal);
    p.run(p.inputs);
    wait_for_device(device);
    const double begin_s = clock_s(CLOCK_MONOTONIC);
    for (int i = 0; i < kIssued; ++i) p.run(p.inputs);
    row.counters["issue_s"] = (clock_s(CLOCK_MONOTONIC) - begin_s) / kIssued;
    wait_for_device(device);
  };
  return out;
}

}  // namespace

std::vector<BenchCase> machine_cases(at::Device device, bool quick) {
  constexpr std::int64_t kMiB = 1 << 20;
  std::vector<BenchCase> out;
  if (device.is_cpu()) {
    for (std::int64_t mib : {128, 256})
      if (!quick || mib == 128) out.push_back(copy_case(Copy::device_to_device, mib * kMiB, device));
    return out;
  }
  for (Copy kind : {Copy::host_to_device, Copy::device_to_host})
    for (std::int64_t bytes : {64 * kMiB / 1024, kMiB, 16 * kMiB, 256 * kMiB})
      if (!quick || bytes >= 16 * kMiB) out.push_back(copy_case(kind, bytes, device));
  for (std::int64_t mib : {1, 16, 256, 1024})
    if (!quick || mib >= 256) out.push_back(copy_case(Copy::device_to_device, mib * kMiB, device));
  out.push_back(launch_case(device));
  return out;
}

}  // namespace wt
