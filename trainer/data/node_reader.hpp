// Reads the samples of one canonical node in the epoch's order without holding them: a reader knows where its random
// numbers begin for every piece, and makes the ids of a window when they are asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/epoch_units.hpp"
#include "trainer/data/shuffle.hpp"

namespace wt {

class NodeReader {
 public:
  explicit NodeReader(std::int64_t size) : size_(size) {}
  virtual ~NodeReader() = default;
  std::int64_t size() const { return size_; }
  /// The id at the next place; there is one.
  std::int64_t next();
  /// Goes to a place in 0..size. Costs as much as a window or two, wherever it is.
  void seek(std::int64_t place);

 protected:
  /// Empties what was made, goes to a place at or before `place` and returns it.
  virtual std::int64_t go_back(std::int64_t place) = 0;
  /// Appends the ids that follow those made so far.
  virtual void make(std::vector<std::int64_t>& ids) = 0;

 private:
  std::int64_t size_;
  std::vector<std::int64_t> ready_;
  std::size_t used_ = 0;
};

/// The canonical nodes of an epoch, in their order; `shuffle` false: the units as they are.
/// Draws the random numbers of the whole epoch once (about 4 s for 1e9 samples), so that each node knows its own.
/// `naive` makes the ids of the whole epoch: 8 bytes a sample. Where py1e ties two positions exactly (NumPy's sort is
/// then free), the lower index comes first. Throws Error{usage} on a negative epoch, block_size 1, and fewer samples
/// than canonical nodes.
std::vector<std::unique_ptr<NodeReader>> read_nodes(const std::shared_ptr<const EpochUnits>& units,
                                                    const ShuffleOptions& options, bool shuffle);

}  // namespace wt
