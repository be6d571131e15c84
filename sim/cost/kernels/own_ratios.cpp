#include "sim/cost/kernels/own_ratios.hpp"

#include "configs/base/statistics.hpp"

namespace wt {

OwnRatios::OwnRatios(const MachineData& measured, const ItemTimes& published, const KernelChoice& choice,
                     const DataSheet& gpu) {
  std::map<ClassKey, std::vector<double>> ratios;
  for (const auto& [key, points] : measured.table)
    for (const TimePoint& point : points) {
      const WorkItem item = make_item(key.kernel, key.pass, key.precision, {point.rows, 0}, key.dims);
      const double usual_s = published.item(item, 0, choice, gpu).sum_s();
      if (usual_s > 0 && point.seconds > 0)
        ratios[{key.kernel, key.pass, key.precision}].push_back(point.seconds / usual_s);
    }
  for (const auto& [key, values] : ratios) {
    const double middle = median(values);
    by_class_[key] = {middle, quantile(values, 0.1) / middle, quantile(values, 0.9) / middle};
  }
}

std::optional<OwnRatio> OwnRatios::of(const WorkItem& item) const {
  for (const Pass pass : {item.pass, Pass::forward})
    if (const auto found = by_class_.find({item.kernel, pass, item.precision}); found != by_class_.end())
      return found->second;
  return std::nullopt;
}

}  // namespace wt
