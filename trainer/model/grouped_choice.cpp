#include "trainer/model/grouped_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "configs/files/find.hpp"
#include "configs/files/study.hpp"

namespace wt {
namespace {

constexpr double kWorthIt = 0.97;  // the gate's relative floor, 3 %: smaller differences may be noise

/// Largest ratio between the two shapes in rows of a group, n and k.
double factor(const GroupedQuery& a, const GroupedQuery& b) {
  const auto sizes = [](const GroupedQuery& q) {
    return std::array<double, 3>{static_cast<double>(q.rows) / static_cast<double>(q.groups), static_cast<double>(q.n),
                                 static_cast<double>(q.k)};
  };
  const auto x = sizes(a), y = sizes(b);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(std::log(x[i] / y[i])));
  return std::exp(largest);
}

}  // namespace

GroupedChoice::GroupedChoice(const std::vector<Profile>& profiles) {
  for (const Profile& profile : profiles) {
    std::map<std::string, const Measurement*> library;
    const auto key = [](Measurement m) {
      m.kernel = "grouped_gemm";
      return m.name();
    };
    const auto usable = [](const Measurement& m, const std::string& kernel) {
      return m.kernel == kernel && m.dtype == "bf16" && m.clock == "device" && m.throttled.empty();
    };
    for (const Measurement& m : profile.measurements)
      if (usable(m, "grouped_gemm_library") && m.median() > 0) library[key(m)] = &m;
    for (const Measurement& m : profile.measurements) {
      if (!usable(m, "grouped_gemm_own")) continue;
      const auto found = library.find(key(m));
      if (found == library.end()) continue;
      const GroupedQuery shape{m.pass, m.shape.at("rows"), m.shape.at("n"), m.shape.at("k"), m.shape.at("groups")};
      if (shape.rows > 0 && shape.groups > 0) points_.push_back({shape, m.median() / found->second->median()});
    }
  }
}

GroupedChoice GroupedChoice::of_device(const std::string& name) {
  std::vector<Profile> profiles;
  for (const std::string& profile : profiles_for_gpu(name))
    profiles.push_back(read_profile(find_config("profiles", profile)));
  return GroupedChoice(profiles);
}

GroupedBy GroupedChoice::operator()(const GroupedQuery& query) const {
  const Point* nearest = nullptr;
  for (const Point& point : points_)
    if (query.rows > 0 && point.shape.pass == query.pass && factor(point.shape, query) <= 2 &&
        (!nearest || factor(point.shape, query) < factor(nearest->shape, query)))
      nearest = &point;
  return nearest && nearest->own_over_library < kWorthIt ? GroupedBy::own : GroupedBy::library;
}

}  // namespace wt
