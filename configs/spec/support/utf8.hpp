// Whether bytes are text.
#pragma once
#include <string>

namespace wt {

bool is_utf8(const std::string& text);

}  // namespace wt
