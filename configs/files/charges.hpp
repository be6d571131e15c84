// What a run is charged for: hours of GPUs, storage, egress; and what turns hours into energy and carbon. There are no
// defaults: what a file does not price has no price. Every amount has a date and a source, and is a number or a range.
#pragma once
#include <optional>
#include <string>

#include "configs/files/evidence.hpp"

namespace wt {

class YamlMap;

/// An amount, or the 80 % interval of one that is not known well; `low` equals `high` where it is.
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
  std::string currency;  ///< "USD"; "" where nothing costs money
  std::optional<PriceAmount> gpu_hour;
  std::optional<PriceAmount> spare_gpu_hour;    ///< of a GPU of a spare node; with gpu_hour always there
  bool spares_as_gpus = false;                  ///< spare_gpu_hour is gpu_hour, whatever that is
  std::optional<PriceAmount> storage_tb_month;  ///< 1e12 bytes kept for 30 days
  std::optional<PriceAmount> egress_tb;         ///< 1e12 bytes taken out
  std::optional<PowerSpec> power;
  std::optional<PriceAmount> pue;            ///< energy of the building over that of the servers, >= 1
  std::optional<PriceAmount> carbon_kg_kwh;  ///< kg of CO2 equivalent a kWh of the building
};

/// Throws Error{usage}: an amount without date or source, a price without a currency, GPUs with a price and spares
/// without one, a range the wrong way round.
PriceSpec prices_from_yaml(YamlMap map);

/// "2026-03-01" at a key. Throws Error{usage} for what is no date of the calendar.
std::string read_date(YamlMap& map, const std::string& key);

}  // namespace wt
