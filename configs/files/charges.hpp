// What a run is charged for (GPU hours, storage, egress), and what turns hours into energy and carbon. There are no
// default prices. Every amount is a number or a range, with a date and a source.
#pragma once
#include <optional>
#include <string>

#include "configs/files/evidence.hpp"

namespace wt {

class YamlMap;

/// A known amount (`low` equals `high`), or the 80 % interval of one that is not known well.
struct PriceAmount {
  double low = 0, high = 0;
  std::string date;  ///< "2026-03-01": when it was quoted, published or measured
  Provenance evidence;
  double middle() const { return (low + high) / 2; }
};

/// Electrical power at the servers.
struct PowerSpec {
  PriceAmount compute_W;      ///< of a GPU while its kernels compute
  PriceAmount communicate_W;  ///< of a GPU that only waits for a collective
  PriceAmount idle_W;         ///< of a GPU without kernels
  PriceAmount host_W;         ///< of a node without its GPUs, always
};

struct PriceSpec {
  std::string currency;  ///< "USD"; "" where the file has no prices
  std::optional<PriceAmount> gpu_hour;
  std::optional<PriceAmount> spare_gpu_hour;    ///< a GPU of a spare node; set whenever gpu_hour is
  bool spares_as_gpus = false;                  ///< spare_gpu_hour follows gpu_hour
  std::optional<PriceAmount> storage_tb_month;  ///< 1e12 bytes kept for 30 days
  std::optional<PriceAmount> egress_tb;         ///< 1e12 bytes taken out
  std::optional<PowerSpec> power;
  std::optional<PriceAmount> pue;            ///< energy of the building over that of the servers, >= 1
  std::optional<PriceAmount> carbon_kg_kwh;  ///< kg of CO2 equivalent a kWh of the building
};

/// Throws Error{usage}: an amount without date or source, a price without a currency, a price for GPUs but none for
/// spares, a range whose low exceeds its high.
PriceSpec prices_from_yaml(YamlMap map);

/// Reads a date "2026-03-01". Throws Error{usage} for a date that is not in the calendar.
std::string read_date(YamlMap& map, const std::string& key);

}  // namespace wt
