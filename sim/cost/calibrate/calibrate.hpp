// Calibration makes a machine model from profiles and reports the prediction errors of each class. It uses:
//   items        kernel = a work item's name, shape = WorkItem::shape, dtype fp32 | bf16 | fp16 (fp16 is used for bf16
//                and marked derived: the tensor cores run both at one rate)
//   op traces    kernel = "op:attention.fwd" and so on: times of a training run's ops, with the run's shape. They give
//                each op a factor over its items' times, and an overhead if there are runs of several sizes
//   collectives  kernel = all_gather | reduce_scatter | all_reduce | all_to_all | broadcast | send_recv, shape bytes,
//                ranks, nodes. Several groups at a time (groups > 1) share the host's cores by CPU; on GPUs the
//                measurement is left out
//   step_computation  computation of several ranks at once and of one rank alone: the slowdown on shared cores
//   gemm_beside_all_gather and so on: products alone and during a collective. On GPUs they give the share of the
//                compute rate that communication takes
//   checkpoint_write, checkpoint_read  times of a save's files on the storage, shape bytes (of all ranks), ranks, and
//                nodes if there are several. A profile with nothing else does not describe the host
// Other kernels of a suite are left out. A note gives their number.
#pragma once
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "sim/cost/kernels/machine_model.hpp"

namespace wt {

struct CalibrationOptions {
  bool allow_assumed = false;  ///< kernels without measurements get roofline times
};

/// Prediction errors of one class: |predicted / measured - 1|. The bias is the median of predicted / measured - 1.
struct ClassResidual {
  std::string name;  ///< "gemm/forward/bf16", "attention.fwd/dense", "all_gather"
  std::string how;   ///< "fit", "staircase", "op", "collective", "storage"
  std::int64_t points = 0;
  double median_error = 0, p90_error = 0, bias = 0;
  /// The same for points left out of the fit: whole shapes if there are three or more, else single points. Negative if
  /// there are too few points.
  double held_out_median = -1, held_out_p90 = -1;
};

struct CalibrationResult {
  MachineModel model;
  std::vector<ClassResidual> residuals;  ///< items, then ops, then collectives, then storage
  std::vector<std::string> notes;        ///< for example measurements left out, and op factors outside 0.5 .. 2.0
};

/// Throws Error{usage} for: no usable measurement, profiles of synchronous and asynchronous hosts together, a unit
/// other than seconds, shapes that lack a key, and fingerprints that lack a fact which collectives need ("cores", or
/// "nvlink_Bps" and "nic_Bps"). Fingerprint key "host" says whether the host is synchronous or asynchronous. Without
/// the key, device times mean an asynchronous host.
CalibrationResult calibrate(const std::vector<Profile>& profiles, const CalibrationOptions& options = {});

/// Key of a machine model's fingerprint: the digests of its profiles, separated by blanks.
constexpr const char* kCalibratedOn = "calibrated_on";
/// Whether the model was calibrated on this profile, unchanged. Throws Error{usage} if the machine model lacks the key.
bool calibrated_on(const MachineData& machine, const Profile& profile);

/// Op factors outside this range get a note: the items do not describe the op.
constexpr double kLowestCredibleFactor = 0.5, kHighestCredibleFactor = 2.0;

}  // namespace wt
