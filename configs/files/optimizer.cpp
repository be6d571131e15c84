#include "configs/files/optimizer.hpp"

#include <cmath>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

/// The fewest digits that read back to the same number.
std::string fewest_digits(double value) { return fmt::format("{}", value); }

void read_algorithm(YamlMap m, OptimizerSpec& o) {
  const std::string name = m.choice("name", {"adamw", "decoupled_adamw", "decoupled_lionw", "lionw", "muon"}, "adamw");
  const bool decoupled = name.starts_with("decoupled_"), lion = name.ends_with("lionw");
  o.kind = lion ? OptimizerKind::lionw : name == "muon" ? OptimizerKind::muon : OptimizerKind::adamw;
  if (lion) o.beta2 = 0.99, o.lr = 1e-4;            // llmfoundry/optim/lion.py
  if (decoupled) o.weight_decay = lion ? 0 : 1e-5;  // likewise, and composer/optim/decoupled_weight_decay.py
  o.offload_fraction = m.number_or("offload_fraction", 0.0, 0.0, 1.0);
  if (o.kind != OptimizerKind::adamw && o.offload_fraction > 0)
    m.fail("offload_fraction", "found {} with {}, allowed is 0: the host updates AdamW's states alone",
           o.offload_fraction, name);
  if (m.has("orthogonalize")) {
    if (o.kind != OptimizerKind::muon) m.fail("orthogonalize", "found with {}, needs muon", name);
    o.orthogonalize_everywhere = m.choice("orthogonalize", {"owner", "everywhere"}) == "everywhere";
  }
  o.lr = m.number_or("lr", o.lr, 0.0);
  o.eps = m.number_or("eps", o.eps, 0.0);
  o.weight_decay = m.number_or("weight_decay", o.weight_decay, 0.0);
  if (decoupled && o.weight_decay > 0) {
    if (o.lr == 0) m.fail("lr", "found 0 with {}, which divides by it; needs more", name);
    o.weight_decay /= o.lr;
  }
  if (m.has("betas")) {
    if (m.has("beta1") || m.has("beta2")) m.fail("betas", "found beta1 or beta2, too; needs one of the ways");
    std::vector<double> betas;
    const std::string needs = "needs a list of two numbers from 0 to 1, such as [0.9, 0.95]";
    try {
      betas = m.node("betas").as<std::vector<double>>();
    } catch (const YAML::Exception&) {
      m.fail("betas", needs);
    }
    if (betas.size() != 2) m.fail("betas", "found {} numbers, {}", betas.size(), needs);
    for (const double beta : betas)
      if (!(beta >= 0 && beta <= 1)) m.fail("betas", "found {}, {}", beta, needs);
    o.beta1 = betas[0], o.beta2 = betas[1];
  } else {
    o.beta1 = m.number_or("beta1", o.beta1, 0.0, 1.0);
    o.beta2 = m.number_or("beta2", o.beta2, 0.0, 1.0);
  }
  m.finish();
}

void read_schedule(YamlMap m, const RunClock& clock, OptimizerSpec& o) {
  const std::string name = m.choice("name", schedule_kind_names(), "cosine_with_warmup");
  o.schedule = *enumerator_of<ScheduleKind>(name, schedule_kind_names());
  o.first_step = m.integer_or("first_step", o.first_step, 0);
  if (o.first_step > 1) m.fail("first_step", "found {}, allowed are 0 and 1", o.first_step);
  o.warmup_steps = read_duration(m, "t_warmup", clock, 0);
  o.schedule_steps = read_duration(m, "t_max", clock, 0);
  switch (o.schedule) {
    case ScheduleKind::cosine:
      o.final_lr_fraction = m.number_or("alpha_f", o.final_lr_fraction, 0.0, 1.0);
      break;
    case ScheduleKind::linear:
      o.initial_lr_fraction = m.number_or("alpha_i", 1, 0.0);
      o.final_lr_fraction = m.number_or("alpha_f", 0, 0.0);
      break;
    case ScheduleKind::constant:
      o.initial_lr_fraction = m.number_or("alpha", 1, 0.0);
      break;
    case ScheduleKind::inverse_sqrt:
      o.final_lr_fraction = m.number_or("alpha_f_decay", 0, 0.0);
      o.cooldown_lr_fraction = m.number_or("alpha_f_cooldown", 0, 0.0);
      if (!m.has("t_scale")) m.fail("t_scale", "found none, needs a time such as 100ba: the rate falls with its root");
      o.scale_steps = read_duration(m, "t_scale", clock, 0);
      o.cooldown_steps = read_duration(m, "t_cooldown", clock, 0);
  }
  check_schedule(o, m.where("name"));
  m.finish();
}

}  // namespace

