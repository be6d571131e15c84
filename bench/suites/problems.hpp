// One work item as something that can be run: inputs, the call that the trainer makes, and a plain reference of it.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Standard normal numbers, drawn once and handed out in slices: inputs are random without drawing them anew for every
/// sample.
class NormalPool {
 public:
  explicit NormalPool(std::uint64_t seed, at::Device device = at::kCPU);
  at::Tensor take(std::vector<std::int64_t> shape, at::ScalarType type);
  std::uint64_t seed() const { return seed_; }
  at::Device device() const { return values_.device(); }

 private:
  std::uint64_t seed_;
  at::Tensor values_;
  std::int64_t at_ = 0;
};

using Tensors = std::vector<at::Tensor>;

struct KernelProblem {
  Tensors inputs;
  std::function<Tensors(const Tensors&)> run;  ///< as the trainer executes it; may change its inputs
  /// The same from ATen's basic operations on fp64 copies of the inputs, on whatever device these are; must not read
  /// `run`'s outputs. Outputs beyond those of `run` are scalars whose gradient is one (the balancing losses, which
  /// `run` adds in its backward).
  std::function<Tensors(const Tensors&)> reference;
  /// In place of `reference`, for what is too large for the host or has other outputs than values: the largest error of
  /// these results of `run` over the largest value, from the inputs where they are.
  std::function<double(const Tensors& inputs, const Tensors& results)> verify;
  bool through_autograd = false;  ///< the backward pass is autograd's of `run`; else `run` is the pass itself
  /// Sizes of parameters: a step comes by once, with everything else in between. They are timed with cold caches but
  /// for the inputs that the op before left there.
  bool cold = false;
  std::vector<std::size_t> still_warm;  ///< inputs
  std::string backend;                  ///< whose kernel runs, where the library chooses among several
  double share = 1;  ///< of the call's time that belongs to this pass: the loss kernel does both at once
};

/// Rows per group by a closed form as skewed as recorded routing (largest over mean 1.5 at 8 and 1.7 at 16 experts, as
/// in configs/routing for DBRX-sized models); which group is large depends on the seed. Sums to `rows`.
std::vector<std::int64_t> skewed_rows(std::int64_t rows, std::int64_t groups, std::uint64_t seed);
/// Rows per expert of a rank that has `groups` of the model's experts: by a recorded layer of configs/routing where one
/// has as many experts and choices as the model (configs/routing/README.md), some run of its experts by the seed; else
/// skewed_rows.
std::vector<std::int64_t> expert_rows(const ModelSpec& model, std::int64_t rows, std::int64_t groups,
                                      std::uint64_t seed);

/// Who computes a grouped product: whom the trainer picks, or for comparison one of those, or a product a group with
/// the sizes on the host (forward alone).
enum class GroupedAs { picked, library, own, loop };

/// Throws Error{usage} for an item that this run's model does not have (rope of another width).
KernelProblem make_problem(const WorkItem& item, const RunSpec& run, NormalPool& normal,
                           GroupedAs as = GroupedAs::picked);

}  // namespace wt
