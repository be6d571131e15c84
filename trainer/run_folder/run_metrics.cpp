#include "trainer/run_folder/run_metrics.hpp"

#include <algorithm>
#include <numeric>

#include "configs/files/data_sheet.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

std::optional<double> expert_imbalance(const RunSpec& run,
                                       const std::vector<std::vector<std::vector<std::int64_t>>>& routing) {
  if (run.layout.expert == 1) return std::nullopt;
  double sum = 0, layers = 0;
  for (std::int64_t layer = 0; layer < run.model.blocks(); ++layer) {
    std::vector<double> rows(static_cast<std::size_t>(run.model.experts), 0.0);
    for (const auto& microbatch : routing) {
      const std::vector<std::int64_t>& own = microbatch[static_cast<std::size_t>(layer)];
      const std::int64_t most =
          run.model.router.capacity(std::accumulate(own.begin(), own.end(), std::int64_t{0}), run.model.experts);
      for (std::size_t expert = 0; expert < own.size(); ++expert)
        rows[expert] += static_cast<double>(std::min(own[expert], most));
    }
    const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
    if (all == 0) continue;  // a dense layer
    const std::vector<double> received = rows_received({rows}, run.layout, layer);
    sum += *std::ranges::max_element(received) * static_cast<double>(received.size()) / all;
    ++layers;
  }
  return layers > 0 ? std::optional(sum / layers) : std::nullopt;
}

std::optional<double> peak_flops(const std::string& gpu, Precision precision) {
  const auto sheet = data_sheet(gpu);
  const auto rate = sheet ? relative_rate(*sheet, to_string(precision)) : std::nullopt;
  return rate ? std::optional(*rate * sheet->flops) : std::nullopt;
}

double model_flops_utilisation(const RunSpec& run, double step_s, double peak_flops) {
  return static_cast<double>(run.tokens_per_step()) * run.flops_per_token() /
         (step_s * peak_flops * static_cast<double>(run.layout.world()));
}

}  // namespace wt
