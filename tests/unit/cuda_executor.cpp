// The executor of CUDA kernels finds what it is there for: kernels that are right pass, and each mistake that is
// planted in one of them is named.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using Catch::Contains;
using wt::cuda_executor::Clock;

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr const char* kNothing = "no error";

struct Where {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool beside_previous = false;
};

/// What the launch fails with.
template <class... Parameters, class... Arguments>
std::string found(Where where, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchAttribute beside{};
  beside.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = where.grid, config.blockDim = where.block, config.dynamicSmemBytes = where.shared_bytes;
  config.attrs = &beside, config.numAttrs = where.beside_previous;
  try {
    return cudaGetErrorString(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
  } catch (const wt::cuda_executor::Failure& failure) {
    return failure.what();
  }
}

int* dynamic_ints() { return reinterpret_cast<int*>(wt::cuda_executor::dynamic_shared()); }

std::vector<int> numbers(size_t n) {
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("a block's mirror image by shared memory is right in every order of warps, and with its barrier alone") {
  const std::vector<int> given = numbers(128);
  std::vector<int> result(128);
  const auto right = +[](const int* in, int* out) {
    __shared__ int staged[64];
    staged[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = staged[63 - threadIdx.x];
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    wt::cuda_executor::set_seed(seed);
    result.assign(128, -1);
    CHECK(found({2, 64}, right, given.data(), result.data()) == kNothing);
    for (size_t i = 0; i < 128; ++i) CHECK(result[i] == int(i / 64 * 64 + 63 - i % 64));
  }
  const auto none = +[](const int* in, int* out) {
    __shared__ int staged[64];
    staged[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = staged[63 - threadIdx.x];
  };
  CHECK_THAT(found({1, 64}, none, given.data(), result.data()), Contains("shared memory that nobody has written"));
  const auto of_warps = +[](const int* in, int* out) {
    __shared__ int staged[64];
    staged[63 - threadIdx.x] = 0, staged[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = staged[63 - threadIdx.x];
  };
  CHECK_THAT(found({1, 64}, of_warps, given.data(), result.data()), Contains("with nothing between"));
}

TEST_CASE("a barrier orders what comes before and after it, in both directions") {
  std::vector<int> result(64);
  const auto second_missing = +[](int* out) {  // as in a reduction called twice, whose first result may still be read
    int* const sum = dynamic_ints();
    for (int round = 0; round < 2; ++round) {
      if (threadIdx.x == unsigned(32 * round)) *sum = round;
      __syncthreads();
      out[threadIdx.x] = *sum;
    }
  };
  CHECK_THAT(found({1, 64, 4}, second_missing, result.data()),
             Contains("dynamic shared memory that thread") && Contains("read with nothing between"));
  const auto right = +[](int* out) {
    int* const sum = dynamic_ints();
    for (int round = 0; round < 2; ++round) {
      if (threadIdx.x == unsigned(32 * round)) *sum = round;
      __syncthreads();
      out[threadIdx.x] = *sum;
      __syncthreads();
    }
  };
  CHECK(found({1, 64, 4}, right, result.data()) == kNothing);
}

TEST_CASE("a barrier that not all threads of the block reach is found") {
  const auto one_has_left = +[] {
    if (threadIdx.x == 40) return;
    __syncthreads();
  };
  CHECK_THAT(found({1, 64}, one_has_left), Contains("__syncthreads") && Contains("cuda_executor.cpp"));
  const auto two_barriers = +[] {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  };
  CHECK_THAT(found({1, 64}, two_barriers), Contains("while others wait in the one at cuda_executor.cpp"));
  const auto for_ever = +[] {
    if (threadIdx.x < 32) __syncthreads();
    if (threadIdx.x >= 32) wt::cuda_executor::wait_until([] { return false; }, "what never comes");
  };
  CHECK_THAT(found({1, 64}, for_ever), Contains("no thread can run") && Contains("32 wait in __syncthreads") &&
                                           Contains("32 wait in what never"));
}

TEST_CASE("shuffles, votes and reductions over a warp") {
  std::vector<int> result(64);
  const auto sums = +[](int* out) {
    int sum = int(threadIdx.x);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
    out[threadIdx.x] = sum;
  };
  CHECK(found({1, 64}, sums, result.data()) == kNothing);
  for (int i = 0; i < 64; ++i) CHECK(result[size_t(i)] == (i < 32 ? 496 : 1520));

  const auto others = +[](int* out) {
    const int lane = int(threadIdx.x % 32);
    bool ok = __shfl_sync(kAll, lane, 9, 8) == lane / 8 * 8 + 1;
    ok &= __shfl_up_sync(kAll, lane, 3) == (lane < 3 ? lane : lane - 3);
    ok &= __shfl_down_sync(kAll, lane, 3, 16) == (lane % 16 > 12 ? lane : lane + 3);
    ok &= __shfl_sync(kAll, double(lane), 5) == 5.0;
    ok &= __ballot_sync(kAll, lane % 2) == 0xaaaaaaaau;
    ok &= __match_any_sync(kAll, lane % 4) == 0x11111111u << lane % 4;
    ok &= __reduce_max_sync(kAll, -lane) == 0 && __reduce_min_sync(kAll, -lane) == -31;
    ok &= __any_sync(kAll, lane == 4) == 1 && __all_sync(kAll, lane == 4) == 0;
    if (lane < 8) ok &= __ballot_sync(0xffu, 1) == 0xffu;  // a part of the warp alone
    out[threadIdx.x] = ok;
  };
  CHECK(found({1, 64}, others, result.data()) == kNothing);
  CHECK(result == std::vector<int>(64, 1));
}

TEST_CASE("wrong masks are found") {
  std::vector<int> result(32);
  const auto not_in_it = +[] { __shfl_xor_sync(0x0000ffffu, 1, 1); };
  CHECK_THAT(found({1, 32}, not_in_it), Contains("which its mask 0x0000ffff does not name"));
  const auto outside = +[] {
    if (threadIdx.x < 16) __shfl_xor_sync(0x0000ffffu, 1, 16);
  };
  CHECK_THAT(found({1, 32}, outside), Contains("reads lane") && Contains("which its mask does not name"));
  const auto others_elsewhere = +[] {  // all lanes are named, half of them come
    if (threadIdx.x < 16)
      __shfl_xor_sync(kAll, 1, 1);
    else
      __ballot_sync(kAll, 1);
  };
  CHECK_THAT(found({1, 32}, others_elsewhere), Contains("while others wait in"));
  const auto others_gone = +[] {
    if (threadIdx.x < 16) __shfl_xor_sync(kAll, 1, 1);
  };
  CHECK_THAT(found({1, 32}, others_gone), Contains("ends while others wait for it") || Contains("has ended"));
  const auto no_such_lane = +[] { __syncwarp(); };
  CHECK_THAT(found({1, 40}, no_such_lane), Contains("which the block does not have"));
}

TEST_CASE("a warp's barrier orders the warp; a shuffle orders nothing") {
  std::vector<int> result(64);
  const auto right = +[](int* out) {
    __shared__ int staged[64];
    staged[threadIdx.x] = 1;
    __syncwarp();
    out[threadIdx.x] = staged[threadIdx.x ^ 1];
  };
  CHECK(found({1, 64}, right, result.data()) == kNothing);
  const auto shuffled = +[](int* out) {
    __shared__ int staged[64];
    staged[threadIdx.x] = 1;
    __shfl_xor_sync(kAll, 1, 1);
    out[threadIdx.x] = staged[threadIdx.x ^ 1];
  };
  CHECK_THAT(found({1, 64}, shuffled, result.data()), Contains("with nothing between"));
}

TEST_CASE("memory that nobody has written is not read, in shared memory not that of the block before either") {
  std::vector<int> result(64);
  const auto tail = +[](int* out) {
    __shared__ int staged[64];
    if (threadIdx.x < 63) staged[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = staged[threadIdx.x];
  };
  CHECK_THAT(found({1, 64}, tail, result.data()), Contains("shared memory that nobody has written"));
  const auto left_over = +[](int* out) {
    __shared__ int value;
    if (threadIdx.x == 0 && out[0] == 0) value = 1;
    __syncthreads();
    out[1] = value;
    if (threadIdx.x == 0) out[0] = 1;
  };
  result.assign(64, 0);
  CHECK(found({1, 1}, left_over, result.data()) == kNothing);
  CHECK_THAT(found({1, 1}, left_over, result.data()), Contains("nobody has written"));

  int* memory = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&memory), 1 << 20) == cudaSuccess);
  const auto copy = +[](const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; };
  REQUIRE(cudaMemcpy(memory, result.data(), 12, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(found({1, 3}, copy, memory, result.data()) == kNothing);
  CHECK_THAT(found({1, 4}, copy, memory, result.data()), Contains("4 bytes at offset 12 of device memory that nobody"));
  cudaFree(memory);  // so much that nothing else takes its place
  CHECK_THAT(found({1, 1}, copy, memory, result.data()), Contains("reads 4 bytes"));
}

TEST_CASE("accesses out of bounds are found by one element") {
  std::vector<int> given(65), result(64);
  const auto copy = +[](const int* in, int* out, int n) {
    for (int i = int(threadIdx.x); i <= n; i += 32) out[i] = in[i];  // a tail that ends one too late
  };
  CHECK(found({1, 32}, copy, given.data(), result.data(), 63) == kNothing);
  CHECK_THAT(found({1, 32}, copy, given.data(), result.data(), 64),
             Contains("writes 4 bytes at offset 256 of device memory of an allocation of 256 bytes"));
  const auto fixed = +[](int* out, int n) {
    __shared__ int staged[64];
    staged[n] = 1;
    *out = staged[n];
  };
  CHECK(found({1, 1}, fixed, result.data(), 63) == kNothing);
  CHECK_THAT(found({1, 1}, fixed, result.data(), 64),
             Contains("cuda_executor.cpp") && Contains("index 64 is outside of its array"));
  const auto dynamic = +[](int n) { dynamic_ints()[n] = 1; };
  CHECK(found({1, 1, 16}, dynamic, 3) == kNothing);
  CHECK_THAT(found({1, 1, 16}, dynamic, 4), Contains("dynamic shared memory where the launch has 16 bytes"));
  const auto in_a_register = +[](int n) {
    int own[4] = {};
    for (int i = 0; i < n; ++i) own[i] = i;
    dynamic_ints()[0] = own[n / 2];
  };
  CHECK(found({1, 1, 4}, in_a_register, 4) == kNothing);
  CHECK_THAT(found({1, 1, 4}, in_a_register, 5), Contains("index 4 is outside of its array"));
  const auto wide = +[](const int* in, uint4* out) { *out = *reinterpret_cast<const uint4*>(in); };
  std::vector<uint4> four(1);
  CHECK(found({1, 1}, wide, given.data(), four.data()) == kNothing);
  CHECK_THAT(found({1, 1}, wide, given.data() + 1, four.data()), Contains("16 bytes") && Contains("no multiple"));
  int on_host = 0;
  CHECK_THAT(found(
                 {1, 1}, +[](int* at) { *at = 1; }, &on_host),
             Contains("that was not allocated"));
}

TEST_CASE("races in device memory are found: between threads, blocks, and launches") {
  std::vector<int> count(4), result(64);
  const auto histogram = +[](int* counts) { ++counts[threadIdx.x % 4]; };
  CHECK_THAT(found({1, 64}, histogram, count.data()), Contains("of device memory that thread"));
  const auto of_blocks = +[](int* counts) { counts[threadIdx.x] += 1; };
  CHECK(found({1, 4}, of_blocks, count.data()) == kNothing);
  CHECK_THAT(found({2, 4}, of_blocks, count.data()), Contains("of another block"));
  count.assign(4, 0);
  const auto atomic = +[](int* counts) { atomicAdd(&counts[threadIdx.x % 4], 1); };
  CHECK(found({3, 64}, atomic, count.data()) == kNothing);
  CHECK(count == std::vector<int>(4, 48));
  const auto half_atomic = +[](int* counts) {
    if (threadIdx.x == 0)
      counts[0] = 0;
    else
      atomicAdd(&counts[0], 1);
  };
  CHECK_THAT(found({1, 64}, half_atomic, count.data()), Contains("with nothing between"));

  const auto write = +[](int* out) { out[threadIdx.x] = 1; };
  const auto read = +[](int* out, bool waits) {
    if (waits) cudaGridDependencySynchronize();
    out[threadIdx.x] += 1;
    if (!waits) cudaGridDependencySynchronize();
  };
  CHECK(found({1, 64}, write, result.data()) == kNothing);
  CHECK(found({1, 64, 0, true}, read, result.data(), true) == kNothing);
  CHECK_THAT(found({1, 64, 0, true}, read, result.data(), false),
             Contains("before it has waited for the launch before"));
  std::vector<int> fresh(64);  // that no launch has touched
  CHECK_THAT(found({1, 64, 0, true}, read, fresh.data(), false),
             Contains("before it has waited for the launch before"));
  const auto one_waits = +[](int* out) {
    if (threadIdx.x == 0) cudaGridDependencySynchronize();
    __syncthreads();
    out[threadIdx.x] += 1;
  };
  CHECK(found({1, 64, 0, true}, one_waits, result.data()) == kNothing);
  CHECK(found({1, 64}, read, result.data(), false) == kNothing);  // an ordinary launch
  CHECK_THAT(found(
                 {1, 64, 0, true}, +[] {}),
             Contains("ends without having waited for the launch before"));
}

TEST_CASE("writes of one value by several threads are let pass, of several values are not") {
  std::vector<int> result(1);
  const auto write = +[](int* out, int step) { *out = 5 + step * int(threadIdx.x); };
  CHECK(found({1, 64}, write, result.data(), 0) == kNothing);
  CHECK(result[0] == 5);
  CHECK_THAT(found({1, 64}, write, result.data(), 1), Contains("another value"));
}

TEST_CASE("an agent runs beside the block, and only its clock orders the two") {
  struct Copy {
    Clock done;
    bool ended = false;
    int staged = 0;
  };
  const auto kernel = +[](Copy* copy, int* out, bool acquires) {
    if (threadIdx.x == 0)
      wt::cuda_executor::spawn([copy] {
        copy->staged = 3;
        wt::cuda_executor::release(copy->done);
        copy->ended = true;
      });
    wt::cuda_executor::wait_until([copy] { return copy->ended; }, "the agent");
    if (acquires) wt::cuda_executor::acquire(copy->done);
    out[threadIdx.x] = copy->staged;
  };
  std::vector<Copy> copy(1);
  std::vector<int> result(64);
  CHECK(found({1, 64}, kernel, copy.data(), result.data(), true) == kNothing);
  CHECK(result == std::vector<int>(64, 3));
  copy[0] = {};
  CHECK_THAT(found({1, 64}, kernel, copy.data(), result.data(), false), Contains("thread 64 of the block wrote"));
}

TEST_CASE("an agent takes the place of another whose end its maker has seen, and of no other") {
  const auto kernel = +[](unsigned* number, Clock* done, bool acquires) {
    for (int i = 0; i < 50; ++i) {
      wt::cuda_executor::spawn([number, done, i] {
        number[i] = wt::cuda_executor::thread_number();
        wt::cuda_executor::release(*done);
      });
      wt::cuda_executor::wait_until([number, i] { return number[i] != 0; }, "the agent");
      if (acquires) wt::cuda_executor::acquire(*done);
    }
  };
  std::vector<unsigned> number(50);
  std::vector<Clock> done(1);
  CHECK(found({1, 1}, kernel, number.data(), done.data(), true) == kNothing);
  CHECK(number == std::vector<unsigned>(50, 1));
  number.assign(50, 0), done[0].clear();
  CHECK(found({1, 1}, kernel, number.data(), done.data(), false) == kNothing);
  CHECK(std::set<unsigned>(number.begin(), number.end()).size() == 50);
}

TEST_CASE("warps run in orders that the seed gives") {
  std::set<std::vector<int>> orders;
  const auto ticket = +[](int* next, int* turn) {
    if (threadIdx.x % 32 == 0) turn[atomicAdd(next, 1)] = int(threadIdx.x / 32);
  };
  const auto order_of = [&](uint64_t seed) {
    std::vector<int> tickets(1), order(8);
    wt::cuda_executor::set_seed(seed);
    CHECK(found({1, 256}, ticket, tickets.data(), order.data()) == kNothing);
    return order;
  };
  for (uint64_t seed = 0; seed < 20; ++seed) orders.insert(order_of(seed));
  CHECK(orders.size() > 15);
  CHECK(order_of(3) == order_of(3));
}

TEST_CASE("a launch that no device takes is refused, and the last error says so") {
  const auto nothing = +[] {};
  cudaLaunchConfig_t config{};
  config.gridDim = 1, config.blockDim = 1025;
  CHECK(cudaLaunchKernelEx(&config, nothing) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  // Shared memory above 48 KiB is asked for.
  config.blockDim = 32, config.dynamicSmemBytes = (48 << 10) + 1;
  CHECK(cudaLaunchKernelEx(&config, nothing) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 << 10) == cudaSuccess);
  CHECK(cudaLaunchKernelEx(&config, nothing) == cudaSuccess);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10) == cudaErrorInvalidValue);
  static_cast<void>(cudaGetLastError());
}
