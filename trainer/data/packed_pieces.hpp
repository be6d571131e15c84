// Tokenized pieces of documents, in the documents' order.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/documents.hpp"
#include "trainer/data/finetuning.hpp"
#include "trainer/data/pack.hpp"

namespace wt {

struct PackedPiece {
  std::vector<std::uint32_t> ids;     ///< of the text, including tokens at its document's ends
  std::vector<FinetuningTurn> turns;  ///< of a finetuning example
  std::string text;                   ///< if the sample is the text
  std::string place;
  bool begins = true;
  bool ends = true;
};

class PieceSource {
 public:
  virtual ~PieceSource() = default;
  virtual std::optional<PackedPiece> next() = 0;
  virtual std::int64_t vocabulary() = 0;  ///< 0: no tokens
};

/// Pieces for the options' tokenizer and kind of samples. `documents` must outlive it. Throws as pack_text says.
std::unique_ptr<PieceSource> packed_pieces(DocumentReader& documents, const PackOptions& options);

}  // namespace wt
