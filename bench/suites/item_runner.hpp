// Runs one case repeatedly and checks its result.
#pragma once

#include "bench/suites/bench_case.hpp"

namespace wt {

class ItemRunner {
 public:
  ItemRunner(BenchCase what, NormalPool& normal);
  /// Keeps a reference to `run`.
  ItemRunner(const WorkItem& item, const RunSpec& run, NormalPool& normal, GroupedAs as = GroupedAs::picked);

  /// Creates fresh inputs and, for a backward pass through autograd, the graph. With `sets` > 1, calls rotate through
  /// that many sets of inputs, so that caches smaller than all sets together do not help.
  void prepare(int sets = 1);
  /// Bytes of the prepared inputs and incoming gradients of one set.
  std::int64_t input_bytes() const;
  /// Runs the case once, as the trainer does. Returns its results.
  Tensors call();
  /// Frees the inputs.
  void release();

  /// prepare(), call() and compare(). Returns the error.
  double check();
  /// Largest error relative to the largest value, against an fp64 reference on the CPU (inputs above 32 MiB: on their
  /// device). Throws Error{runtime} with case, output, error and limit where the error is too large.
  double compare(const Tensors& outputs, const Tensors& expected) const;
  /// The expected results for the prepared inputs, which must be unused.
  Tensors expected() const;

  bool cold() const { return sets_.front().problem.cold; }
  /// Reads the inputs that are in caches when the trainer reaches this item.
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
