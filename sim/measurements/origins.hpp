// Who published a source that a table of measurements names: configs/measurements/origins.csv. An origin is a project
// with all its pages, papers, talks, repositories and trackers; a company with several frameworks has an origin for
// each line of them. Steps, benchmarks and memory of one origin are left out of a fit together.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace wt {

class Origins {
 public:
  /// Columns source, origin, why. Throws Error{usage} as read_csv does, and for an empty cell or a repeated source.
  explicit Origins(const std::filesystem::path& file);
  /// Reads configs/measurements/origins.csv once per process.
  static const Origins& published();

  bool knows(const std::string& source) const { return of_source_.count(source) > 0; }
  /// A source that is not in the file, as in a user's own table, is an origin of its own.
  const std::string& of(const std::string& source) const;

 private:
  std::map<std::string, std::string> of_source_;
};

}  // namespace wt
