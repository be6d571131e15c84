#include "sim/program/build/overlapped_passes.hpp"

#include <algorithm>
#include <utility>

namespace wt {
namespace {

bool exchanges_rows(const Node& node) {
  const Op* op = std::get_if<Op>(&node);
  return op && op->exchanges_rows();
}

/// Cuts a pass behind every exchange of rows, its loops over layers layer by layer.
class Pieces {
 public:
  explicit Pieces(const Loop& pass) : pass_(pass) {
    for (const Node& node : pass.body) {
      if (const Loop* layers = std::get_if<Loop>(&node)) {
        const int step = layers->descending ? -1 : 1;
        for (int i = 0; i < layers->count(); ++i) add_layer(layers->first + i * step, layers->body);
      } else {
        piece_.push_back(node);
      }
    }
    end_piece();
  }

  std::vector<Loop> take() { return std::move(pieces_); }

 private:
  void add_layer(int layer, const std::vector<Node>& body) {
    std::vector<Node> ops;
    const auto keep = [&] {
      if (!ops.empty()) piece_.emplace_back(Loop{Loop::Index::layer, layer, layer, false, std::exchange(ops, {})});
    };
    for (const Node& node : body) {
      ops.push_back(node);
      if (exchanges_rows(node)) keep(), end_piece();
    }
    keep();
  }

  void end_piece() {
    if (!piece_.empty())
      pieces_.push_back({Loop::Index::microbatch, pass_.first, pass_.last, false, std::exchange(piece_, {})});
  }

  const Loop& pass_;
  std::vector<Node> piece_;
  std::vector<Loop> pieces_;
};

}  // namespace

std::vector<Node> overlapped(const Loop& one, const Loop& other) {
  const std::vector<Loop> first = Pieces(one).take(), second = Pieces(other).take();
  std::vector<Node> out;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.emplace_back(first[i]);
    if (i < second.size()) out.emplace_back(second[i]);
  }
  return out;
}

}  // namespace wt
