#include "sim/measurements/collective_rows.hpp"

#include <algorithm>
#include <cctype>
#include <regex>
#include <vector>

#include "configs/spec/support/error.hpp"
#include "sim/measurements/csv.hpp"

namespace wt {

double bus_share(const std::string& collective, std::int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return collective == "all_reduce" ? 2 * share : collective == "broadcast" || collective == "sendrecv" ? 1 : share;
}

std::int64_t fewest_on_node(const std::string& text, std::int64_t nodes, std::int64_t gpus,
                            std::int64_t gpus_per_node) {
  static const std::regex sum(R"(\b\d{1,4}(\s?\+\s?\d{1,4})+\b)"), number(R"(\d+)");
  for (std::sregex_iterator it(text.begin(), text.end(), sum), end; it != end; ++it) {
    const std::string said = it->str();
    std::vector<std::int64_t> parts;
    std::int64_t total = 0;
    for (std::sregex_iterator part(said.begin(), said.end(), number); part != end; ++part) {
      parts.push_back(std::stoll(part->str()));
      total += parts.back();
    }
    const std::int64_t fewest = *std::min_element(parts.begin(), parts.end());
    if (static_cast<std::int64_t>(parts.size()) == nodes && total == gpus && fewest > 0) return fewest;
  }
  if (gpus % nodes == 0) return gpus / nodes;
  const std::int64_t last = gpus - (nodes - 1) * gpus_per_node;  // schedulers fill one node after the other
  return last > 0 && last <= gpus_per_node ? last : gpus / nodes;
}

namespace {

/// nccl-tests' name, however a table spells it: "All-Reduce", "allreduce", "all_reduce_perf".
std::string nccl_name(const std::string& said) {
  std::string letters;
  for (const char c : said)
    if (std::isalpha(static_cast<unsigned char>(c))) letters += static_cast<char>(std::tolower(c));
  if (letters.ends_with("perf")) letters.erase(letters.size() - 4);
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"}) {
    std::string bare = name;
    std::erase(bare, '_');
    if (letters == bare) return name;
  }
  return said;
}

void fill(const CsvTable& table, const CsvRow& cells, CollectiveRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  const auto real = [&](const char* column) { return number(table, cells, table.at(column), 0).value_or(0); };
  row.source = text("source");
  row.gpu = text("gpu");
  row.fabric = text("fabric");
  row.collective = nccl_name(text("collective"));
  row.note = text("note");
  row.nodes = needed_whole_number(table, cells, table.at("nodes"), 1);
  row.gpus = needed_whole_number(table, cells, table.at("gpus"), 2);
  if (row.nodes > row.gpus)
    throw_error(Code::usage, "found {} nodes for {} GPUs, needs a GPU a node at least", row.nodes, row.gpus);
  row.fewest_on_node = fewest_on_node(row.note, row.nodes, row.gpus, row.gpus_per_node);
  const auto size = number(table, cells, table.at("bytes"), 1);
  row.bytes = size.value_or(kPlateauBytes);
  row.bytes_assumed = !size;
  const double by_time = real("time_us") * 1e-6, by_buffer = real("algbw_GBps") * 1e9,
               by_bus = real("busbw_GBps") * 1e9;
  if (by_time > 0)
    row.seconds = by_time;
  else if (by_bus > 0)
    row.seconds = row.bytes * bus_share(row.collective, row.gpus) / by_bus;
  else if (by_buffer > 0)
    row.seconds = row.bytes / by_buffer;
}

}  // namespace

std::vector<CollectiveRow> read_collective_rows(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file, {"gpu", "nodes", "gpus", "collective"}, OtherColumns::ignored,
                                  {"source", "fabric", "bytes", "time_us", "algbw_GBps", "busbw_GBps", "note"});
  return rows_of<CollectiveRow>(table, fill);
}

}  // namespace wt
