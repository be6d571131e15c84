#include "reports/render/text_report.hpp"

#include <algorithm>
#include <limits>

#include "configs/base/error.hpp"
#include "reports/render/column_blocks.hpp"
#include "reports/render/terminal.hpp"
#include "reports/render/text_lines.hpp"

namespace wt {
namespace {

constexpr const char *kBold = "1", *kDim = "2", *kPlain = "";

const char* color_of(Status status) {
  static constexpr const char* colors[] = {kPlain, "32", "33", "31"};  // green, yellow, red
  return colors[static_cast<std::size_t>(status)];
}

class TextWriter {
 public:
  explicit TextWriter(const TextOptions& options) : options_(options) {}

  void line(const std::string& text = "", const char* style = kPlain) { out_ += paint(text, style) + "\n"; }

  void wrapped(const std::string& text, std::size_t indent = 0, const char* style = kPlain) {
    for (const std::string& each : wrapped_lines(text, options_.width - std::min(options_.width, indent)))
      line(std::string(indent, ' ') + each, style);
  }

  void table(const Table& table, std::size_t max_rows) {
    if (!table.title.empty()) title(table.title);
    const std::size_t shown = std::min(table.rows.size(), max_rows);
    if (options_.table_width == 0) {
      rows(table, shown, whole_columns(table, shown));
    } else {
      bool first = true;
      for (const ColumnBlock& block : fitted_columns(table, shown, options_.table_width)) {
        if (!first) line();
        first = false;
        rows(table, shown, block);
      }
    }
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
    if (!item.title.empty()) title(item.title);
    std::size_t width = 0;
    for (const auto& [key, value] : item.entries) width = std::max(width, text_width(tame(key)));
    const std::size_t beside = width + 4, room = std::max(kLeastRoom, page - std::min(page, beside));
    const std::size_t longest = options_.table_width == 0 ? kLongestLine : std::min(kLongestLine, page);
    for (const auto& [key, value] : item.entries) {
      std::string name = tame(key);
      name = "  " + name + std::string(width - text_width(name) + 2, ' ');
      std::vector<std::string> lines{shown_text(value)};
      if (beside + text_width(lines[0]) > longest) lines = wrapped_lines(lines[0], room);
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

  std::string paint(const std::string& text, const char* style) const {
    return options_.color && *style && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", style, text) : text;
  }

  /// A terminal would wrap a longer title anywhere.
  void title(const std::string& text) {
    if (options_.table_width == 0) return line(tame(text), kBold);
    for (const std::string& each : wrapped_lines(text, options_.table_width, LongWord::broken)) line(each, kBold);
  }

  void rows(const Table& table, std::size_t shown, const ColumnBlock& block) {
    const auto dim = [](std::size_t) { return kDim; };
    row(
        table, block, [&](std::size_t c) { return shown_text(table.columns[c]); }, dim);
    for (std::size_t r = 0; r < shown; ++r)
      row(
          table, block, [&](std::size_t c) { return shown_text(table.rows[r][c]); },
          [&](std::size_t c) { return color_of(table.rows[r][c].status); });
  }

  template <typename Text, typename Style>
  void row(const Table& table, const ColumnBlock& block, Text text, Style style) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t i = 0; i < block.columns.size(); ++i) {
      const std::string whole = text(block.columns[i]);
      cells.push_back(text_width(whole) > block.widths[i] ? wrapped_lines(whole, block.widths[i], LongWord::broken)
                                                          : std::vector{whole});
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t l = 0; l < lines; ++l) {
      std::string assembled, blanks;  // blanks that only a text after them makes part of a line
      for (std::size_t i = 0; i < block.columns.size(); ++i) {
        const std::string shown = l < cells[i].size() ? cells[i][l] : "";
        const std::string fill(block.widths[i] - text_width(shown), ' ');
        const bool right = table.columns[block.columns[i]].align == Align::right;
        blanks += std::string(kColumnGap, ' ') + (right ? fill : "");
        if (!shown.empty() || l == 0) assembled += std::exchange(blanks, "") + paint(shown, style(block.columns[i]));
        if (!right) blanks += fill;
      }
      line(assembled);
    }
  }

  const TextOptions& options_;
  std::string out_;
};

}  // namespace

TextOptions terminal_options(int descriptor) {
  TextOptions options{.color = use_color(Color::automatic, descriptor), .table_width = terminal_width(descriptor)};
  if (options.table_width > 0) options.width = std::min(options.width, options.table_width);
  return options;
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
    writer.line(std::string(text_width(tame(section.title)), '-'), kDim);
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
