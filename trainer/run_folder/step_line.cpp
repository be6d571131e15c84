#include "trainer/run_folder/step_line.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Optional = std::optional<double> TrainingStep::*;

constexpr std::pair<const char*, double StepLine::*> kFigures[] = {{"unix_s", &StepLine::unix_s},
                                                                   {"step_s", &StepLine::step_s},
                                                                   {"loss", &StepLine::loss},
                                                                   {"grad_norm", &StepLine::grad_norm},
                                                                   {"tokens_per_s", &StepLine::tokens_per_s},
                                                                   {"mfu", &StepLine::mfu},
                                                                   {"exposed_communication_s", &StepLine::exposed_s},
                                                                   {"peak_tensor_bytes", &StepLine::peak_bytes}};

constexpr std::pair<const char*, Optional> kOptional[] = {
    {"exposed_communication_s", &TrainingStep::exposed_communication_s},
    {"mfu", &TrainingStep::mfu},
    {"expert_imbalance", &TrainingStep::expert_imbalance},
    {"aux_loss", &TrainingStep::aux_loss},
    {"tokens_per_s", &TrainingStep::tokens_per_s},
    {"peak_tensor_bytes", &TrainingStep::peak_tensor_bytes}};

/// JSON has no NaN.
double number_or_nan(const JsonReader& r) {
  return r.value().is_null() ? std::numeric_limits<double>::quiet_NaN() : r.finite();
}

json null_for_nan(double value) { return std::isfinite(value) ? json(value) : json(); }

}  // namespace

json to_json(const StepFigures& f) {
  json line{{"step", f.step},
            {"loss", f.loss},
            {"aux_loss", f.aux_loss},
            {"z_loss", f.z_loss},
            {"grad_norm", f.grad_norm},
            {"lr", f.learning_rate},
            {"step_s", f.step_s},
            {"tokens_per_s", f.tokens_per_s},
            {"exposed_communication_s", f.exposed_communication_s},
            {"peak_tensor_bytes", f.peak_tensor_bytes},
            {"resident_bytes", f.resident_bytes},
            {"unix_s", f.unix_s}};
  if (f.expert_imbalance) line["expert_imbalance"] = *f.expert_imbalance;
  if (f.mfu) line["mfu"] = *f.mfu;
  return line;
}

json without_lists(const std::string& text, const std::string& where) {
  json line = json::parse(
      text, [](int, json::parse_event_t event, json&) { return event != json::parse_event_t::array_start; },
      /*allow_exceptions=*/false);
  if (!line.is_object())
    throw_usage("{}: found no JSON object, needs a line as windtunnel train writes it; cut the file there", where);
  return line;
}

StepLine step_line(const std::string& text, const std::string& where) {
  const json line = without_lists(text, where);
  const JsonReader r(line, where);
  StepLine out;
  out.step = r.at("step").integer();
  if (out.step < 0) r.at("step").fail(std::to_string(out.step), "a number of steps");
  r.at("unix_s").non_negative();
  if (r.at("step_s").non_negative() <= 0) r.at("step_s").fail(r.at("step_s").value().dump(), "seconds above 0");
  for (const auto& [key, member] : kFigures)
    if (r.has(key) && !r.at(key).value().is_null()) out.*member = r.at(key).finite();
  return out;
}

TrainingStep training_step(const JsonReader& r) {
  TrainingStep out;
  out.step = r.at("step").integer();
  out.unix_s = r.at("unix_s").non_negative();
  out.step_s = r.at("step_s").finite();
  if (out.step_s <= 0) r.at("step_s").fail(r.at("step_s").value().dump(), "seconds above 0");
  out.loss = number_or_nan(r.at("loss"));
  if (r.has("grad_norm")) out.grad_norm = number_or_nan(r.at("grad_norm"));
  for (const auto& [key, member] : kOptional)
    if (r.has(key) && !r.at(key).value().is_null()) out.*member = r.at(key).non_negative();
  return out;
}

json to_json(const TrainingStep& s) {
  json step = {{"step", s.step}, {"unix_s", s.unix_s}, {"step_s", s.step_s}, {"loss", null_for_nan(s.loss)}};
  if (s.grad_norm) step["grad_norm"] = null_for_nan(*s.grad_norm);
  for (const auto& [key, member] : kOptional)
    if (s.*member) step[key] = *(s.*member);
  return step;
}

void check_rising(std::int64_t before, std::int64_t step, const std::string& where) {
  if (step <= before)
    throw_usage("{}: found step {} behind step {}, allowed are rising steps; cut the file back to one run", where, step,
                before);
}

}  // namespace wt
