// py1s, py2s and no shuffle: pieces are concatenated, and samples stay inside their piece.
#include <algorithm>

#include "configs/base/lists.hpp"
#include "trainer/data/shuffle_readers.hpp"

namespace wt {
namespace {

struct PieceDraws {
  UnitPiece piece;
  NumpyRandom epoch;  ///< state before the piece's samples are shuffled
};

class PieceReader : public NodeReader {
 public:
  /// `run`: states before the samples of each unit were shuffled for the whole run (py2s); null: no such shuffle.
  PieceReader(Units units, std::vector<PieceDraws> pieces, std::vector<std::int64_t> places, bool shuffle,
              std::shared_ptr<const std::vector<NumpyRandom>> run)
      : NodeReader(places.back()),
        units_(std::move(units)),
        pieces_(std::move(pieces)),
        places_(std::move(places)),
        shuffle_(shuffle),
        run_(std::move(run)) {}

 protected:
  std::int64_t go_back(std::int64_t place) override {
    next_ = static_cast<std::size_t>(std::ranges::upper_bound(places_, place) - places_.begin()) - 1;
    next_ = std::min(next_, pieces_.empty() ? 0 : pieces_.size() - 1);
    return places_[next_];
  }
  void make(std::vector<std::int64_t>& ids) override {
    auto& [piece, epoch] = pieces_[next_++];
    const std::size_t first = ids.size();
    if (run_) {
      units_->append_ids(piece.unit, ids);
      NumpyRandom run = (*run_)[piece.unit];
      run.shuffle(std::span(ids).subspan(first));
      ids.resize(first + static_cast<std::size_t>(piece.end));
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(first),
                ids.begin() + static_cast<std::ptrdiff_t>(first) + piece.begin);
    } else {
      append_piece(*units_, piece, ids);
    }
    NumpyRandom random = epoch;
    if (shuffle_) random.shuffle(std::span(ids).subspan(first));
  }

 private:
  Units units_;
  std::vector<PieceDraws> pieces_;
  std::vector<std::int64_t> places_;
  bool shuffle_;
  std::shared_ptr<const std::vector<NumpyRandom>> run_;
  std::size_t next_ = 0;
};

}  // namespace

NodeReaders read_in_order(const Units& units, const ShuffleOptions& options) {
  NodeReaders out;
  for (const NodePieces& node : deal_units(*units, options.num_canonical_nodes, nullptr)) {
    auto pieces = mapped(node, [](const UnitPiece& piece) { return PieceDraws{piece, NumpyRandom(0)}; });
    out.push_back(std::make_unique<PieceReader>(units, std::move(pieces), piece_places(node), false, nullptr));
  }
  return out;
}

NodeReaders read_py1s(const Units& units, const ShuffleOptions& options) {
  NumpyRandom epoch = epoch_random(options);
  NodeReaders out;
  for (const NodePieces& node : deal_and_shuffle(units, options, epoch)) {
    std::vector<PieceDraws> pieces;
    for (const UnitPiece& piece : node) {
      pieces.push_back({piece, epoch});
      epoch.skip_shuffle(piece.size());
    }
    out.push_back(std::make_unique<PieceReader>(units, std::move(pieces), piece_places(node), true, nullptr));
  }
  return out;
}

NodeReaders read_py2s(const Units& units, const ShuffleOptions& options) {
  NumpyRandom run(options.seed), epoch = epoch_random(options);
  std::vector<std::size_t> order(units->units());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  run.shuffle(std::span(order));
  auto runs = std::make_shared<std::vector<NumpyRandom>>(order.size(), run);
  for (const std::size_t unit : order) {
    (*runs)[unit] = run;
    run.skip_shuffle(units->samples_of(unit));
  }
  NodeReaders out;
  for (NodePieces& node : cut_units(*units, order, options.num_canonical_nodes)) {
    epoch.shuffle(std::span(node));
    std::vector<PieceDraws> pieces;
    for (const UnitPiece& piece : node) {
      pieces.push_back({piece, epoch});
      epoch.skip_shuffle(piece.size());
    }
    out.push_back(std::make_unique<PieceReader>(units, std::move(pieces), piece_places(node), true, runs));
  }
  return out;
}

}  // namespace wt
