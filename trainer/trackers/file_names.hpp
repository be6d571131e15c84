// Converts names of runs and hosts to file names.
#pragma once
#include <string>

namespace wt {

/// Keeps letters, digits, '.', '_' and '-'. Anything else, and a leading dot, becomes '_', so that the result is a
/// single name that cannot leave a folder.
inline std::string as_file_name(std::string name) {
  for (char& c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
          c == '-'))
      c = '_';
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name.substr(0, 200);
}

}  // namespace wt
