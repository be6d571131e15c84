#include "sim/validate/ratios.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {

std::vector<Ratio> ratios(const std::vector<Judged>& rows) {
  std::vector<Ratio> out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const Judged *slow = &rows[i], *fast = &rows[j];
      if (slow->choice.empty() || slow->choice != fast->choice) continue;
      if (!slow->forecast.value || !fast->forecast.value || !slow->baseline.value || !fast->baseline.value) continue;
      if (slow->measured < fast->measured) std::swap(slow, fast);
      out.push_back({slow->choice, slow->alternative, fast->alternative, slow->measured / fast->measured,
                     *slow->forecast.value / *fast->forecast.value, *slow->baseline.value / *fast->baseline.value});
    }
  return out;
}

RatioError ratio_error(const std::vector<Ratio>& ratios, double Ratio::*which) {
  if (ratios.empty()) throw_usage("ratio error: found no ratio, allowed at least one");
  RatioError out;
  for (const Ratio& ratio : ratios) {
    const double size = std::abs(ratio.*which / ratio.measured - 1);
    out.mean += size / static_cast<double>(ratios.size());
    out.largest = std::max(out.largest, size);
  }
  return out;
}

}  // namespace wt
