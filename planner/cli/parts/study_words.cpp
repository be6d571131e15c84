#include "planner/cli/parts/study_words.hpp"

namespace wt {

void add_price_words(const Command& command, GivenPrices& prices) {
  command.option("--gpu-hour", prices.gpu_hour,
                 "Price of an hour of one GPU, as 2.80 or '2.80 EUR', in place of the study's");
  command.option("--price", prices.others, "KEY=AMOUNT, another key of prices, as storage_tb_month=20 (repeatable)")
      .one_a_mention();
}

void add_measured_word(const Command& command, std::string& file) {
  command.option("--measured", file, "Measured steps of your own job (YAML), which correct the times");
}

}  // namespace wt
