// Packs examples into sequences, as LLM Foundry's collator does (0.22.0, data/packing.py), of the whole global batch in
// place of one rank's: what is packed does not depend on the layout.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace wt {

/// Examples that share a sequence, in their order.
using PackedExamples = std::vector<std::int64_t>;

class ExamplePacker {
 public:
  /// `tokens` of an example, at most max_seq_len.
  ExamplePacker(std::int64_t max_seq_len, std::function<std::int64_t(std::int64_t id)> tokens);

  /// The next `sequences` of them, of at least as many new `examples`: longest first, each in the first sequence that
  /// has room, and the fullest sequences are taken. The others wait, and are filled up by the next call. No example is
  /// cut, or lost, or in two of them.
  std::vector<PackedExamples> pack(std::span<const std::int64_t> examples, std::int64_t sequences);

  /// What waits, fullest first: all that the packer knows from one call to the next.
  std::vector<PackedExamples> waiting() const;
  /// Throws Error{usage} where a sequence holds more than max_seq_len tokens.
  void restore(const std::vector<PackedExamples>& waiting);

 private:
  struct Sequence {
    std::int64_t tokens = 0;
    PackedExamples examples;
  };
  void sort_by_tokens();

  std::int64_t max_seq_len_;
  std::function<std::int64_t(std::int64_t)> tokens_;
  std::vector<Sequence> open_;
};

}  // namespace wt
