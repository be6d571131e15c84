// Times of dispatches and combines over nodes, by library: time = start + NIC bytes of a rank / rate. Both constants
// are a base times a factor for the library and a factor for the site (GPU and transport). A prior keeps the factors
// near 1, so that an unknown library has the usual constants.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/measurements/row_exchange_rows.hpp"

namespace wt {

class RowExchangeFit {
 public:
  /// Fits usable rows that have a time. Throws Error{usage} if there is none.
  explicit RowExchangeFit(const std::vector<RowExchangeRow>& rows);
  double seconds(const RowExchangeRow& row) const;
  bool knows_library(const RowExchangeRow& row) const;

 private:
  using Logs = std::array<double, 2>;  ///< of start and of seconds per byte
  Logs base_{};
  std::map<std::string, Logs> libraries_, sites_;
};

}  // namespace wt
