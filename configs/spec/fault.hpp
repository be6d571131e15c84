// Fault scenarios of the recovery drill: which rank dies, when, and what must hold afterwards. The same file drives the
// real trainer and the simulator.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

struct RunSpec;

enum class KilledKind { kill };            ///< SIGKILL to the rank's process
enum class FaultExpectation { bitwise };  ///< losses and state after recovery equal the undisturbed run's, bit for bit
std::string to_string(KilledKind kind);
std::string to_string(FaultExpectation expectation);

struct FaultCase {
  std::string name;
  KilledKind kind = KilledKind::kill;
  std::int64_t rank = 0;
  std::int64_t step = 1;  ///< counted from 1, as checkpoints are named; with at_checkpoint the save after that step
  /// Id of an op of the step program ("mb0.L1.experts.bwd"), struck when the rank issues it; "" with at_checkpoint.
  std::string op;
  bool at_checkpoint = false;
  double after = 0;  ///< at_checkpoint: once this fraction of the rank's shard bytes is written, 0..1
};

struct FaultSpec {
  std::string name;
  std::string run;  ///< a preset of configs/runs or a file
  FaultExpectation expect = FaultExpectation::bitwise;
  std::vector<FaultCase> cases;
  std::filesystem::path file;
};

/// A preset of configs/faults or a file. Throws Error{usage} with file, line, found and allowed.
FaultSpec read_fault_spec(const std::string& name_or_file);
FaultSpec read_fault_spec_file(const std::filesystem::path& file);

/// Throws Error{usage} when a case cannot happen in the run: a rank outside the world, a step the run does not reach, a
/// checkpoint that it does not write or this rank has no shard of, an op that its program does not issue (op_ids: those
/// of one step, any rank).
void check_fault_spec(const FaultSpec& spec, const RunSpec& run, const std::vector<std::string>& op_ids);

/// The case as the trainer's --inject takes it: "rank=1,step=7,at=mb0.L1.experts.bwd" or
/// "rank=1,step=8,at=checkpoint,after=0.5".
std::string inject_text(const FaultCase& fault);
/// Its inverse; throws Error{usage}.
FaultCase parse_inject(const std::string& text);

}  // namespace wt
