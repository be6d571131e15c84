// A sequential comparison that ends when it is certain. Both sides are measured in blocks: three processes of each in
// random order, one value per process and benchmark. Every benchmark is tested after blocks 2, 3, 4, 6, 8, 12 and so
// on; each such test is a "look".
//
// The test. Values of both sides are compared only within a block, so that drift of the machine between blocks cancels.
// U counts the pairs, over all blocks, in which the new side is larger. If the code is the same, each of the 20 orders
// of a block is equally likely, because it was drawn at random. That gives U's exact distribution for any noise (van
// Elteren 1960 for blocks of one size).
//
// The error. Each of 16 looks at each of m benchmarks may spend alpha / (16 m) for "slower", and as much for "faster".
// So a run calls any unchanged benchmark slower with probability at most alpha, however long it runs, whatever else
// changed, and whichever benchmarks it continued to measure.
#pragma once
#include <random>
#include <vector>

#include "bench/gate/gate.hpp"

namespace wt {

constexpr std::size_t kBlockSide = 3;  ///< processes of each side in a block

constexpr std::size_t kLooks = 16;  ///< the last one after 384 blocks

/// The side that each process of a block measures, in order: false is the base. Each of the 20 orders is equally
/// likely.
std::vector<bool> block_order(std::mt19937_64& random);

/// Cumulative distribution of U without a change: element u is P(U <= u) after `blocks` blocks; 9 * blocks + 1
/// elements.
std::vector<double> block_distribution(std::size_t blocks);

class SequentialGate {
 public:
  /// `rows`: the tested benchmarks; only name, unit and direction are used. `options`: only alpha and the floors are
  /// used. `miss`: probability, per benchmark, that its interval misses the true ratio at any look.
  explicit SequentialGate(std::vector<GateRow> rows, const GateOptions& options = {}, double miss = 0.05);

  /// Benchmarks to measure in the next block: the undecided ones; after four blocks only those that may have become
  /// slower (p below 0.2), while there are any. Empty when all are decided.
  std::vector<std::size_t> next() const;
  /// All undecided benchmarks, for programs that cannot measure a subset.
  std::vector<std::size_t> undecided() const;
  /// Adds one block's values of a benchmark, kBlockSide per side, and tests it if a look is due. Throws Error{usage}
  /// for values that are not positive.
  void add(std::size_t row, const std::vector<double>& base, const std::vector<double>& current);

  /// Verdict, ratio (median of the pairs' ratios), interval, p (one-sided, in the observed direction) and p_adjusted
  /// (over benchmarks and looks) as of the last look.
  const std::vector<GateRow>& rows() const { return rows_; }

 private:
  struct State {
    std::vector<double> base, current, ratios;
    std::size_t blocks = 0, looks = 0;
    std::size_t larger_twice = 0;  ///< 2 U: a tie counts as one
    bool decided = false, may_be_slower = true;
  };
  void look(GateRow& row, State& state);

  std::vector<GateRow> rows_;
  std::vector<State> states_;
  GateOptions options_;
  double miss_;
};

/// Replaces the tested rows of `compared` (a comparison with one value per process) by those of the blocks. Untested
/// rows keep their verdict: missing, new, failed, incomparable.
GateResult judged_in_blocks(GateResult compared, const SequentialGate& gate);

}  // namespace wt
