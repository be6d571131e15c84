// When a request is sent again: after a random pause up to a bound that doubles ("full jitter"; M. Brooker,
// "Exponential Backoff And Jitter", AWS Architecture Blog 2015), and only while the process as a whole has not failed
// too often.
#pragma once
#include <atomic>
#include <mutex>

namespace wt {

/// Tokens that all requests of a process share, as in the standard mode of AWS's SDKs: a failure takes some, a success
/// gives one back. A store that is down is not asked ten times for every one of thousands of parts.
class RetryBudget {
 public:
  static constexpr int kCapacity = 500, kCost = 5;
  /// False: there are none left.
  bool take();
  void success();
  static RetryBudget& of_process();

 private:
  std::mutex mutex_;
  int tokens_ = kCapacity;
};

/// AWS_MAX_ATTEMPTS, else 10.
int attempts_allowed();

/// Sleeps a random part of min(20 s, 0.1 s x 2^failures), at most `left_s`; less once `given_up`.
void back_off(int failures, double left_s, const std::atomic<bool>* given_up);

}  // namespace wt
