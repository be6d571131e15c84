#include "sim/program/compose/overlapped_passes.hpp"

#include <utility>

#include "sim/program/walk.hpp"

namespace wt {
namespace {

bool exchanges_rows(const Node& node) {
  const Op* op = std::get_if<Op>(&node);
  return op && op->exchanges_rows();
}

/// Loops over layers are cut layer by layer.
class Pieces {
 public:
  explicit Pieces(const Body& pass) {
    for (const Node& node : pass) {
      if (const Loop* layers = std::get_if<Loop>(&node)) {
        for (const int layer : rounds_of(*layers)) add_layer(layer, layers->body);
      } else {
        piece_.push_back(node);
      }
    }
    end_piece();
  }

  std::vector<Body> take() { return std::move(pieces_); }

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
    if (!piece_.empty()) pieces_.emplace_back(std::exchange(piece_, {}));
  }

  std::vector<Node> piece_;
  std::vector<Body> pieces_;
};

}  // namespace

std::vector<Body> pieces_of(const Body& pass) { return Pieces(pass).take(); }

}  // namespace wt
