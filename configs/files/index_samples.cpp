#include "configs/files/index_samples.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace wt {
namespace {

/// Scans JSON text that arrives in pieces. It tracks braces, brackets and keys, and parses no other value.
class IndexScan {
 public:
  /// Returns false where the text is no index.
  bool take(std::string_view piece) {
    for (std::size_t i = 0; i < piece.size();) {
      if (in_text_)
        i = pass_text(piece, i);
      else if (!take(piece[i++]))
        return false;
    }
    return !failed_;
  }

  std::optional<std::int64_t> sum() const {
    const bool whole = !failed_ && open_.empty() && begun_ && !in_text_ && shards_ > 0;
    return whole ? std::optional(sum_) : std::nullopt;
  }

 private:
  /// Nesting depths of the document, its list of shards and one shard.
  static constexpr std::size_t kDocument = 1, kShards = 2, kShard = 3, kDeepest = 64;

  bool in_shard() const {
    return open_.size() == kShard && of_shards_ && open_[kDocument] == '[' && open_[kShards] == '{';
  }

  /// Skips to the end of a string or of the piece. Returns the next position.
  std::size_t pass_text(std::string_view piece, std::size_t from) {
    if (escaped_) {  // the previous character was a backslash
      escaped_ = false;
      return from + 1;
    }
    const auto end = std::min(piece.find('"', from), piece.size());
    const std::string_view part = piece.substr(from, end - from);
    const auto escape = part.find('\\');
    const std::size_t plain = std::min(escape, part.size());
    if (is_key_ && text_.size() < kLongestKey) text_ += part.substr(0, plain);
    if (escape != std::string_view::npos) {
      text_ += '\\';  // no key of an index contains it
      escaped_ = true;
      return from + escape + 1;
    }
    if (end == piece.size()) return end;
    in_text_ = false;
    return end + 1;
  }

  bool take(char c) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') return end_number();
    if (open_.empty() && (begun_ || c != '{')) return fail();
    switch (c) {
      case '"':
        in_text_ = true;
        text_.clear();
        return true;
      case '{':
      case '[':
        return end_number() && open(c);
      case '}':
      case ']':
        return end_number() && close(c == '}' ? '{' : '[');
      case ':':
        is_key_ = false;
        counts_ = in_shard() && text_ == "samples";
        if (open_.size() == kDocument) of_shards_ = text_ == "shards";
        return true;
      case ',':
        is_key_ = open_.back() == '{';
        return end_number();
      default:
        if (counts_ && number_.size() < kLongestNumber) number_ += c;
        return true;
    }
  }

  bool open(char c) {
    if (open_.size() == kDeepest) return fail();
    open_.push_back(c);
    begun_ = true, counts_ = false, is_key_ = c == '{';
    if (in_shard()) samples_ = -1;
    return true;
  }

  bool close(char opened) {
    if (open_.empty() || open_.back() != opened) return fail();
    if (in_shard()) {
      if (samples_ < 0 || sum_ > std::numeric_limits<std::int64_t>::max() - samples_) return fail();
      sum_ += samples_;
      ++shards_;
    }
    open_.pop_back();
    is_key_ = false;
    return true;
  }

  /// Ends the value of "samples": a whole number of at most 18 digits.
  bool end_number() {
    if (number_.empty()) return true;
    if (number_.size() == kLongestNumber || number_.find_first_not_of("0123456789") != std::string::npos) return fail();
    samples_ = std::stoll(number_);
    number_.clear();
    counts_ = false;
    return true;
  }

  bool fail() {
    failed_ = true;
    return false;
  }

  static constexpr std::size_t kLongestKey = 4096, kLongestNumber = 19;

  std::vector<char> open_;  ///< open braces and brackets
  std::string text_, number_;
  bool begun_ = false, failed_ = false, in_text_ = false, escaped_ = false, is_key_ = false;
  bool of_shards_ = false;  ///< the current value is that of the document's key "shards"
  bool counts_ = false;     ///< the next value is a number of samples
  std::int64_t samples_ = -1, sum_ = 0, shards_ = 0;
};

}  // namespace

std::optional<std::int64_t> samples_in_index(std::istream& in) {
  IndexScan scan;
  std::string piece(1 << 20, '\0');
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (!scan.take(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount())))) return std::nullopt;
  } while (in);
  return scan.sum();
}

}  // namespace wt
