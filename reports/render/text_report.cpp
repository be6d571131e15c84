#include "reports/render/text_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr const char *kBold = "1", *kDim = "2", *kPlain = "";

const char* color_of(Status status) {
  static constexpr const char* colors[] = {kPlain, "32", "33", "31"};  // green, yellow, red
  return colors[static_cast<std::size_t>(status)];
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

std::string tame(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = c == '\n' || c == '\t' ? ' ' : '?';
  // C1 controls, U+0080 to U+009F, are encoded as C2 80 to C2 9F: some terminals act on them as on ESC.
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0 && continues(text[i + 1]))
      text.replace(i, 2, "?");
  return text;
}

class TextWriter {
 public:
  explicit TextWriter(const TextOptions& options) : options_(options) {}

  void line(const std::string& text = "", const char* style = kPlain) { out_ += paint(text, style) + "\n"; }

  void wrapped(const std::string& text, std::size_t indent = 0, const char* style = kPlain) {
    for (const std::string& each : lines_of(text, options_.width - std::min(options_.width, indent)))
      line(std::string(indent, ' ') + each, style);
  }

  void table(const Table& table, std::size_t max_rows) {
    if (!table.title.empty()) line(tame(table.title), kBold);
    const std::size_t shown = std::min(table.rows.size(), max_rows);
    std::vector<std::size_t> widths;
    std::vector<std::string> heads;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      heads.push_back(tame(with_unit(table.columns[c].name, table.columns[c].unit)));
      std::size_t width = width_of(heads[c]);
      for (std::size_t r = 0; r < shown; ++r) width = std::max(width, width_of(cell_text(table.rows[r][c])));
      widths.push_back(width);
    }
    row(
        table, widths, [&](std::size_t c) { return heads[c]; }, [](std::size_t) { return kDim; });
    for (std::size_t r = 0; r < shown; ++r)
      row(
          table, widths, [&](std::size_t c) { return cell_text(table.rows[r][c]); },
          [&](std::size_t c) { return color_of(table.rows[r][c].status); });
    if (shown == 0) line("  (no rows)", kDim);
    if (shown < table.rows.size()) line(fmt::format("  ... and {} more", table.rows.size() - shown), kDim);
    if (!table.note.empty()) wrapped(table.note, 2, kDim);
  }

  void operator()(const Table& item) { table(item, item.rows.size()); }
  void operator()(const Chart& item) {
    const Table numbers = chart_table(item, options_.max_points);
    table(numbers, item.kind == ChartKind::timeline ? options_.max_timeline_rows : numbers.rows.size());
  }
  void operator()(const KeyValues& item) { key_values(item, options_.width); }
  /// Values wrap at `page`, aligned below each other.
  void key_values(const KeyValues& item, std::size_t page) {
    if (!item.title.empty()) line(tame(item.title), kBold);
    std::size_t width = 0;
    for (const auto& [key, value] : item.entries) width = std::max(width, width_of(tame(key)));
    const std::size_t beside = width + 4, room = std::max(kLeastRoom, page - std::min(page, beside));
    for (const auto& [key, value] : item.entries) {
      std::string name = tame(key);
      name = "  " + name + std::string(width - width_of(name) + 2, ' ');
      std::vector<std::string> lines{cell_text(value)};
      if (beside + width_of(lines[0]) > kLongestLine) lines = lines_of(lines[0], room);
      for (const std::string& each : lines) {
        line(name + paint(each, color_of(value.status)));
        name.assign(beside, ' ');
      }
    }
  }
  void operator()(const Callout& item) {
    line(tame((item.status == Status::bad    ? "!! "
               : item.status == Status::warn ? "! "
                                             : "") +
              item.title),
         item.status == Status::none ? kBold : color_of(item.status));
    wrapped(item.text, 2);
  }

  std::string take() { return std::move(out_); }

 private:
  static constexpr std::size_t kLeastRoom = 40;     // columns for a value next to its key
  static constexpr std::size_t kLongestLine = 160;  // shorter values are not wrapped, so that scripts can match them

  /// Wraps text to lines of at most `width`. A longer word has its own line.
  static std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
    std::vector<std::string> lines;
    std::istringstream words(tame(text));
    for (std::string word; words >> word;)
      if (!lines.empty() && width_of(lines.back()) + 1 + width_of(word) <= width)
        lines.back() += " " + word;
      else
        lines.push_back(word);
    return lines;
  }

  static std::string cell_text(const Cell& cell) {
    return tame(cell.text) + (cell.evidence ? " (" + to_string(*cell.evidence) + ")" : "");
  }

  std::string paint(const std::string& text, const char* style) const {
    return options_.color && *style && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", style, text) : text;
  }

  template <typename Text, typename Style>
  void row(const Table& table, const std::vector<std::size_t>& widths, Text text, Style style) {
    std::string assembled;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string shown = text(c);
      const std::string fill(widths[c] - width_of(shown), ' ');
      const bool right = table.columns[c].align == Align::right;
      assembled += "  " + (right ? fill : "") + paint(shown, style(c));
      if (!right && c + 1 < widths.size()) assembled += fill;
    }
    line(assembled);
  }

  const TextOptions& options_;
  std::string out_;
};

}  // namespace

bool use_color(Color wanted, int descriptor) {
  if (wanted != Color::automatic) return wanted == Color::always;
  const char *no_color = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  if ((no_color && *no_color) || (term && std::string(term) == "dumb")) return false;
  return isatty(descriptor) == 1;
}

std::string text_table(const Table& table, const TextOptions& options) {
  TextWriter writer(options);
  writer(table);
  return writer.take();
}

std::string text_report(const Report& report, const TextOptions& options) {
  check(report);
  TextWriter writer(options);
  writer.wrapped(report.title, 0, kDim);
  writer.wrapped(report.answer, 0, report.status == Status::none ? kBold : color_of(report.status));
  if (!report.answer_range.empty()) writer.wrapped(report.answer_range);
  for (const Section& section : report.sections) {
    writer.line();
    writer.line(tame(section.title), kBold);
    writer.line(std::string(width_of(tame(section.title)), '-'), kDim);
    for (const std::string& paragraph : section.paragraphs) writer.wrapped(paragraph);
    bool first = section.paragraphs.empty();
    for (const Item& item : section.items) {
      if (!first) writer.line();
      first = false;
      std::visit([&](const auto& shown) { writer(shown); }, item);
    }
  }
  if (!report.provenance.entries.empty()) {
    writer.line();
    writer.line(report.provenance.title.empty() ? "Provenance" : tame(report.provenance.title), kBold);
    // Not wrapped, because a command must be copied in one line.
    writer.key_values({"", report.provenance.entries}, std::numeric_limits<std::size_t>::max());
  }
  return writer.take();
}

}  // namespace wt
