// Retries of requests: after a random pause up to a bound that doubles ("full jitter"; M. Brooker, "Exponential Backoff
// And Jitter", AWS Architecture Blog 2015), as long as the whole process has not failed too often.
#pragma once
#include <atomic>
#include <mutex>

namespace wt {

/// Tokens shared by all requests of a process, as in the standard mode of AWS's SDKs: a failure takes some, a success
/// returns one. This prevents ten retries for each of thousands of parts while a store is down.
class RetryBudget {
 public:
  static constexpr int kCapacity = 500, kCost = 5;
  /// Returns false if too few tokens are left.
  bool take();
  void success();
  static RetryBudget& of_process();

 private:
  std::mutex mutex_;
  int tokens_ = kCapacity;
};

/// AWS_MAX_ATTEMPTS, by default 10.
int attempts_allowed();

/// Sleeps for a random part of min(20 s, 0.1 s x 2^failures), at most `left_s`; returns early once `given_up` is set.
void back_off(int failures, double left_s, const std::atomic<bool>* given_up);

}  // namespace wt
