// py1e: every sample moves randomly around its position, and the node is sorted by the resulting positions.
#include <algorithm>
#include <limits>

#include "trainer/data/shuffle_readers.hpp"

namespace wt {
namespace {

/// A piece with its random draws.
struct ExpandedPiece {
  UnitPiece piece;
  double low = 0, high = 0;  ///< smallest and largest shift of its samples, in places
  NumpyRandom order;         ///< state before its samples are shuffled
  NumpyRandom shifts;        ///< state before its shifts are drawn
};

struct MovedSample {
  double place = 0;
  std::int64_t id = 0;
};

class ExpandedReader : public NodeReader {
 public:
  ExpandedReader(Units units, std::vector<ExpandedPiece> pieces, std::vector<std::int64_t> places)
      : NodeReader(places.back()),
        units_(std::move(units)),
        pieces_(std::move(pieces)),
        places_(std::move(places)),
        later_(pieces_.size() + 1, std::numeric_limits<double>::infinity()) {
    for (std::size_t i = pieces_.size(); i-- > 0;)
      later_[i] = std::min(later_[i + 1], static_cast<double>(places_[i]) + pieces_[i].low);
  }

 protected:
  /// Goes to the begin of the last piece for which all samples of earlier pieces are read before `place`: these move at
  /// most to `reached`, and pieces from `clear` on have no samples before that.
  std::int64_t go_back(std::int64_t place) override {
    std::size_t start = 0;
    double reached = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      reached = std::max(reached, static_cast<double>(places_[i + 1]) + pieces_[i].high);
      const auto clear = std::ranges::lower_bound(later_, reached) - later_.begin();
      if (places_[static_cast<std::size_t>(clear)] > place) break;
      start = i + 1;
    }
    next_ = start;
    pending_.clear();
    return places_[start];
  }

  void make(std::vector<std::int64_t>& ids) override {
    // Sort only when a quarter of the waiting samples is new.
    const std::size_t enough = std::max<std::size_t>(pending_.size() / 4, 1 << 12);
    for (const std::size_t before = pending_.size(); next_ < pieces_.size();) {
      load(pieces_[next_], places_[next_]);
      ++next_;
      if (pending_.size() >= before + enough && pending_.front().place < later_[next_]) break;
    }
    const auto stop = std::stable_partition(pending_.begin(), pending_.end(),
                                            [&](const MovedSample& s) { return s.place < later_[next_]; });
    std::stable_sort(pending_.begin(), stop,
                     [](const MovedSample& a, const MovedSample& b) { return a.place < b.place; });
    for (auto sample = pending_.begin(); sample != stop; ++sample) ids.push_back(sample->id);
    pending_.erase(pending_.begin(), stop);
  }

 private:
  void load(const ExpandedPiece& piece, std::int64_t at) {
    ids_.clear();
    append_piece(*units_, piece.piece, ids_);
    NumpyRandom order = piece.order, shifts = piece.shifts;
    order.shuffle(std::span(ids_));
    for (const std::int64_t id : ids_)
      pending_.push_back({static_cast<double>(at++) + shifts.uniform(piece.low, piece.high), id});
  }

  Units units_;
  std::vector<ExpandedPiece> pieces_;
  std::vector<std::int64_t> places_;
  std::vector<double> later_;  ///< smallest position of a sample in this piece or any later one
  std::vector<MovedSample> pending_;
  std::vector<std::int64_t> ids_;
  std::size_t next_ = 0;
};

}  // namespace

NodeReaders read_py1e(const Units& units, const ShuffleOptions& options) {
  NumpyRandom random = epoch_random(options);
  const std::vector<NodePieces> nodes = deal_and_shuffle(units, options, random);
  const std::int64_t block_size = effective_block_size(options);
  NodeReaders out;
  for (const NodePieces& node : nodes) {
    std::vector<std::int64_t> places = piece_places(node);
    const auto node_size = static_cast<double>(places.back());
    std::vector<ExpandedPiece> pieces;
    pieces.reserve(node.size());
    for (const UnitPiece& piece : node) {
      pieces.push_back({piece, 0, 0, random, random});
      random.skip_shuffle(piece.size());
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto size = static_cast<double>(pieces[i].piece.size()), begin = static_cast<double>(places[i]);
      const double reach = std::max((static_cast<double>(draw_block(block_size, random)) - size) / 2, 0.0);
      pieces[i].low = std::max(-reach, -begin);
      pieces[i].high = std::min(reach, node_size - begin - size);
      pieces[i].shifts = random;
      random.skip64(static_cast<std::uint64_t>(pieces[i].piece.size()));
    }
    out.push_back(std::make_unique<ExpandedReader>(units, std::move(pieces), std::move(places)));
  }
  return out;
}

}  // namespace wt
