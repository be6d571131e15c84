// The layout of a search with the least regret. The fastest layouts of each kind are simulated again with every class
// of times at both ends of its 80 % interval, one class at a time, and with each recorded load alone. That is a few
// dozen simulations of each layout, within a budget of about three CPU seconds.
//
// If the budget does not suffice for three layouts, times are varied at even loads, which need only one simulated rank
// per stage. A layout's step is then scaled by its relative change at even loads.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "planner/regret/regret.hpp"
#include "planner/regret/time_class.hpp"
#include "planner/search/search.hpp"

namespace wt {

/// A class of times and its two scenarios in RobustChoice::table.
struct VariedClass {
  TimeClass times;
  std::array<std::size_t, 2> scenarios{};  ///< low, high
};

struct RobustChoice {
  std::vector<std::size_t> layouts;  ///< indices into SearchResult::candidates; the fastest first
  std::size_t chosen = 0;            ///< index into `layouts`
  RegretTable table;
  std::vector<VariedClass> classes;      ///< classes of several kinds first
  bool even_loads = false;               ///< times were varied at even loads
  std::vector<std::size_t> loads;        ///< scenarios with one load alone
  std::vector<std::string> left_out;     ///< classes that change no step by kLeastEffect or more
  std::vector<std::string> not_reached;  ///< classes and loads that the budget did not reach
  std::string sentence;                  ///< why the layout was chosen, and its loss; "" with only one layout
  double given_up() const { return table.regret(0, chosen); }  ///< loss at predicted times
  double largest() const { return table.largest(chosen); }

  static constexpr double kLeastEffect = 0.005;  ///< relative to a step
};

/// Compares layouts that fit, among them SearchResult::chosen.
RobustChoice choose_robust(const SearchProblem& problem, const SearchResult& search,
                           const SearchProgress& progress = {});

}  // namespace wt
