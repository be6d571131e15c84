#include "bench/suites/table.hpp"

#include <algorithm>

#include "bench/profile/rate.hpp"
#include "configs/spec/error.hpp"
#include "configs/spec/quantity.hpp"

namespace wt {

std::string bench_table(const Profile& profile) {
  std::size_t width = 4;
  for (const Measurement& m : profile.measurements) width = std::max(width, m.name().size());
  std::string out = fmt::format("{:<{}}  {:>9}  {:>7}  {:>16}\n", "name", width, "median", "spread", "rate");
  for (const Measurement& m : profile.measurements) {
    const auto found = rate(m);
    out += fmt::format("{:<{}}  {:>9}  {:>5.1f} %  {:>16}\n", m.name(), width, format_seconds(m.median()), spread(m) * 100,
                       found ? to_string(*found) : "");
  }
  return out;
}

}  // namespace wt
