// Packs examples into sequences like LLM Foundry's collator (0.22.0, data/packing.py). It packs the whole global batch
// instead of one rank's, so that the result does not depend on the layout.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace wt {

/// Examples that share a sequence, in order.
using PackedExamples = std::vector<std::int64_t>;

class ExamplePacker {
 public:
  /// `tokens` returns an example's length, at most max_seq_len.
  ExamplePacker(std::int64_t max_seq_len, std::function<std::int64_t(std::int64_t id)> tokens);

  /// The next `sequences`, from at least as many new `examples`. Examples are placed longest first, each in the first
  /// sequence with room. The fullest sequences are returned; the others wait, and the next call fills them further. No
  /// example is cut, lost or used twice.
  std::vector<PackedExamples> pack(std::span<const std::int64_t> examples, std::int64_t sequences);

  /// The waiting sequences, fullest first: the packer's whole state between calls.
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
