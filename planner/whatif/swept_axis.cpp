#include "planner/whatif/swept_axis.hpp"

#include <cmath>
#include <cstdlib>

namespace wt {

SweptAxis swept_axis(const std::string& key, const std::vector<std::string>& values) {
  SweptAxis axis{.key = key, .values = values, .numbers = {}, .unit = ""};
  for (const std::string& value : values) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    std::string unit(end);
    unit.erase(0, unit.find_first_not_of(' '));
    const bool first = axis.numbers.empty();
    if (end == value.c_str() || !std::isfinite(number) || (!first && unit != axis.unit)) {
      axis.numbers.clear();
      axis.unit.clear();
      return axis;
    }
    axis.numbers.push_back(number);
    axis.unit = unit;
  }
  return axis;
}

}  // namespace wt
