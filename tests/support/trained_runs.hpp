// Trainings that tests of other executables or of an earlier call have done: kept in a folder, by everything that
// decides on their bits. For tests that compare with a run; one that looks at how a training went trains for itself.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

namespace wt::test {

class TrainedRuns {
 public:
  /// In $WT_TRAINED_RUNS, which ctest sets for the tests that may (wt_trainer_test); without it nothing is kept. What
  /// another build of the trainer has trained is removed.
  TrainedRuns();

  /// Where the data in `folder` lies under a name that its bytes give, so that runs on it have the same text each time;
  /// `folder` itself where nothing is kept.
  std::filesystem::path keep_data(const std::filesystem::path& folder) const;

  /// Copies the run with this text to `to`, after `train` has trained it into the folder that it is given, unless it
  /// was trained before. A text that names `own`, a folder of this process, is trained each time.
  void copy_or_train(const std::string& run, const std::filesystem::path& own, const std::filesystem::path& to,
                     const std::function<void(const std::filesystem::path&)>& train) const;

 private:
  std::filesystem::path folder_;  ///< of this trainer; empty: nothing is kept
};

}  // namespace wt::test
