#include "trainer/storage/retry.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "trainer/storage/aws_profile.hpp"

namespace wt {

bool RetryBudget::take() {
  const std::lock_guard lock(mutex_);
  if (tokens_ < kCost) return false;
  tokens_ -= kCost;
  return true;
}

void RetryBudget::success() {
  const std::lock_guard lock(mutex_);
  tokens_ = std::min(kCapacity, tokens_ + 1);
}

RetryBudget& RetryBudget::of_process() {
  static RetryBudget budget;
  return budget;
}

int attempts_allowed() {
  const auto text = environment_variable("AWS_MAX_ATTEMPTS");
  if (!text) return 10;
  char* end = nullptr;
  const long n = std::strtol(text->c_str(), &end, 10);
  if (*end != '\0' || n < 1 || n > 100)
    throw_usage("AWS_MAX_ATTEMPTS: found '{}', allowed is 1 to 100; correct or unset it", *text);
  return static_cast<int>(n);
}

void back_off(int failures, double left_s, const std::atomic<bool>* given_up) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  const double bound = std::min(20.0, 0.1 * std::exp2(std::min(failures, 20)));
  const double pause = std::min(left_s, std::uniform_real_distribution<double>(0, bound)(random));
  const double begin = steady_s();
  wait_until(pause, 0.01, [&] { return (given_up != nullptr && *given_up) || steady_s() - begin >= pause; });
}

}  // namespace wt
