#include "trainer/trackers/metric_names.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/lists.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr MetricName kNames[] = {
    {"loss", "loss/train/loss", "loss", "Mean cross entropy of the step's tokens."},
    {"aux_loss", "loss/train/lbl", "balancing_loss", "Weighted loss that balances the experts."},
    {"z_loss", "loss/train/z_loss", "router_z_loss", "Weighted z-loss of the routers."},
    {"mtp_losses", "loss/train/mtp_{}", "", "Loss of a module of multi-token prediction."},
    {"grad_norm", "l2_norm/grad/global", "gradient_norm", "L2 norm of all gradients before clipping."},
    {"lr", "lr-{}/group0", "learning_rate", "Learning rate of the step."},
    {"tokens_per_s", "throughput/tokens_per_sec", "tokens_per_second", "Tokens a second of all ranks, in the step."},
    {"tokens_per_s", "throughput/device/tokens_per_sec", "", "Tokens a second and rank, in the step.",
     MetricScale::per_rank},
    {"step_s", "throughput/batches_per_sec", "", "Steps a second.", MetricScale::inverse},
    {"step_s", "throughput/samples_per_sec", "", "Sequences a second of all ranks.", MetricScale::batch},
    {"mfu", "throughput/device/mfu", "mfu_ratio", "Model FLOP/s over the peak of all ranks."},
    {"step_s", "time/step", "step_seconds", "Wall time of the step."},
    {"exposed_communication_s", "time/exposed_communication", "exposed_communication_seconds",
     "Time of the step in which rank 0 waited for others."},
    {"step", "time/batch", "step", "Steps that are done."},
    {"step", "time/sample", "", "Sequences that were trained on.", MetricScale::times_batch},
    {"step", "time/token", "tokens", "Tokens that were trained on.", MetricScale::times_tokens},
    {"peak_tensor_bytes", "memory/peak_allocated_mem", "", "Peak of tensors on rank 0, GB.", MetricScale::giga},
    {"peak_tensor_bytes", "memory/peak_tensor_bytes", "peak_tensor_bytes", "Peak of tensors on rank 0."},
    {"resident_bytes", "memory/resident_bytes", "resident_bytes", "Resident memory of rank 0's process."},
    {"expert_imbalance", "moe/expert_imbalance", "expert_imbalance_ratio",
     "Rows of the most loaded expert rank over their mean."},
    {"unix_s", "time/unix", "last_step_timestamp_seconds", "When the step ended, Unix time."},
};
constexpr MetricName kTotal{"", "loss/train/total", "total_loss", "All losses, weighted as they are minimised."};

/// null stands for NaN, which JSON lacks.
double number_of(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

double scaled(double value, MetricScale scale, const RunSpec& run) {
  switch (scale) {
    case MetricScale::none:
      return value;
    case MetricScale::giga:
      return value / 1e9;
    case MetricScale::per_rank:
      return value / static_cast<double>(run.layout.world());
    case MetricScale::inverse:
      return 1 / value;
    case MetricScale::batch:
      return static_cast<double>(run.global_batch) / value;
    case MetricScale::times_batch:
      return value * static_cast<double>(run.global_batch);
    case MetricScale::times_tokens:
      return value * static_cast<double>(run.tokens_per_step());
  }
  return value;
}

/// The optimizer's class in the names of Composer's callback: AdamW, DecoupledAdamW, Muon.
std::string class_of(const std::string& optimizer) {
  std::string out;
  bool upper = true;
  for (const char c : optimizer) {
    if (c != '_') out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  for (const auto& [small, right] : {std::pair{"Adamw", "AdamW"}, {"Lionw", "LionW"}})
    if (const std::size_t at = out.find(small); at != std::string::npos) out.replace(at, 5, right);
  return out;
}

std::string with_word(std::string name, const std::string& word) {
  if (const std::size_t at = name.find("{}"); at != std::string::npos) name.replace(at, 2, word);
  return name;
}

/// The minimised loss (docs/train.md, "Multi-token prediction").
double total_loss(const RunSpec& run, const json& line) {
  double total = 0;
  for (const char* key : {"loss", "aux_loss", "z_loss"})
    if (line.contains(key)) total += number_of(line.at(key));
  const auto modules = line.find("mtp_losses");
  if (modules == line.end() || !modules->is_array() || modules->empty()) return total;
  return total + run.model.mtp_loss_weight * sum_of(*modules, number_of) / static_cast<double>(modules->size());
}

constexpr MetricName kEvaluations[] = {
    {"loss", "metrics/{}/LanguageCrossEntropy", "", "Mean cross entropy of a set of eval_loader."},
    {"perplexity", "metrics/{}/LanguagePerplexity", "", "Its exponential."}};

}  // namespace

TrackedStep tracked_evaluation(const json& line, double unix_s) {
  TrackedStep out;
  out.step = line.at("step");
  out.unix_s = line.value("unix_s", unix_s);
  const std::string label = line.value("label", "eval");
  for (const MetricName& name : kEvaluations)
    if (line.contains(name.key))
      out.values.push_back(
          {&name, with_word(name.composer, label == "eval" ? label : "eval/" + label), number_of(line.at(name.key))});
  return out;
}

std::span<const MetricName> metric_names() { return kNames; }

TrackedStep tracked_step(const RunSpec& run, const json& line) {
  TrackedStep out;
  out.step = line.at("step");
  out.unix_s = line.at("unix_s");
  if (line.contains("loss")) out.values.push_back({&kTotal, kTotal.composer, total_loss(run, line)});
  for (const MetricName& name : kNames) {
    const auto found = line.find(name.key);
    if (found == line.end()) continue;
    if (!found->is_array()) {
      out.values.push_back({&name, with_word(name.composer, class_of(to_string(run.optimizer.kind))),
                            scaled(number_of(*found), name.scale, run)});
      continue;
    }
    for (std::size_t i = 0; i < found->size(); ++i)
      out.values.push_back(
          {&name, with_word(name.composer, std::to_string(i + 1)), scaled(number_of((*found)[i]), name.scale, run)});
  }
  return out;
}

}  // namespace wt
