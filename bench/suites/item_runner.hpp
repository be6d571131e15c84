// Runs one case again and again, and says whether what it computes is right.
#pragma once
#include <memory>

#include "bench/suites/bench_case.hpp"

namespace wt {

class ItemRunner {
 public:
  ItemRunner(BenchCase what, NormalPool& normal);
  /// Keeps a reference to `run`.
  ItemRunner(const WorkItem& item, const RunSpec& run, NormalPool& normal, GroupedAs as = GroupedAs::picked);

  /// Fresh inputs and, for a backward pass through autograd, the graph. With sets > 1 that many of them, which the
  /// calls take in turn, so that caches smaller than all together do not help.
  void prepare(int sets = 1);
  /// Of the prepared inputs and incoming gradients of one set.
  std::int64_t input_bytes() const;
  /// Once, as the trainer executes it; the results of the last call.
  Tensors call();
  /// Gives the inputs back.
  void release();

  /// prepare(), one call, and the comparison below.
  double check();
  /// Largest error over the largest value, against fp64 on the CPU, or for inputs beyond 32 MiB where they are. Throws
  /// Error{runtime} beyond the case's limit, naming case, output, error and limit: times of a kernel that computes
  /// something else are worth nothing.
  double compare(const Tensors& outputs, const Tensors& expected) const;
  /// What call() must give for the prepared inputs; they must not have been used yet.
  Tensors expected() const;

  bool cold() const { return sets_.front().problem.cold; }
  /// Reads the inputs that are in the caches when the trainer comes to this item.
  void touch() const;
  double share() const { return sets_.front().problem.share; }
  const std::string& backend() const { return sets_.front().problem.backend; }

 private:
  struct Set {
    KernelProblem problem;
    Tensors outputs, gradients;
  };
  Set make_set();
  bool backward(const KernelProblem& problem) const { return problem.through_autograd && what_.backward; }
  at::Device reference_device() const;
  double within_limit(double error, std::size_t output) const;

  BenchCase what_;
  NormalPool& normal_;
  std::vector<Set> sets_{1};  ///< never empty
  std::size_t next_ = 0;
};

}  // namespace wt
