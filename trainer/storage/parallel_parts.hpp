// Processes parts of one file in parallel.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

namespace wt {

/// Calls part(i) for i = 0..parts-1, on up to `threads` threads. The first exception sets `given_up`, prevents further
/// parts, and is rethrown once all threads are done.
void in_parallel(std::uint64_t parts, unsigned threads, std::atomic<bool>& given_up,
                 const std::function<void(std::uint64_t)>& part);

}  // namespace wt
