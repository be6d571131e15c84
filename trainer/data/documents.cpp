#include "trainer/data/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/lists.hpp"

namespace wt {
namespace {

constexpr std::size_t kPiece = 1 << 20;           // bytes of a text file per piece
constexpr std::size_t kLongestLine = 1ull << 30;  // a JSON line must fit in memory
constexpr std::string_view kBlank = " \t\r\n";

/// The end of a piece of at most `most` bytes: after a line if possible, otherwise after a UTF-8 character.
std::size_t piece_end(std::string_view text, std::size_t most) {
  if (const std::size_t line = text.substr(0, most).rfind('\n'); line != std::string_view::npos && line >= most / 2)
    return line + 1;
  std::size_t end = most;
  while (end > most - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

std::string keys_of(const nlohmann::json& object) {
  return object.empty() ? "no key"
                        : "the keys " + joined(object.items(), ", ", [](const auto& each) { return each.key(); });
}

}  // namespace

DocumentReader::DocumentReader(std::vector<PackInput> inputs, Unit unit) : inputs_(std::move(inputs)), unit_(unit) {
  for (const PackInput& input : inputs_) {
    stored_ += input.stored_bytes;
    if (unit_ == Unit::objects && !is_json_input(input.file))
      throw_usage(
          "{}: found a file of text, allowed for finetuning are JSON lines of prompt and response or of messages; name "
          ".jsonl files",
          input.file.string());
  }
}

bool DocumentReader::open_next() {
  if (next_input_ == inputs_.size()) return false;
  const auto& file = inputs_[next_input_].file;
  file_.emplace(file);
  json_ = is_json_input(file);
  at_end_ = within_ = false;
  buffer_.clear();
  begin_ = 0;
  line_ = element_ = 0;
  handed_out_ = 0;
  return true;
}

void DocumentReader::close() {
  done_ += inputs_[next_input_++].stored_bytes;
  file_.reset();
  ++files_;
}

bool DocumentReader::fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPiece);
  const std::size_t count = file_->read(std::span(buffer_).subspan(before));
  buffer_.resize(before + count);
  at_end_ = count == 0;
  return !at_end_;
}

std::optional<DocumentPiece> DocumentReader::next_piece() {
  // Read more than a piece before returning one, to know whether it is the last.
  while (buffer_.size() - begin_ <= kPiece && fill()) {
  }
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.empty()) return std::nullopt;
  const std::size_t size = rest.size() <= kPiece ? rest.size() : piece_end(rest, kPiece);
  const std::string file = inputs_[next_input_].file.string();
  DocumentPiece piece{std::string(rest.substr(0, size)),
                      within_ ? fmt::format("{}: from byte {}", file, handed_out_) : file, !within_,
                      size == rest.size()};
  begin_ += size;
  handed_out_ += size;
  within_ = !piece.ends;
  return piece;
}

std::optional<DocumentPiece> DocumentReader::from_json(std::string_view json, const std::string& place) {
  const nlohmann::json value = lax_json(json);
  if (!value.is_object())
    throw_usage("{}: found {}, allowed is an object; write one object a line", place,
                value.is_discarded() ? why_discarded(json) : value.type_name());
  if (unit_ == Unit::objects) return DocumentPiece{value.dump(), place};
  const auto text = value.find("text");
  if (text == value.end() || !text->is_string())
    throw_usage(
        "{}: found {}, allowed is an object whose key text holds a text; rename the key, or see `windtunnel data pack "
        "--help` for finetuning",
        place, text == value.end() ? keys_of(value) : fmt::format("text: {}", text->type_name()));
  if (text->get_ref<const std::string&>().empty()) return std::nullopt;
  return DocumentPiece{text->get<std::string>(), place};
}

std::optional<DocumentPiece> DocumentReader::next_line() {
  const std::string file = inputs_[next_input_].file.string();
  while (true) {
    if (!elements_.empty()) {
      const std::string element = std::move(elements_.back());
      elements_.pop_back();
      if (auto piece = from_json(element, fmt::format("{}: element {}", file, ++element_))) return piece;
      ++empty_documents_;
      continue;
    }
    std::size_t end = buffer_.find('\n', begin_);
    for (std::size_t searched = buffer_.size() - begin_; end == std::string::npos && fill();) {
      end = buffer_.find('\n', searched);
      searched = buffer_.size();
      if (searched > kLongestLine)
        throw_usage("{}: line {}: found more than {} bytes, allowed are fewer; write one document a line", file,
                    line_ + 1, kLongestLine);
    }
    if (end == std::string::npos) {
      end = buffer_.size();
      if (begin_ == end) return std::nullopt;
    }
    const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
    const std::size_t first = line.find_first_not_of(kBlank);
    if (++line_ == 1 && first != std::string_view::npos && line[first] == '[') {
      while (fill()) {
      }
      const std::string_view list = std::string_view(buffer_).substr(begin_);
      const auto document = lax_json(list);
      if (!document.is_array())
        throw_usage(
            "{}: found {}, which begins as a list; allowed are one list of objects or one object a line; fix the file",
            file, why_discarded(list));
      for (const auto& element : document) elements_.push_back(element.dump());
      std::ranges::reverse(elements_);
      begin_ = buffer_.size();
      continue;
    }
    const bool blank = first == std::string_view::npos;
    std::optional<DocumentPiece> piece;
    if (!blank) piece = from_json(line, fmt::format("{}: line {}", file, line_));
    begin_ = std::min(end + 1, buffer_.size());
    if (piece) return piece;
    if (!blank) ++empty_documents_;
  }
}

std::optional<DocumentPiece> DocumentReader::next() {
  while (file_ || open_next()) {
    if (std::optional<DocumentPiece> piece = json_ ? next_line() : next_piece()) {
      bytes_ += piece->text.size();
      documents_ += piece->begins ? 1 : 0;
      return piece;
    }
    close();
  }
  return std::nullopt;
}

}  // namespace wt
