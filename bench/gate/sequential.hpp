// A comparison that ends when it is certain. Both sides are measured in blocks: three processes of each in random
// order, one value a process and benchmark. After blocks 2, 3, 4, 6, 8, 12 and so on every benchmark is looked at.
//
// The test. Within a block, values of both sides are compared with one another and with nothing else, so that a drift
// of the machine from block to block cancels. U counts the pairs in which the new side is larger, over all blocks. If
// the code is the same, each of the 20 orders of a block is as likely as any other because it was drawn so; this gives
// U's distribution exactly, whatever the noise (van Elteren 1960 for blocks of one size).
// The error. Each of 16 looks at each of m benchmarks may spend alpha / (16 m) for "slower", and as much for "faster".
// A run calls any unchanged benchmark slower with at most the chance alpha, then, however long it lasts, whatever else
// changed, and whichever benchmarks it chose to measure on.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "bench/gate/gate.hpp"

namespace wt {

constexpr std::size_t kBlockSide = 3;  ///< processes of each side in a block

constexpr std::size_t kLooks = 16;  ///< the last after 384 blocks

/// Which side the processes of a block measure, in turn: false is the base. Each of the 20 orders is equally likely.
std::vector<bool> block_order(std::mt19937_64& random);

/// U's distribution when nothing changed: element u is P(U <= u) after `blocks` blocks, of 9 * blocks + 1.
std::vector<double> block_distribution(std::size_t blocks);

class SequentialGate {
 public:
  /// The benchmarks that are tested: name, unit and direction of each row count. Of the options: alpha and the floors.
  /// `miss` is the chance, for each benchmark, that its interval leaves out the true ratio at any look.
  explicit SequentialGate(std::vector<GateRow> rows, const GateOptions& options = {}, double miss = 0.05);

  /// What the next block is to measure: what is undecided, after four blocks only what may well have become slower
  /// (p below 0.2) as long as there is any such. Empty when all is decided.
  std::vector<std::size_t> next() const;
  /// All that is not decided yet: for programs that measure everything each time.
  std::vector<std::size_t> undecided() const;
  /// One block's values of a benchmark, kBlockSide a side, all above 0; else Error{usage}. Judges it where a look is
  /// due.
  void add(std::size_t row, const std::vector<double>& base, const std::vector<double>& current);

  /// Verdict, ratio (median of the pairs' ratios), interval, p (one-sided, of the direction seen) and p_adjusted (over
  /// benchmarks and looks) as of the last look.
  const std::vector<GateRow>& rows() const { return rows_; }

 private:
  struct State {
    std::vector<double> base, current, ratios;
    std::size_t blocks = 0, looks = 0;
    std::size_t larger_twice = 0;  ///< 2 U: a tie counts one
    bool decided = false, may_be_slower = true;
  };
  void look(GateRow& row, State& state);

  std::vector<GateRow> rows_;
  std::vector<State> states_;
  GateOptions options_;
  double miss_;
};

/// The rows of `compared` (a comparison of what the processes measured, one value a process) as the blocks judged them.
/// What was not tested keeps its verdict: missing, new, failed, incomparable.
GateResult judged_in_blocks(GateResult compared, const SequentialGate& gate);

}  // namespace wt
