// The logged steps of a job in order, and where it started again.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/job_logs/job_log.hpp"

namespace wt {

class LoggedSteps {
 public:
  /// In a file of metrics a job that starts again appends without a word.
  void expect_starts() { returns_are_starts_ = true; }
  /// The log says that the job starts.
  void starts() { announced_ = !by_step_.empty(); }
  /// The log goes on in another file: if the steps go back, the job started again.
  void goes_on_in_new_file() { new_file_ = true; }

  /// Throws Error{usage} naming `where` for steps that go back and forth.
  void add(const LoggedStep& step, const std::string& where);
  /// Steps, starts and notes. Hugging Face's Trainer says when it wrote a step, not how long the step took: then the
  /// time is that since the step before.
  JobLog log(JobTrainer trainer) const;

 private:
  void started_again(const std::string& where, std::int64_t step, bool back);

  std::map<std::int64_t, LoggedStep> by_step_;
  std::vector<std::int64_t> starts_;  ///< ascending
  std::vector<std::string> notes_;
  std::int64_t last_ = 0;
  int unexplained_ = 0;
  bool announced_ = false, returns_are_starts_ = false, new_file_ = false;
};

}  // namespace wt
