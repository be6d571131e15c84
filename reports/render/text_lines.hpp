// Text in lines of a width, as a terminal shows it. Widths are counted in code points.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace wt {

std::size_t text_width(const std::string& text);

/// Control characters are '?', so that no name can control the terminal; line breaks and tabs are blanks.
std::string tame(std::string text);

enum class LongWord { in_own_line, broken };
/// Lines of at most `width`, but where a longer word has its own line.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width,
                                       LongWord longer = LongWord::in_own_line);

}  // namespace wt
