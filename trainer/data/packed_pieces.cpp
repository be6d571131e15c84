#include "trainer/data/packed_pieces.hpp"

#include <sched.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/data/tokenizer_pool.hpp"

namespace wt {
namespace {

constexpr std::size_t kBatchBytes = 1 << 18;  // about 0.1 s for a tokenizer
constexpr std::size_t kBatchTexts = 2048;

int allowed_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

std::vector<std::uint32_t> bytes_of(const std::string& text, bool ends) {
  std::vector<std::uint32_t> ids;
  ids.reserve(text.size() + 1);
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  if (ends) ids.push_back(kEndOfText);
  return ids;
}

/// Untokenized text.
class TextPieces : public PieceSource {
 public:
  explicit TextPieces(DocumentReader& documents) : documents_(documents) {}
  std::optional<PackedPiece> next() override {
    auto piece = documents_.next();
    if (!piece) return std::nullopt;
    return PackedPiece{{}, {}, std::move(piece->text), std::move(piece->place), piece->begins, piece->ends};
  }
  std::int64_t vocabulary() override { return 0; }

 private:
  DocumentReader& documents_;
};

class BytePieces : public PieceSource {
 public:
  BytePieces(DocumentReader& documents, bool finetune) : documents_(documents), finetune_(finetune) {}
  std::optional<PackedPiece> next() override {
    const auto piece = documents_.next();
    if (!piece) return std::nullopt;
    PackedPiece packed{{}, {}, {}, piece->place, piece->begins, piece->ends};
    if (finetune_)
      packed.turns = turns_of(*piece);
    else
      packed.ids = bytes_of(piece->text, piece->ends);
    return packed;
  }
  std::int64_t vocabulary() override { return kByteVocabulary; }

 private:
  static std::vector<FinetuningTurn> turns_of(const DocumentPiece& piece) {
    const FinetuningExample example = finetuning_example(nlohmann::json::parse(piece.text), piece.place);
    const std::vector<FinetuningTexts> texts = example.messages.empty()
                                                   ? std::vector<FinetuningTexts>{{example.prompt, example.response}}
                                                   : chat_turns(example.messages);
    return mapped(texts, [&](const FinetuningTexts& text) {
      return FinetuningTurn{bytes_of(text.prompt, false), bytes_of(text.response, &text == &texts.back())};
    });
  }
  DocumentReader& documents_;
  bool finetune_;
};

/// Batches of pieces that several processes tokenize, returned in order.
class TokenizerPieces : public PieceSource {
 public:
  TokenizerPieces(DocumentReader& documents, const PackOptions& options)
      : documents_(documents),
        finetune_(options.samples == SampleKind::finetune),
        pool_({options.tokenizer, options.bos_text, options.eos_text},
              options.processes > 0 ? options.processes : allowed_cores()) {
    const TokenizerFacts& facts = pool_.facts();
    const bool separated = !facts.prefix.empty() || !facts.suffix.empty() || !facts.bos.empty() || !facts.eos.empty();
    const bool joined = options.samples == SampleKind::overlapping || options.samples == SampleKind::concat;
    if (joined && !separated)
      throw_usage(
          "--tokenizer {}: found one that puts no token between documents, allowed is one that does; say what ends a "
          "document, such as --eos-text '<|endoftext|>'",
          options.tokenizer);
  }

  std::optional<PackedPiece> next() override {
    while (ready_.empty()) {
      while (batches_.size() < 2 * pool_.processes() && send()) {
      }
      if (batches_.empty()) return std::nullopt;
      receive();
    }
    PackedPiece piece = std::move(ready_.front());
    ready_.pop_front();
    return piece;
  }
  std::int64_t vocabulary() override { return pool_.facts().vocabulary; }

 private:
  struct Batch {
    std::vector<PackedPiece> pieces;
    std::vector<std::size_t> texts;  ///< number of texts by piece
    std::vector<TokenizerText::Kind> kinds;
    std::future<std::vector<TokenLists>> ids;
  };

