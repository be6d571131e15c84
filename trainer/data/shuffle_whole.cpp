// naive: one permutation of all samples, which is only known when it is complete.
#include "trainer/data/shuffle_readers.hpp"

namespace wt {
namespace {

class WholeReader : public NodeReader {
 public:
  WholeReader(std::shared_ptr<const std::vector<std::int64_t>> ids, std::int64_t begin, std::int64_t end)
      : NodeReader(end - begin), ids_(std::move(ids)), begin_(begin) {}

 protected:
  std::int64_t go_back(std::int64_t place) override { return next_ = place; }
  void make(std::vector<std::int64_t>& ids) override {
    ids.push_back((*ids_)[static_cast<std::size_t>(begin_ + next_++)]);
  }

 private:
  std::shared_ptr<const std::vector<std::int64_t>> ids_;
  std::int64_t begin_, next_ = 0;
};

}  // namespace

NodeReaders read_naive(const Units& units, const ShuffleOptions& options) {
  auto ids = std::make_shared<std::vector<std::int64_t>>();
  ids->reserve(static_cast<std::size_t>(units->samples()));
  for (std::size_t unit = 0; unit < units->units(); ++unit) units->append_ids(unit, *ids);
  NumpyRandom random = epoch_random(options);
  random.shuffle(std::span(*ids));
  NodeReaders out;
  const std::int64_t nodes = options.num_canonical_nodes;
  for (std::int64_t node = 0; node < nodes; ++node)
    out.push_back(
        std::make_unique<WholeReader>(ids, units->samples() * node / nodes, units->samples() * (node + 1) / nodes));
  return out;
}

}  // namespace wt
