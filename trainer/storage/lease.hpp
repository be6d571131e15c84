// Which run writes to a place of a store: one at a time. A store has no locks. So the owner leaves a record there,
// owner-00000001.json, and says again and again that it is alive; whoever finds a record that does not change for as
// long as a lease lasts takes the next number, which the store gives to one alone (a file that is written only if it is
// not there). Clocks are not compared.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/storage/store.hpp"

namespace wt {

struct LeaseTerms {
  double lasts_s = 60;
  double renewed_s = 15;  ///< so often
};

class StoreLease {
 public:
  /// `run`: what the record says to be the same run, whose owner before has ended for certain; a launch that starts
  /// again gets the place at once, and so does any where that owner was a process of this machine that is gone. Else
  /// waits until the owner before is heard of, or its lease is over. `stopped` is asked meanwhile, and ends it with
  /// Error{runtime}. Throws Error{usage} naming the owner where it lives, and StoreFailed.
  StoreLease(
      std::unique_ptr<Store> place, std::string run, LeaseTerms terms = {},
      const std::function<bool()>& stopped = [] { return false; });
  /// Gives it back, but not where an exception ends its owner.
  ~StoreLease();
  StoreLease(const StoreLease&) = delete;
  StoreLease& operator=(const StoreLease&) = delete;

  /// Whether another run has taken it: this process was stopped, or cut off from the store, for longer than it lasts.
  /// In words, "" = no.
  std::string lost() const;

 private:
  struct Record {
    std::int64_t number = 0;  ///< 0: there is none
    std::string text;
  };
  Record newest();
  /// Whether it was free.
  bool take(std::int64_t number);
  std::string own_record();
  void wait_for_end_of(const Record& record, const std::function<bool()>& stopped);
  void renew();

  const std::unique_ptr<Store> place_;
  const std::string run_;
  const LeaseTerms terms_;
  std::string since_;
  std::int64_t number_ = 0, renewals_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  std::string lost_;
  std::thread thread_;
};

/// The name of the run that an output folder holds, by which its launches know one another at a store: made at the
/// first call, in the file `.run`. A copy of the folder is another run.
std::string run_of_folder(const std::filesystem::path& output);

}  // namespace wt
