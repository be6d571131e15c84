#include "sim/measurements/energy_rows.hpp"

#include <string>

#include "sim/measurements/csv.hpp"

namespace wt {
namespace {

struct PowerCells {
  std::int64_t line = 0;
  EnergyRow row;
  std::string assumed, unusable;
};

void fill_power(const CsvTable& table, const CsvRow& cells, PowerCells& power) {
  EnergyRow& row = power.row;
  const auto text = [&](const char* column) -> const std::string& { return cells.cells[table.at(column)]; };
  const std::string &at = text("measured_at"), &cooling = text("cooling");
  row.at_node = at == "node";
  if (!row.at_node && at != "gpu")
    throw_usage("measured_at: found '{}', allowed are node (its input) and gpu (the GPUs alone)", at);
  row.cooling = cooling == "immersion" || cooling == "liquid" ? NodeCooling::liquid : NodeCooling::air;
  if (row.cooling == NodeCooling::air && cooling != "air" && (row.at_node || !cooling.empty()))
    throw_usage("cooling: found '{}', allowed are air, liquid and immersion", cooling);
  row.runs = whole_number(table, cells, table.at("runs"), 1).value_or(1);
  row.gpu_W = needed_number(table, cells, table.at("watts_per_gpu"), 1);
  row.token_J = number(table, cells, table.at("joules_per_token"), 0).value_or(0);
  row.lora_rank = whole_number(table, cells, table.at("lora_rank"), 1).value_or(0);
  power.assumed = text("assumed");
}

}  // namespace

std::vector<EnergyRow> read_energy_rows(const std::filesystem::path& file) {
  const std::vector<PowerCells> powers =
      rows_of<PowerCells>(read_csv(file, {"measured_at", "cooling", "watts_per_gpu"}, OtherColumns::ignored,
                                   {"runs", "joules_per_token", "lora_rank", "assumed"}),
                          fill_power);
  std::vector<RunRow> runs = read_run_rows(file);
  std::vector<EnergyRow> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {  // both have a row a line, in order
    EnergyRow& row = rows.emplace_back(powers.at(i).row);
    row.run = std::move(runs[i]);
    if (!powers[i].assumed.empty()) row.run.assumed.push_back(powers[i].assumed);
    if (row.run.unusable.empty()) row.run.unusable = powers[i].unusable;
  }
  return rows;
}

}  // namespace wt
