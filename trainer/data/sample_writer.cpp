#include "trainer/data/sample_writer.hpp"

#include "configs/base/error.hpp"
#include "configs/base/utf8.hpp"

namespace wt {
namespace {

bool fits_u16(std::int64_t vocabulary) { return vocabulary <= 1 << 16; }

std::map<std::string, std::string> columns_for(SampleKind kind, std::int64_t vocabulary) {
  if (kind == SampleKind::text) return {{"text", "str"}};
  if (kind == SampleKind::finetune) return {{"turns", "json"}};
  return {{kTokensColumn, fits_u16(vocabulary) ? "ndarray:uint16" : "ndarray:int32"}};
}

}  // namespace

SampleWriter::SampleWriter(const std::filesystem::path& out, const PackOptions& options, std::int64_t vocabulary)
    : kind_(options.samples),
      sample_size_(static_cast<std::size_t>(options.seq_len) + (kind_ == SampleKind::overlapping ? 1 : 0)),
      seq_len_(options.seq_len),
      wrap_(options.wrap),
      wide_(!fits_u16(vocabulary)),
      writer_(out, columns_for(kind_, vocabulary), options.writer) {}

void SampleWriter::write_ids() {
  if (wide_) {
    const std::string payload = encode_mds_tokens(sample_);
    writer_.write({&payload, 1});
  } else {
    narrow_.assign(sample_.begin(), sample_.end());
    writer_.write_tokens(narrow_);
  }
  ++samples_;
}

void SampleWriter::cut(const PackedPiece& piece) {
  for (const std::uint32_t id : piece.ids) {
    if (skipping_) {
      ++skipped_;
      continue;
    }
    sample_.push_back(static_cast<std::int32_t>(id));
    if (sample_.size() < sample_size_) continue;
    write_ids();
    if (!wrap_) {
      sample_.clear();
      skipping_ = true;
    } else if (kind_ == SampleKind::overlapping) {
      sample_.assign(1, static_cast<std::int32_t>(id));
    } else {
      sample_.clear();
    }
  }
  if (piece.ends) skipping_ = false;
}

void SampleWriter::write_text(const std::string& text, const std::string& place) {
  if (!is_utf8(text))  // required by the encoding str
    throw_usage("{}: found bytes that are no UTF-8, allowed is UTF-8 in the column text; convert the file", place);
  writer_.write({&text, 1});
  ++samples_;
}

void SampleWriter::write_turns(const PackedPiece& piece) {
  for (const FinetuningTurn& turn : piece.turns)
    tokens_ += static_cast<std::int64_t>(turn.input_ids.size() + turn.labels.size());
  if (!can_be_learned(piece.turns, seq_len_)) {
    ++dropped_documents_;
    return;
  }
  const std::string payload = encode_turns(piece.turns);
  writer_.write({&payload, 1});
  ++samples_;
}

void SampleWriter::add(PackedPiece piece) {
  tokens_ += static_cast<std::int64_t>(piece.ids.size());
  switch (kind_) {
    case SampleKind::overlapping:
    case SampleKind::concat:
      return cut(piece);
    case SampleKind::document:
      sample_.insert(sample_.end(), piece.ids.begin(), piece.ids.end());
      if (!piece.ends) return;
      if (!sample_.empty()) write_ids();
      sample_.clear();
      return;
    case SampleKind::text:
      text_ += piece.text;
      if (!piece.ends) return;
      write_text(text_, piece.place);
      text_.clear();
      return;
    case SampleKind::finetune:
      return write_turns(piece);
  }
}

std::int64_t SampleWriter::dropped_tokens() const {
  if (kind_ == SampleKind::overlapping && wrap_ && samples_ > 0)
    return static_cast<std::int64_t>(sample_.size()) - 1 + skipped_;  // the first token was already predicted
  return static_cast<std::int64_t>(sample_.size()) + skipped_;
}

}  // namespace wt
