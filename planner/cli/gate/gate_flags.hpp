// Flags that `gate` and `gate run` share: what is compared, and from what size on a change is a finding.
#pragma once
#include <string>
#include <vector>

#include "bench/gate/gate.hpp"
#include "planner/cli/parts/words.hpp"

namespace wt {

struct GateFlags {
  GateOptions gate = {};            ///< without the floors of `floors`
  std::vector<std::string> floors;  ///< "5us", "2%"
  std::string clock = "real";

  /// Adds --strict, --allow-missing, --ignore, --floor and --clock. This must live as long as the command line.
  void add_to(const Command& command);
  /// Throws Error{usage} for a floor that is neither a time nor a share in percent.
  GateOptions options() const;
  GoogleBenchmarkClock google_benchmark_clock() const;
  /// The flags that differ from their defaults, as words of a command line.
  std::string words() const;
};

}  // namespace wt
