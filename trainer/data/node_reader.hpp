// Reads the samples of one canonical node in the epoch's order without storing them: a reader knows the random state at
// the begin of every piece, and creates the ids of a window on demand.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/epoch_units.hpp"
#include "trainer/data/shuffle.hpp"

namespace wt {

class NodeReader {
 public:
  explicit NodeReader(std::int64_t size) : size_(size) {}
  virtual ~NodeReader() = default;
  std::int64_t size() const { return size_; }
  /// The next id; must not be called at the end.
  std::int64_t next();
  /// Moves to a position in 0..size. Costs as much as creating a window or two, for any position.
  void seek(std::int64_t place);

 protected:
  /// Drops all created ids, moves to a position at or before `place` and returns it.
  virtual std::int64_t go_back(std::int64_t place) = 0;
  /// Appends the ids that follow those created so far.
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
