#include "trainer/faults/fault_point.hpp"

#include <signal.h>
#include <unistd.h>

namespace wt {
namespace {

std::optional<FaultCase> armed;

}  // namespace

void arm_fault(const FaultCase& fault, std::int64_t rank) {
  if (fault.rank == rank) armed = fault;
}

void pass_fault_point(std::int64_t step, const std::string& op_id) {
  if (armed && !armed->at_checkpoint && armed->step == step && armed->op == op_id) die_now();
}

std::optional<double> checkpoint_fault(std::int64_t step) {
  if (armed && armed->at_checkpoint && armed->step == step) return armed->after;
  return std::nullopt;
}

void die_now() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace wt
