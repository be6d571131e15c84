// Words of the commands that plan a study.
#pragma once
#include <string>

#include "configs/files/study_prices.hpp"
#include "planner/cli/parts/words.hpp"

namespace wt {

/// --gpu-hour and --price.
void add_price_words(const Command& command, GivenPrices& prices);
/// --measured.
void add_measured_word(const Command& command, std::string& file);

}  // namespace wt
