// Calibration: profiles in, machine model out, with what is left over said class by class. Three kinds of measurements:
//   items        kernel = a work item's name, shape = WorkItem::shape, dtype fp32 | bf16 | fp16 (fp16 speaks for bf16
//   and
//                is marked derived: the tensor cores run both at one rate)
//   op traces    kernel = "op:attention.fwd" and so on: what ops of a training run took, with the run's shape; gives
//   each
//                op a factor over what its items predict, and an overhead where runs of several sizes are there
//   collectives  kernel = all_gather | reduce_scatter | all_reduce | all_to_all | broadcast | send_recv, shape bytes,
//                ranks, nodes (groups > 1 at a time: by CPU they share the host's cores, on GPUs they are left out)
//   step_computation  of so many ranks at once and of one alone: by how much computation is slower on shared cores
//   gemm_beside_all_gather and so on: products alone and beside a collective; on GPUs what communication takes from
//   them
//   checkpoint_write, checkpoint_read  what a save's files take on the storage, shape bytes (of all ranks), ranks, and
//                nodes where there are several; a profile of nothing else says nothing of the host
// A suite's other kernels are left out and counted in the notes.
#pragma once
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "sim/cost/kernels/machine_model.hpp"

namespace wt {

struct CalibrationOptions {
  bool allow_assumed = false;  ///< let the model answer by roofline what nobody measured
};

/// How well one class is predicted. Errors are |predicted / measured - 1|, bias is the median of predicted / measured
/// - 1.
struct ClassResidual {
  std::string name;  ///< "gemm/forward/bf16", "attention.fwd/dense", "all_gather"
  std::string how;   ///< "fit", "staircase", "op", "collective", "storage"
  std::int64_t points = 0;
  double median_error = 0, p90_error = 0, bias = 0;
  /// The same on what was left out: whole shapes for fits over several shapes, else single points. Negative where too
  /// few points are there to leave one out.
  double held_out_median = -1, held_out_p90 = -1;
};

struct CalibrationResult {
  MachineModel model;
  std::vector<ClassResidual> residuals;  ///< items, then ops, then collectives, then storage
  std::vector<std::string> notes;        ///< what was left out, and factors outside 0.5 .. 2.0
};

/// Throws Error{usage}: no measurement that it could use, profiles of synchronous and of asynchronous hosts together,
/// a unit other than seconds, shapes with missing keys, and fingerprints without what the collectives need ("cores", or
/// "nvlink_Bps" and "nic_Bps"). The host is what fingerprint key "host" says (synchronous | asynchronous), else what
/// the clocks tell: device times mean an asynchronous one.
CalibrationResult calibrate(const std::vector<Profile>& profiles, const CalibrationOptions& options = {});

/// Fact of a machine model's fingerprint: the digests of the profiles that it was made of, a blank between two.
constexpr const char* kCalibratedOn = "calibrated_on";
/// Whether this profile, as it was written, is one of them. Throws Error{usage} for a machine model without the fact.
bool calibrated_on(const MachineData& machine, const Profile& profile);

/// Op factors outside this range get a note: the items do not describe the op.
constexpr double kLowestCredibleFactor = 0.5, kHighestCredibleFactor = 2.0;

}  // namespace wt
