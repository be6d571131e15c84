#include "sim/validate/judge_energy.hpp"

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/fit/expert_loads.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/step_shares.hpp"
#include "sim/validate/judge_runs.hpp"

namespace wt {
namespace {

struct EnergyForecast {
  StepEnergy energy;
  double design_W = 0, design_J = 0;  ///< with every GPU at its thermal design power
  std::vector<std::string> assumed;
};

EnergyForecast energy_forecast(const EnergyRow& row, const PublishedTimes& published) {
  StepWithout of(row.run, stack_of(row.run.framework, published.stacks()), published, LeftOutOfSteps::origin);
  const DataSheet sheet = *data_sheet(row.run.gpu);  // run_files() needs it, too
  EnergyForecast out;
  out.assumed = row.run.assumed;
  for (const std::string& what : of.files.unsaid) out.assumed.push_back("no " + what);
  if (row.lora_rank > 0) {
    // check_run() refuses adapters beside tensor groups and fp8, because our trainer has neither.
    of.files.run.lora = LoraSpec{.rank = row.lora_rank, .target_modules = {"q_proj", "k_proj", "v_proj", "o_proj"}};
    out.assumed.emplace_back("adapters that tensor ranks do not divide");
  }
  const RememberedCost cost(*of.cost);
  const NamedRouting routing =
      read_routing(of.files.routing, row.run.model, of.files.run.tokens(), of.files.run.layout.expert);
  const ReplayResult step = simulated(of.files, cost, of.off_by, *routing.source);
  PowerSpec power = data_sheet_power(sheet, of.files.cluster.gpus_per_node, row.cooling);
  if (!row.at_node) power.host_W.low = power.host_W.high = 0;
  const double tokens = static_cast<double>(row.run.tokens()), gpus = static_cast<double>(row.run.gpus);
  out.energy = step_energy(power, {.step_s = step.step_s,
                                   .low_s = step.low_s,
                                   .high_s = step.high_s,
                                   .shares = step_shares(step.totals, step.step_s),
                                   .tokens = tokens,
                                   .gpus = row.run.gpus,
                                   .gpus_per_node = of.files.cluster.gpus_per_node});
  out.design_W = sheet.power_W;
  out.design_J = sheet.power_W * step.step_s * gpus / tokens;
  return out;
}

void predict(Judged& judged, const EnergyAmount& amount, double design) {
  judged.forecast = {amount.value, amount.low, amount.high, only(Evidence::derived), ""};
  judged.baseline = {.value = design, .evidence = only(Evidence::published), .reason = {}};
}

}  // namespace

JudgedEnergy judge_energy(const std::vector<EnergyRow>& rows, const PublishedTimes& published,
                          const std::function<void(std::size_t done, std::size_t all)>& progress) {
  JudgedEnergy out;
  for (const EnergyRow& row : rows) {
    Judged watts;
    watts.line = row.run.line;
    watts.name = row.run.name;
    watts.group = watts.origin = row.run.origin;
    watts.regime = !row.run.unusable.empty() ? "unusable rows" : row.at_node ? "at the node" : "GPU alone";
    Judged joules = watts;
    watts.measured = row.gpu_W, joules.measured = row.token_J;
    try {
      const EnergyForecast forecast = energy_forecast(row, published);
      watts.assumed = joules.assumed = forecast.assumed;
      predict(watts, forecast.energy.gpu_W, forecast.design_W);
      predict(joules, forecast.energy.token_J, forecast.design_J);
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      watts.forecast.reason = watts.baseline.reason = joules.forecast.reason = joules.baseline.reason = e.what();
    }
    out.gpu_W.push_back(std::move(watts));
    if (row.token_J > 0) out.token_J.push_back(std::move(joules));
    if (progress) progress(out.gpu_W.size(), rows.size());
  }
  add_intervals(out.gpu_W, &Judged::baseline);
  add_intervals(out.token_J, &Judged::baseline);
  return out;
}

}  // namespace wt
