#include "reports/render/column_blocks.hpp"

#include <algorithm>
#include <sstream>

#include "reports/render/text_lines.hpp"

namespace wt {
namespace {

/// Fewer columns make a text a list of single words.
constexpr std::size_t kLeastText = 16;

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) longest = std::max(longest, text_width(word));
  return longest;
}

/// The width below which a column's texts would be broken where they should not. `most` limits it, so that the first
/// column and any other one fit next to each other.
std::size_t least_width(const Table& table, std::size_t shown_rows, std::size_t column, std::size_t whole,
                        std::size_t most) {
  const bool number = table.columns[column].align == Align::right;
  std::size_t least = std::max(longest_word(shown_text(table.columns[column])), number ? 1 : kLeastText);
  for (std::size_t r = 0; r < shown_rows; ++r) {
    const std::string text = shown_text(table.rows[r][column]);
    least = std::max(least, number ? text_width(text) : longest_word(text));
  }
  return std::min({least, whole, most});
}

std::size_t total_width(const ColumnBlock& block) {
  std::size_t total = 0;
  for (std::size_t width : block.widths) total += kColumnGap + width;
  return total;
}

/// Gives the room that is left to the columns that have least of what they need.
void widen(ColumnBlock& block, const std::vector<std::size_t>& whole, std::size_t width) {
  for (std::size_t left = width - std::min(width, total_width(block)); left > 0; --left) {
    std::size_t narrowest = block.columns.size();
    for (std::size_t i = 0; i < block.columns.size(); ++i)
      if (block.widths[i] < whole[block.columns[i]] &&
          (narrowest == block.columns.size() || block.widths[i] < block.widths[narrowest]))
        narrowest = i;
    if (narrowest == block.columns.size()) return;
    ++block.widths[narrowest];
  }
}

}  // namespace

std::string shown_text(const Cell& cell) {
  return tame(cell.text) + (cell.evidence ? " (" + to_string(*cell.evidence) + ")" : "");
}

std::string shown_text(const Column& column) { return tame(with_unit(column.name, column.unit)); }

ColumnBlock whole_columns(const Table& table, std::size_t shown_rows) {
  ColumnBlock block;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = text_width(shown_text(table.columns[c]));
    for (std::size_t r = 0; r < shown_rows; ++r) width = std::max(width, text_width(shown_text(table.rows[r][c])));
    block.columns.push_back(c);
    block.widths.push_back(width);
  }
  return block;
}

std::vector<ColumnBlock> fitted_columns(const Table& table, std::size_t shown_rows, std::size_t width) {
  width = std::max(width, kLeastTableWidth);
  const ColumnBlock all = whole_columns(table, shown_rows);
  if (total_width(all) <= width) return {all};
  const std::vector<std::size_t>& whole = all.widths;
  std::vector<std::size_t> least;
  for (std::size_t c = 0; c < whole.size(); ++c)
    least.push_back(least_width(table, shown_rows, c, whole[c], width / 3));
  std::vector<ColumnBlock> blocks(1);
  for (std::size_t c = 0; c < whole.size(); ++c) {
    if (!blocks.back().columns.empty() && total_width(blocks.back()) + kColumnGap + least[c] > width)
      blocks.push_back({{0}, {least[0]}});
    blocks.back().columns.push_back(c);
    blocks.back().widths.push_back(least[c]);
  }
  for (ColumnBlock& block : blocks) widen(block, whole, width);
  return blocks;
}

}  // namespace wt
