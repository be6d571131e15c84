// Prices that a command line gives, in place of those of a study or its cluster.
#pragma once
#include <string>
#include <vector>

namespace wt {

struct GivenPrices {
  std::string gpu_hour = {};  ///< "2.80", "2.80 EUR"; "" = not given. Without a currency: the study's, or USD
  std::vector<std::string> others = {};  ///< "storage_tb_month=20": keys of `prices`, likewise
};

/// The text of a study with these prices, each with today's date and "assumed: given on the command line". What else
/// the study's prices say stays; those of its cluster are not used. Spare GPUs cost as those that train, unless a price
/// of them is there. Throws Error{usage} for an amount that is no number, an unknown key, and two currencies.
std::string with_prices(const std::string& text, const GivenPrices& prices, const std::string& origin);

}  // namespace wt
