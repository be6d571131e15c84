// Whether bytes are text.
#pragma once
#include <string>

namespace wt {

bool is_utf8(const std::string& text);
/// Throws Error{usage} naming `origin` and the line of the first bytes that are not.
void need_utf8(const std::string& text, const std::string& origin);

}  // namespace wt
