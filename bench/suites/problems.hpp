// A work item as a runnable problem: inputs, the trainer's call, and a simple reference.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Standard normal numbers, drawn once and handed out in slices, because drawing inputs for every sample would be slow.
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
  std::function<Tensors(const Tensors&)> run;  ///< the trainer's call; may change its inputs
  /// The same by ATen's basic operations on fp64 copies of the inputs, on any device; must not read `run`'s outputs.
  /// Additional outputs are scalars with gradient one (the balancing losses, which `run` adds in its backward pass).
  std::function<Tensors(const Tensors&)> reference;
  /// Replaces `reference` where the host is too slow, or outputs are not values: the largest error of `run`'s results
  /// relative to the largest value, computed on the inputs' device.
  std::function<double(const Tensors& inputs, const Tensors& results)> verify;
  bool through_autograd = false;  ///< the backward pass is autograd's of `run`; otherwise `run` is the pass itself
  /// For items with the size of the parameters, which occur once a step: timed with cold caches, except for inputs that
  /// the previous op left in them.
  bool cold = false;
  std::vector<std::size_t> still_warm;  ///< indices of these inputs
  std::string backend;                  ///< the implementation, where the library chooses among several
  double share = 1;  ///< this pass's share of the call's time; the loss kernel computes both passes at once
};

/// Rows per group by a closed form with the skew of recorded routing (largest over mean 1.5 at 8 and 1.7 at 16 experts,
/// as in configs/routing for DBRX-sized models). The seed determines which groups are large. Sums to `rows`.
std::vector<std::int64_t> skewed_rows(std::int64_t rows, std::int64_t groups, std::uint64_t seed);
/// Rows per expert of a rank that has `groups` of the model's experts. They follow a recorded layer of configs/routing
/// for a model with the same number of experts and choices, where there is one (configs/routing/README.md); the seed
/// selects the experts. Otherwise skewed_rows.
std::vector<std::int64_t> expert_rows(const ModelSpec& model, std::int64_t rows, std::int64_t groups,
                                      std::uint64_t seed);

/// The implementation of a grouped product: the trainer's choice, or for comparison a fixed one; `loop` computes one
/// product per group with the sizes on the host (forward only).
enum class GroupedAs { picked, library, own, loop };

/// Throws Error{usage} for an item that this run's model does not have (rope of another width).
KernelProblem make_problem(const WorkItem& item, const RunSpec& run, NormalPool& normal,
                           GroupedAs as = GroupedAs::picked);

}  // namespace wt