std::string to_string(OptimizerKind kind) {
  return kind == OptimizerKind::muon ? "muon" : kind == OptimizerKind::lionw ? "lionw" : "adamw";
}

std::string to_string(ScheduleKind kind) { return word_for(kind, schedule_kind_names()); }

const std::vector<std::string>& schedule_kind_names() {
  static const std::vector<std::string> names{"cosine_with_warmup", "linear_decay_with_warmup", "constant_with_warmup",
                                              "inv_sqrt_with_warmup"};
  return names;
}

void check_schedule(const OptimizerSpec& o, const std::string& where) {
  if (o.schedule != ScheduleKind::inverse_sqrt) return;
  if (o.scale_steps <= 0)
    throw_usage("{}: t_scale: found {} batches, needs more than 0: times are counted in it", where, o.scale_steps);
  if (o.final_lr_fraction < o.cooldown_lr_fraction)
    throw_usage("{}: alpha_f_cooldown: found {}, needs at most alpha_f_decay = {}: the rate must not rise", where,
                o.cooldown_lr_fraction, o.final_lr_fraction);
}

void read_optimizer(YamlMap& run, const RunClock& clock, OptimizerSpec& o) {
  if (run.has("optimizer")) read_algorithm(run.map("optimizer"), o);
  if (run.has("scheduler")) read_schedule(run.map("scheduler"), clock, o);
  if (run.has("algorithms")) {
    YamlMap m = run.map("algorithms");
    YamlMap clip = m.map("gradient_clipping");
    clip.choice("clipping_type", {"norm"}, "norm");
    o.clip_norm = clip.number("clipping_threshold", 0.0);
    clip.finish();
    m.finish();
  }
}

std::string duration_text(double batches, std::int64_t step_tokens) {
  if (batches == std::floor(batches)) return fmt::format("{}ba", static_cast<std::int64_t>(batches));
  return fmt::format("{}tok", std::llround(batches * static_cast<double>(step_tokens)));
}

void optimizer_to_yaml(const OptimizerSpec& o, std::int64_t step_tokens, YAML::Emitter& out) {
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  key("optimizer") << YAML::BeginMap;
  key("name") << to_string(o.kind);
  key("lr") << fewest_digits(o.lr);
  key("beta1") << fewest_digits(o.beta1);
  key("beta2") << fewest_digits(o.beta2);
  key("eps") << fewest_digits(o.eps);
  key("weight_decay") << fewest_digits(o.weight_decay);
  if (o.offload_fraction > 0) key("offload_fraction") << fewest_digits(o.offload_fraction);
  if (o.orthogonalize_everywhere) key("orthogonalize") << "everywhere";
  out << YAML::EndMap;
  key("scheduler") << YAML::BeginMap;
  key("name") << to_string(o.schedule);
  key("t_warmup") << duration_text(o.warmup_steps, step_tokens);
  if (o.schedule_steps > 0) key("t_max") << duration_text(o.schedule_steps, step_tokens);
  switch (o.schedule) {
    case ScheduleKind::cosine:
      key("alpha_f") << fewest_digits(o.final_lr_fraction);
      break;
    case ScheduleKind::linear:
      key("alpha_i") << fewest_digits(o.initial_lr_fraction);
      key("alpha_f") << fewest_digits(o.final_lr_fraction);
      break;
    case ScheduleKind::constant:
      key("alpha") << fewest_digits(o.initial_lr_fraction);
      break;
    case ScheduleKind::inverse_sqrt:
      key("t_scale") << duration_text(o.scale_steps, step_tokens);
      key("t_cooldown") << duration_text(o.cooldown_steps, step_tokens);
      key("alpha_f_decay") << fewest_digits(o.final_lr_fraction);
      key("alpha_f_cooldown") << fewest_digits(o.cooldown_lr_fraction);
  }
  if (o.first_step != 1) key("first_step") << o.first_step;
  out << YAML::EndMap;
  key("algorithms") << YAML::BeginMap;
  key("gradient_clipping") << YAML::BeginMap;
  key("clipping_type") << "norm";
  key("clipping_threshold") << fewest_digits(o.clip_norm);
  out << YAML::EndMap << YAML::EndMap;
}

}  // namespace wt
