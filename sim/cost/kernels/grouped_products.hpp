// Time of a grouped product on a GPU: the products of all experts of a rank in one call of a library, rows by group.
// Its FLOPs, the weights of its groups and its rows add up:
//   T = factor (launch_s + flops FLOPs / peak + weights weight bytes / bandwidth + rows row bytes / bandwidth)
// FLOP/s and bandwidth are those of the data sheet, so that the constants carry over to other GPUs. The factor is the
// library's. Tiles are not rounded up to waves: libraries' kernels stay on their processors and hide the tail (with
// waves, errors on configs/measurements/grouped_products.csv grow by half). sim/fit/grouped_fit.hpp fits the constants.
#pragma once
#include <array>
#include <map>
#include <string>

#include "configs/files/data_sheet.hpp"

namespace wt {

/// rows x k times k x n in each group.
struct GroupedProduct {
  double groups = 1;
  double rows = 0;               ///< of all groups
  double filled_rows = 0;        ///< of all groups, each raised by filled()
  double n = 0, k = 0;           ///< of each group's weights
  bool weight_gradient = false;  ///< n x rows times rows x k: the weights are the result
  double relative_rate = 1;      ///< rate of the data type, see data_sheet.hpp
  double element_bytes = 2;      ///< of the operands; rows that result have 2 at least
};

/// Rows of one group whose FLOPs are computed: a group with few rows costs as much as one whole tile.
double filled(double rows_of_group);

/// Groups of equally many rows.
GroupedProduct equal_groups(double groups, double rows_of_each, double n, double k);

/// Seconds that the data sheet gives to each term: 1, FLOPs, weight bytes, row bytes.
constexpr std::size_t kGroupedTerms = 4;
std::array<double, kGroupedTerms> grouped_terms(const GroupedProduct& product, const DataSheet& gpu);

struct GroupedConstants {
  double launch_s = 0;
  double flops = 1, weights = 1, rows = 1;  ///< multiples of the data sheet's times
  std::map<std::string, double> factors;    ///< by grouped_factor_name
};
/// Constants where too few products were measured for a fit: those of the published table, without its libraries.
GroupedConstants typical_grouped();

/// A library's weight gradients have a factor of their own where they were measured.
std::string grouped_factor_name(const std::string& library, bool weight_gradient);
/// Whether the library was measured.
bool knows_library(const GroupedConstants& constants, const std::string& library);

/// Seconds. An unknown or empty `library` has the factor 1, which is the median of those measured. Never faster than
/// the rate at which the GPU's power lets products run for long.
double grouped_time_s(const GroupedProduct& product, const DataSheet& gpu, const GroupedConstants& constants,
                      const std::string& library);

}  // namespace wt
