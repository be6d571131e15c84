// Names of runs and hosts as names of files.
#pragma once
#include <string>

namespace wt {

/// Letters, digits, '.', '_' and '-' stay; anything else becomes '_', and so does a dot at the start: one name, which
/// leaves no folder.
inline std::string as_file_name(std::string name) {
  for (char& c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
          c == '-'))
      c = '_';
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name.substr(0, 200);
}

}  // namespace wt
