// The samples of an epoch, or of one stream of it, in the order in which they are handed out: canonical nodes are read
// in turn, column by column (streaming/base/partition/orig.py). Streaming repeats the last sample of a shorter node, so
// that the last column is full; so do we.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/node_reader.hpp"

namespace wt {

class SampleSequence {
 public:
  explicit SampleSequence(std::vector<std::unique_ptr<NodeReader>> nodes);
  std::int64_t next();
  void seek(std::int64_t place);

 private:
  std::vector<std::unique_ptr<NodeReader>> nodes_;
  std::vector<std::int64_t> last_;  ///< id read last of each node
  std::int64_t place_ = 0;
};

/// Places of such a sequence: `samples` rounded up to a multiple of the nodes.
std::int64_t sequence_places(std::int64_t samples, std::int64_t num_canonical_nodes);

/// The sequence of one physical node in device_per_stream batching: its canonical nodes give a sample to each of their
/// `ranks` in turn, and fill up their last turn with samples from shortly before.
class RankedSequence {
 public:
  /// `row`: samples of the longest canonical node of all physical nodes.
  RankedSequence(std::vector<std::unique_ptr<NodeReader>> nodes, std::int64_t row, std::int64_t ranks);
  std::int64_t next();
  void seek(std::int64_t place);

 private:
  /// One canonical node, padded.
  struct PaddedNode {
    std::unique_ptr<NodeReader> reader;
    std::int64_t place = 0;
    std::vector<std::int64_t> recent;  ///< ids of the last places before `place`, enough to repeat them
  };
  std::int64_t next_of(PaddedNode& node) const;
  void seek(PaddedNode& node, std::int64_t place) const;

  std::vector<PaddedNode> nodes_;
  std::int64_t row_, ranks_;
  std::int64_t place_ = 0;
};

/// Places of such a sequence of `nodes` canonical nodes.
std::int64_t ranked_places(std::int64_t row, std::int64_t nodes, std::int64_t ranks);

}  // namespace wt
