#include "kernels/threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "kernels/backend.hpp"

namespace wt::kernels {
namespace {

std::atomic<int> most_threads{1};
constexpr int64_t kThreadBytes = 1 << 20;  // tens of microseconds at memory speed, about the cost of starting a thread

}  // namespace

void run_rows(int64_t rows, int64_t row_bytes, void (*body)(void*, int64_t, int64_t), void* context) {
  const int64_t worth = std::max<int64_t>(1, rows * row_bytes / kThreadBytes);
  const int64_t threads = std::min({worth, rows, int64_t{most_threads.load(std::memory_order_relaxed)}});
  if (threads <= 1) return body(context, 0, rows);
  std::vector<std::thread> others;
  int64_t done = rows / threads;
  try {
    others.reserve(static_cast<size_t>(threads - 1));
    for (int64_t i = 1; i < threads; ++i) {
      const int64_t end = rows * (i + 1) / threads;
      others.emplace_back(body, context, done, end);
      done = end;
    }
  } catch (const std::exception&) {  // no further thread, or no memory: the calling thread does the rest
  }
  body(context, 0, rows / threads);
  if (done < rows) body(context, done, rows);
  for (std::thread& other : others) other.join();
}

}  // namespace wt::kernels

WtStatus wt_kernel_set_threads(int threads) {
  if (threads < 1)
    return wt::kernels::fail(
        WT_INVALID_ARGUMENT,
        "wt_kernel_set_threads: %d; allowed 1 or more; pass the number of cores that this process has to itself",
        threads);
  wt::kernels::most_threads = threads;
  return WT_OK;
}
