// What the terminal behind a descriptor can show.
#pragma once
#include <cstddef>

namespace wt {

enum class Color { automatic, always, never };
/// automatic: only when `descriptor` is a terminal, NO_COLOR is unset or empty and TERM is not "dumb".
bool use_color(Color wanted, int descriptor);

/// Columns of the terminal: COLUMNS, where it is set to a number, else what the terminal says, else 80. 0 where
/// `descriptor` is no terminal.
std::size_t terminal_width(int descriptor);

}  // namespace wt
