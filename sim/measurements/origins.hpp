// Who published what a table of measurements calls its source: configs/measurements/origins.csv. An origin is a
// project, with all that its pages, papers, talks, repositories and trackers hold; of a company with several frameworks
// a line of them. Steps, benchmarks and memory of one origin are left out of a fit together.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace wt {

class Origins {
 public:
  /// Columns source, origin, why. Throws Error{usage} as read_csv does, and for an empty cell or a source twice.
  explicit Origins(const std::filesystem::path& file);
  /// Of configs/measurements/origins.csv, read once a process.
  static const Origins& published();

  bool knows(const std::string& source) const { return of_source_.count(source) > 0; }
  /// A source that the file does not have, as in a table of one's own, is an origin of its own.
  const std::string& of(const std::string& source) const;

 private:
  std::map<std::string, std::string> of_source_;
};

}  // namespace wt
