// py1br: pieces are concatenated, and samples are shuffled in blocks of random size and start.
#include <algorithm>

#include "trainer/data/shuffle_readers.hpp"

namespace wt {
namespace {

/// Places [begin, end) of a node.
struct ShuffleBlock {
  std::int64_t begin = 0, end = 0;
  NumpyRandom random;  ///< state before the block is shuffled
};

class BlockReader : public NodeReader {
 public:
  BlockReader(Units units, NodePieces pieces, std::vector<ShuffleBlock> blocks, std::vector<std::int64_t> places)
      : NodeReader(places.back()),
        units_(std::move(units)),
        pieces_(std::move(pieces)),
        blocks_(std::move(blocks)),
        places_(std::move(places)) {}

 protected:
  std::int64_t go_back(std::int64_t place) override {
    window_.clear();
    // The first blocks may overlap; later ones are consecutive.
    next_ = 0;
    for (std::size_t i = 1; i < blocks_.size() && blocks_[i].begin <= place; ++i)
      if (blocks_[i].begin == blocks_[i - 1].end) next_ = i;
    base_ = next_ == 0 ? 0 : blocks_[next_].begin;
    next_piece_ = static_cast<std::size_t>(std::ranges::upper_bound(places_, base_) - places_.begin()) - 1;
    if (base_ < places_.back()) {
      append_piece(*units_, pieces_[next_piece_], window_);
      window_.erase(window_.begin(), window_.begin() + (base_ - places_[next_piece_]));
      ++next_piece_;
    }
    return base_;
  }

  void make(std::vector<std::int64_t>& ids) override {
    ShuffleBlock& block = blocks_[next_++];
    const bool last = next_ == blocks_.size();
    const std::int64_t final = last ? size() : blocks_[next_].begin;  // no later block begins before this
    fill(std::max(block.end, final));
    NumpyRandom random = block.random;
    random.shuffle(std::span(window_).subspan(static_cast<std::size_t>(block.begin - base_),
                                              static_cast<std::size_t>(block.end - block.begin)));
    const auto stop = window_.begin() + (final - base_);
    ids.insert(ids.end(), window_.begin(), stop);
    window_.erase(window_.begin(), stop);
    base_ = final;
  }

 private:
  void fill(std::int64_t end) {
    while (base_ + static_cast<std::int64_t>(window_.size()) < end)
      append_piece(*units_, pieces_[next_piece_++], window_);
  }

  Units units_;
  NodePieces pieces_;
  std::vector<ShuffleBlock> blocks_;
  std::vector<std::int64_t> places_;
  std::vector<std::int64_t> window_;  ///< ids from position base_ on
  std::int64_t base_ = 0;
  std::size_t next_ = 0, next_piece_ = 0;
};

}  // namespace

NodeReaders read_py1br(const Units& units, const ShuffleOptions& options) {
  NumpyRandom random = epoch_random(options);
  std::vector<NodePieces> nodes = deal_and_shuffle(units, options, random);
  const std::int64_t block_size = effective_block_size(options);
  const auto stagger_end = static_cast<std::int64_t>(0.75 * static_cast<double>(block_size));
  std::vector<std::int64_t> staggers;
  for (std::size_t i = 0; i < nodes.size(); ++i) staggers.push_back(random.integers(0, stagger_end));
  NodeReaders out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::int64_t> places = piece_places(nodes[i]);
    const std::int64_t end = places.back();
    std::vector<ShuffleBlock> blocks;  // the sizes of all blocks are drawn before the first one is shuffled
    // Streaming starts every block `stagger` before the sum of the earlier blocks' sizes. Blocks cut at the node's
    // begin are shorter, so that the next block overlaps them.
    for (std::int64_t reached = 0; reached < end;) {
      const std::int64_t size = draw_block(block_size, random);
      blocks.push_back(
          {std::max<std::int64_t>(reached - staggers[i], 0), std::min(reached + size - staggers[i], end), random});
      reached += blocks.back().end - blocks.back().begin;
    }
    for (ShuffleBlock& block : blocks) {
      block.random = random;
      random.skip_shuffle(block.end - block.begin);
    }
    out.push_back(std::make_unique<BlockReader>(units, std::move(nodes[i]), std::move(blocks), std::move(places)));
  }
  return out;
}

}  // namespace wt
