// tokenize.py, built into the program: there is no file to be found.
#pragma once
#include <string_view>

namespace wt::assets {

extern const std::string_view kTokenizeScript;

}  // namespace wt::assets