  bool send() {
    using Kind = TokenizerText::Kind;
    Batch batch;
    std::vector<TokenizerText> texts;
    std::size_t bytes = 0;
    while (bytes < kBatchBytes && texts.size() < kBatchTexts) {
      auto piece = documents_.next();
      if (!piece) break;
      bytes += piece->text.size();
      const std::size_t before = texts.size();
      if (finetune_) {
        add_example(*piece, texts);
      } else {
        texts.push_back(
            {piece->begins && piece->ends ? Kind::special : Kind::plain, std::move(piece->text), piece->place});
      }
      batch.texts.push_back(texts.size() - before);
      batch.kinds.push_back(texts.back().kind);
      batch.pieces.push_back({{}, {}, {}, std::move(piece->place), piece->begins, piece->ends});
    }
    if (texts.empty()) return false;
    batch.ids = pool_.encode(std::move(texts));
    batches_.push_back(std::move(batch));
    return true;
  }

  void add_example(const DocumentPiece& piece, std::vector<TokenizerText>& texts) {
    using Kind = TokenizerText::Kind;
    const auto object = nlohmann::json::parse(piece.text);
    const FinetuningExample example = finetuning_example(object, piece.place);
    if (example.messages.empty()) {
      texts.push_back({Kind::special, example.prompt, piece.place});
      texts.push_back({Kind::special, example.response, piece.place});
    } else if (pool_.facts().chat_template) {
      texts.push_back({Kind::conversation, object["messages"].dump(), piece.place});
    } else {
      for (const FinetuningTexts& turn : chat_turns(example.messages)) {
        texts.push_back({Kind::plain, turn.prompt, piece.place});
        texts.push_back({Kind::plain, turn.response, piece.place});
      }
    }
  }

  void receive() {
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    std::vector<TokenLists> all = batch.ids.get();
    auto lists = all.begin();
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
      PackedPiece& piece = batch.pieces[i];
      TokenLists own;
      for (std::size_t k = 0; k < batch.texts[i]; ++k, ++lists)
        own.insert(own.end(), std::make_move_iterator(lists->begin()), std::make_move_iterator(lists->end()));
      if (finetune_)
        set_turns(piece, std::move(own), batch.kinds[i] == TokenizerText::Kind::special);
      else
        set_ids(piece, std::move(own.front()));
      ready_.push_back(std::move(piece));
    }
  }

  void set_turns(PackedPiece& piece, TokenLists lists, bool special) {
    for (std::size_t k = 0; k + 1 < lists.size(); k += 2)
      piece.turns.push_back({std::move(lists[k]), std::move(lists[k + 1])});
    const auto& bos = pool_.facts().bos_id;
    for (FinetuningTurn& turn : piece.turns) {  // an answer has no begin-of-text token
      const bool twice = special && bos && !turn.input_ids.empty() && !turn.labels.empty() &&
                         turn.input_ids.front() == *bos && turn.labels.front() == *bos;
      if (twice) turn.labels.erase(turn.labels.begin());
    }
  }

  void set_ids(PackedPiece& piece, std::vector<std::uint32_t> ids) {
    const TokenizerFacts& facts = pool_.facts();
    const auto add = [&](const std::vector<std::uint32_t>& more) {
      piece.ids.insert(piece.ids.end(), more.begin(), more.end());
    };
    const bool whole = piece.begins && piece.ends;  // then the tokenizer has added its special tokens
    if (piece.begins) add(facts.bos);
    if (piece.begins && !whole) add(facts.prefix);
    add(ids);
    if (piece.ends && !whole) add(facts.suffix);
    if (piece.ends) add(facts.eos);
  }

  DocumentReader& documents_;
  bool finetune_;
  std::deque<Batch> batches_;
  std::deque<PackedPiece> ready_;
  TokenizerPool pool_;
};

}  // namespace

std::unique_ptr<PieceSource> packed_pieces(DocumentReader& documents, const PackOptions& options) {
  if (options.samples == SampleKind::text) return std::make_unique<TextPieces>(documents);
  if (!options.tokenizer.empty()) return std::make_unique<TokenizerPieces>(documents, options);
  return std::make_unique<BytePieces>(documents, options.samples == SampleKind::finetune);
}

}  // namespace wt
