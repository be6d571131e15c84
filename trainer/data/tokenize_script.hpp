// tokenize.py, embedded in the program, so that it need not be found on disk.
#pragma once
#include <string_view>

namespace wt::assets {

extern const std::string_view kTokenizeScript;

}  // namespace wt::assets
