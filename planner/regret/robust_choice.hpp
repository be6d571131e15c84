// Which of a search's layouts regrets least: the fastest ones of each kind are simulated again with every class of
// price at both ends of its 80 % interval, one class at a time, and with each recorded load alone. A few dozen
// simulations of each layout, within a budget of work: about three CPU seconds.
//
// Where the budget does not have them for three layouts, prices are moved at even loads, where one rank of a stage
// stands for all: a layout's step then changes in the proportion in which it changes there.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "planner/regret/price_class.hpp"
#include "planner/regret/regret.hpp"
#include "planner/search/search.hpp"

namespace wt {

/// A class of price and where RobustChoice::table has its ends.
struct VariedClass {
  PriceClass prices;
  std::array<std::size_t, 2> scenarios{};  ///< low, high
};

struct RobustChoice {
  std::vector<std::size_t> layouts;  ///< that were compared, of SearchResult::candidates; the fastest first
  std::size_t chosen = 0;            ///< of `layouts`
  RegretTable table;
  std::vector<VariedClass> classes;      ///< joint ones, then single ones
  bool even_loads = false;               ///< prices were moved at even loads
  std::vector<std::size_t> loads;        ///< scenarios of one load alone
  std::vector<std::string> left_out;     ///< classes that move no step by kLeastEffect: they decide nothing
  std::vector<std::string> not_reached;  ///< classes and loads that the budget of simulations did not reach
  std::string sentence;                  ///< why it, and what it gives up; "" where there was nothing to choose from
  double given_up() const { return table.regret(0, chosen); }  ///< at central prices
  double largest() const { return table.largest(chosen); }

  static constexpr double kLeastEffect = 0.005;  ///< of a step
};

/// Of layouts that fit. A search's choice among ties (SearchResult::chosen) takes part.
RobustChoice choose_robust(const SearchProblem& problem, const SearchResult& search,
                           const SearchProgress& progress = {});

}  // namespace wt
