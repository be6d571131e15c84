#include "trainer/data/sample_sequence.hpp"

#include <algorithm>
#include <utility>

#include "configs/base/number.hpp"

namespace wt {

SampleSequence::SampleSequence(std::vector<std::unique_ptr<NodeReader>> nodes)
    : nodes_(std::move(nodes)), last_(nodes_.size()) {}

std::int64_t SampleSequence::next() {
  const auto nodes = static_cast<std::int64_t>(nodes_.size());
  const std::int64_t column = place_ / nodes;
  const auto node = static_cast<std::size_t>(place_ % nodes);
  ++place_;
  if (column < nodes_[node]->size()) last_[node] = nodes_[node]->next();
  return last_[node];
}

void SampleSequence::seek(std::int64_t place) {
  const auto nodes = static_cast<std::int64_t>(nodes_.size());
  for (std::int64_t node = 0; node < nodes; ++node) {
    NodeReader& reader = *nodes_[static_cast<std::size_t>(node)];
    const std::int64_t read = place / nodes + (node < place % nodes ? 1 : 0);
    const std::int64_t at = std::clamp<std::int64_t>(read - 1, 0, reader.size() - 1);
    reader.seek(at);
    if (read > 0) last_[static_cast<std::size_t>(node)] = reader.next();
  }
  place_ = place;
}

std::int64_t sequence_places(std::int64_t samples, std::int64_t num_canonical_nodes) {
  return ceil_div(samples, num_canonical_nodes) * num_canonical_nodes;
}

RankedSequence::RankedSequence(std::vector<std::unique_ptr<NodeReader>> nodes, std::int64_t row, std::int64_t ranks)
    : row_(row), ranks_(ranks) {
  for (auto& reader : nodes) nodes_.push_back({std::move(reader), 0, {}});
}

std::int64_t RankedSequence::next_of(PaddedNode& node) const {
  const std::int64_t missing = (ranks_ - row_ % ranks_) % ranks_;
  const auto before = static_cast<std::int64_t>(node.recent.size());  // `recent` has places from place - before on
  const auto id_at = [&](std::int64_t place) {
    return node.recent[static_cast<std::size_t>(before - (node.place - place))];
  };
  std::int64_t id = 0;
  if (node.place < node.reader->size()) {
    id = node.reader->next();
  } else if (node.place < row_) {
    id = id_at(node.place - 1);
  } else if (const std::int64_t more = node.place - row_; ranks_ + missing - 1 <= row_) {
    id = id_at(row_ - ranks_ - missing + 1 + more);
  } else {
    id = id_at(more % row_);
  }
  ++node.place;
  node.recent.push_back(id);
  if (const auto kept = static_cast<std::size_t>(4 * ranks_); node.recent.size() > 2 * kept)
    node.recent.erase(node.recent.begin(), node.recent.end() - static_cast<std::ptrdiff_t>(kept));
  return id;
}

void RankedSequence::seek(PaddedNode& node, std::int64_t place) const {
  node.place = std::clamp<std::int64_t>(std::min(place, node.reader->size()) - 4 * ranks_, 0, node.reader->size());
  node.recent.clear();
  node.reader->seek(node.place);
  while (node.place < place) next_of(node);
}

std::int64_t RankedSequence::next() {
  const auto nodes = static_cast<std::int64_t>(nodes_.size());
  return next_of(nodes_[static_cast<std::size_t>(place_++ / ranks_ % nodes)]);
}

void RankedSequence::seek(std::int64_t place) {
  const auto nodes = static_cast<std::int64_t>(nodes_.size());
  const std::int64_t turns = place / (ranks_ * nodes), rest = place % (ranks_ * nodes);
  for (std::int64_t node = 0; node < nodes; ++node)
    seek(nodes_[static_cast<std::size_t>(node)],
         turns * ranks_ + std::clamp<std::int64_t>(rest - node * ranks_, 0, ranks_));
  place_ = place;
}

std::int64_t ranked_places(std::int64_t row, std::int64_t nodes, std::int64_t ranks) {
  return ceil_div(row, ranks) * ranks * nodes;
}

}  // namespace wt
