#include <fmt/core.h>

#include <cctype>

#include "reports/render/render.hpp"

namespace wt {
namespace {

// Limits for timelines and charts over x: a GitHub comment holds 65,536 characters.
constexpr std::size_t kMaxSpans = 100, kMaxPoints = 100;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80; }

/// Escapes a text inside a paragraph or a table cell.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\n':
      case '\r':
      case '\t':
        out += ' ';
        break;
      case '_':  // emphasis only at a word's edge; inside a word an escape would only make ids harder to read
        if (i == 0 || i + 1 == text.size() || !is_word(text[i - 1]) || !is_word(text[i + 1])) out += '\\';
        out += c;
        break;
      case '#':
      case '+':
      case '-':
      case '=':  // a heading, list or rule, only at the start of a line
        if (i == 0 && text.size() > 1 && (c == '#' || text[1] == ' ' || text[1] == c)) out += '\\';
        out += c;
        break;
      case '\\':
      case '`':
      case '*':
      case '[':
      case ']':
      case '|':
      case '~':
        out += '\\';
        out += c;
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

const char* mark(Status status) {
  static constexpr const char* marks[] = {"", "✓ ", "⚠ ", "✗ "};
  return marks[static_cast<std::size_t>(status)];
}

std::string cell_text(const Cell& cell) {
  return mark(cell.status) + escaped(cell.text) + (cell.evidence ? " *" + to_string(*cell.evidence) + "*" : "");
}

struct MarkdownWriter {
  std::string out;

  void paragraph(const std::string& text) { out += text + "\n\n"; }

  void rows(const Table& table) {
    if (!table.columns.empty()) {
      out += "|";
      for (const Column& column : table.columns)
        out += column.unit.empty() ? fmt::format(" {} |", escaped(column.name))
                                   : fmt::format(" {} [{}] |", escaped(column.name), escaped(column.unit));
      out += "\n|";
      for (const Column& column : table.columns) out += column.align == Align::right ? "---:|" : "---|";
      out += "\n";
      for (const auto& row : table.rows) {
        out += "|";
        for (const Cell& cell : row) out += fmt::format(" {} |", cell_text(cell));
        out += "\n";
      }
      out += "\n";
    }
    if (!table.note.empty()) paragraph(escaped(table.note));
  }

  void operator()(const Table& table) {
    if (!table.title.empty()) paragraph("**" + escaped(table.title) + "**");
    rows(table);
  }
  void operator()(const Chart& chart) {
    Table numbers = chart_table(chart, kMaxPoints);
    // Long tables are folded, so that a comment on a change stays readable.
    const bool fold = numbers.rows.size() > 12;
    if (chart.kind == ChartKind::timeline && numbers.rows.size() > kMaxSpans) {
      numbers.note = fmt::format("The first {} of {} spans; the JSON has all.", kMaxSpans, numbers.rows.size());
      numbers.rows.resize(kMaxSpans);
    }
    if (fold) {
      out += "<details><summary>" + escaped(chart.title) + " (" + std::to_string(numbers.rows.size()) +
             " rows)</summary>\n\n";
      rows(numbers);
      out += "</details>\n\n";
    } else {
      (*this)(numbers);
    }
  }
  void operator()(const KeyValues& item) {
    if (!item.title.empty()) paragraph("**" + escaped(item.title) + "**");
    for (const auto& [key, value] : item.entries) out += "- " + escaped(key) + ": " + cell_text(value) + "\n";
    out += "\n";
  }
  void operator()(const Callout& item) {
    out += "> **" + std::string(mark(item.status)) + escaped(item.title) + "**\n";
    if (!item.text.empty()) out += ">\n> " + escaped(item.text) + "\n";
    out += "\n";
  }
};

}  // namespace

std::string markdown_text(const std::string& text) { return escaped(text); }

std::string markdown_table(const Table& table) {
  MarkdownWriter writer;
  writer(table);
  return writer.out;
}

std::string markdown_report(const Report& report) {
  check(report);
  MarkdownWriter writer;
  writer.paragraph("# " + escaped(report.title));
  writer.paragraph("**" + std::string(mark(report.status)) + escaped(report.answer) + "**");
  if (!report.answer_range.empty()) writer.paragraph(escaped(report.answer_range));
  for (const Section& section : report.sections) {
    writer.paragraph(section.folded ? "<details><summary><b>" + escaped(section.title) + "</b></summary>"
                                    : "## " + escaped(section.title));
    for (const std::string& text : section.paragraphs) writer.paragraph(escaped(text));
    for (const Item& item : section.items) std::visit([&](const auto& shown) { writer(shown); }, item);
    if (section.folded) writer.paragraph("</details>");
  }
  if (!report.provenance.entries.empty()) {
    writer.paragraph("## " + (report.provenance.title.empty() ? "Provenance" : escaped(report.provenance.title)));
    writer(KeyValues{"", report.provenance.entries});
  }
  while (writer.out.size() > 1 && writer.out.ends_with("\n\n")) writer.out.pop_back();
  return writer.out;
}

}  // namespace wt
