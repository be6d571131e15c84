// Checks of UTF-8.
#pragma once
#include <string>

namespace wt {

bool is_utf8(const std::string& text);
/// Throws Error{usage} with `origin` and the line of the first invalid bytes.
void need_utf8(const std::string& text, const std::string& origin);

}  // namespace wt
