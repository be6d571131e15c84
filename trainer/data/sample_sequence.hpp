// The samples of an epoch, or of one of its streams, in reading order: canonical nodes take turns, column by column
// (streaming/base/partition/orig.py). Like Streaming, it repeats the last sample of a shorter node to fill the last
// column.
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
  std::vector<std::int64_t> last_;  ///< by node, the id that was read last
  std::int64_t place_ = 0;
};

/// Length of such a sequence: `samples` rounded up to a multiple of the nodes.
std::int64_t sequence_places(std::int64_t samples, std::int64_t num_canonical_nodes);

/// The sequence of one physical node in device_per_stream batching. Its canonical nodes give one sample to each of
/// their `ranks` in turn, and fill their last turn with recent samples.
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
    std::vector<std::int64_t> recent;  ///< ids just before `place`, enough to repeat them
  };
  std::int64_t next_of(PaddedNode& node) const;
  void seek(PaddedNode& node, std::int64_t place) const;

  std::vector<PaddedNode> nodes_;
  std::int64_t row_, ranks_;
  std::int64_t place_ = 0;
};

/// Length of such a sequence of `nodes` canonical nodes.
std::int64_t ranked_places(std::int64_t row, std::int64_t nodes, std::int64_t ranks);

}  // namespace wt
