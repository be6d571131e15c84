#include "trainer/storage/parallel_parts.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace wt {

void in_parallel(std::uint64_t parts, unsigned threads, std::atomic<bool>& given_up,
                 const std::function<void(std::uint64_t)>& part) {
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr first;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::uint64_t i = 0; !given_up && (i = next++) < parts;) part(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      given_up = true;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::uint64_t i = 1; i < std::min<std::uint64_t>(parts, threads); ++i) workers.emplace_back(work);
    work();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace wt
