#include "trainer/data/example_packer.hpp"

#include <algorithm>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

namespace wt {

ExamplePacker::ExamplePacker(std::int64_t max_seq_len, std::function<std::int64_t(std::int64_t)> tokens)
    : max_seq_len_(max_seq_len), tokens_(std::move(tokens)) {}

void ExamplePacker::sort_by_tokens() { std::ranges::stable_sort(open_, std::ranges::greater{}, &Sequence::tokens); }

std::vector<PackedExamples> ExamplePacker::pack(std::span<const std::int64_t> examples, std::int64_t sequences) {
  if (std::cmp_less(examples.size() + open_.size(), sequences))
    throw_usage("packing: found {} examples for {} sequences, allowed is one for each; raise packing_ratio",
                examples.size() + open_.size(), sequences);
  std::vector<std::pair<std::int64_t, std::int64_t>> added;  // tokens, example
  for (const std::int64_t id : examples) added.emplace_back(tokens_(id), id);
  std::ranges::stable_sort(added, std::ranges::greater{}, [](const auto& each) { return each.first; });
  for (std::size_t i = 0; i < added.size(); ++i) {
    const auto [tokens, id] = added[i];
    const auto lacking = sequences - static_cast<std::int64_t>(open_.size());
    // If all remaining examples are needed to reach the number of sequences, each gets its own.
    const bool alone = lacking > 0 && std::cmp_equal(added.size() - i, lacking);
    const auto room = std::ranges::find_if(
        open_, [&, size = tokens](const Sequence& s) { return !alone && s.tokens + size <= max_seq_len_; });
    Sequence filled;
    if (room != open_.end()) {
      filled = std::move(*room);
      open_.erase(room);  // moves the extended sequence to the end, where it is tried last
    }
    filled.tokens += tokens;
    filled.examples.push_back(id);
    open_.push_back(std::move(filled));
  }
  sort_by_tokens();
  std::vector<PackedExamples> out;
  for (std::int64_t i = 0; i < sequences; ++i) out.push_back(std::move(open_[static_cast<std::size_t>(i)].examples));
  open_.erase(open_.begin(), open_.begin() + sequences);
  return out;
}

std::vector<PackedExamples> ExamplePacker::waiting() const { return mapped(open_, &Sequence::examples); }

void ExamplePacker::restore(const std::vector<PackedExamples>& waiting) {
  open_.clear();
  for (const PackedExamples& examples : waiting) {
    Sequence& sequence = open_.emplace_back();
    for (const std::int64_t id : examples) sequence.tokens += tokens_(id);
    if (sequence.tokens > max_seq_len_)
      throw_usage(
          "packing: found {} tokens in a sequence that waits, allowed are {} (max_seq_len); resume with the data and "
          "keys of the checkpoint",
          sequence.tokens, max_seq_len_);
    sequence.examples = examples;
  }
}

}  // namespace wt
