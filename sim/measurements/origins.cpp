#include "sim/measurements/origins.hpp"

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "sim/measurements/csv.hpp"

namespace wt {

Origins::Origins(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file, {"source", "origin", "why"});
  if (!table.broken.empty()) throw_usage("{}: line {}: {}", file.string(), table.broken.front().line, kBrokenLine);
  for (const CsvRow& row : table.rows) {
    for (const char* column : {"source", "origin", "why"})
      if (row.cells[table.at(column)].empty())
        throw_usage("{}: line {}: found no {}, needs one", file.string(), row.line, column);
    const std::string& source = row.cells[table.at("source")];
    if (!of_source_.emplace(source, row.cells[table.at("origin")]).second)
      throw_usage("{}: line {}: found source '{}' twice, allowed once; drop a line", file.string(), row.line, source);
  }
}

const Origins& Origins::published() {
  static const Origins all(configs_folder() / "measurements" / "origins.csv");
  return all;
}

const std::string& Origins::of(const std::string& source) const {
  const auto found = of_source_.find(source);
  return found == of_source_.end() ? source : found->second;
}

}  // namespace wt
