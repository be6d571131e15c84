// Optimizer, schedule and durations of an LLM Foundry recipe: composer/optim (0.32.1) and llmfoundry/optim (0.22.0).
#include <cmath>

#include "configs/base/error.hpp"
#include "planner/recipes/llm_foundry.hpp"

namespace wt {
namespace {

/// The alpha key of a schedule, and its default.
struct ScheduleKey {
  ScheduleKind kind;
  const char* key;
  double OptimizerSpec::*field;
  double fallback;
};
const std::vector<ScheduleKey> kScheduleKeys{
    {ScheduleKind::cosine, "alpha_f", &OptimizerSpec::final_lr_fraction, 0},
    {ScheduleKind::linear, "alpha_i", &OptimizerSpec::initial_lr_fraction, 1},
    {ScheduleKind::linear, "alpha_f", &OptimizerSpec::final_lr_fraction, 0},
    {ScheduleKind::constant, "alpha", &OptimizerSpec::initial_lr_fraction, 1},
    {ScheduleKind::inverse_sqrt, "alpha_f_decay", &OptimizerSpec::final_lr_fraction, 0},
    {ScheduleKind::inverse_sqrt, "alpha_f_cooldown", &OptimizerSpec::cooldown_lr_fraction, 0}};

/// The common unit of a schedule, because Composer refuses a warm-up in another unit than the schedule's end: batches
/// if all lengths are whole, else tokens.
class FoundryUnit {
 public:
  explicit FoundryUnit(const RunSpec& run) : run_(run) {
    const OptimizerSpec& o = run.optimizer;
    const bool decay = o.schedule == ScheduleKind::inverse_sqrt;
    for (const double length :
         {o.warmup_steps, o.schedule_steps, decay ? o.scale_steps : 0, decay ? o.cooldown_steps : 0})
      batches_ = batches_ && length == std::floor(length);
  }
  bool batches() const { return batches_; }
  std::string text(double batches) const {
    if (batches_) return fmt::format("{}ba", static_cast<std::int64_t>(batches));
    // LLM Foundry counts the tokens of finetuning examples without padding.
    const bool samples = run_.dataset.finetuning.has_value();
    const double each = static_cast<double>(samples ? run_.global_batch : run_.tokens_per_step());
    return fmt::format("{}{}", std::llround(batches * each), samples ? "sp" : "tok");
  }

 private:
  const RunSpec& run_;
  bool batches_ = true;
};

/// The run's length: the schedule's end if that is within the last batch.
double foundry_length(const RunSpec& run) {
  const double end = run.optimizer.schedule_steps, steps = static_cast<double>(run.steps);
  return end > 0 && std::ceil(end) == steps ? end : steps;
}

/// The unit in which Composer counts a length. A fraction of the run has the run's unit; epochs are counted in batches.
std::string unit_of(const Duration& duration, const Duration& whole) {
  const std::string& unit = duration.unit == "dur" ? whole.unit : duration.unit;
  return unit == "ep" ? "ba" : unit;
}

Duration read_foundry_duration(RecipeReading& reading, const std::string& key, const std::string& fallback) {
  return Duration::parse(reading.in.text(key, fallback), reading.in.origin() + ": " + key);
}

}  // namespace

FoundryClock::FoundryClock(RecipeReading& reading)
    : reading_(reading), whole_(read_foundry_duration(reading, "max_duration", "")) {
  const RunSpec& run = reading.run;
  const std::string where = reading.in.origin() + ": max_duration";
  clock_ = RunClock({run.global_batch, run.seq,
                     [this, &reading, where, data = run.dataset, ranks = run.layout.data_ranks(),
                      batch = run.global_batch]() -> std::int64_t {
                       try {
                         const std::int64_t samples = samples_of_epoch(data, where);
                         const std::int64_t each = data.samples_drawn(std::max<std::int64_t>(1, batch / ranks));
                         return std::max<std::int64_t>(1, (samples + ranks - 1) / ranks / each);
                       } catch (const Error&) {
                         if (!said_epoch_)
                           reading.assume(
                               "max_duration: found epochs of a data set that is not here ({}); an epoch is taken as 1 "
                               "batch: give batches, or import beside the data",
                               data.empty() ? "no train_loader.dataset.local" : data.folder().string());
                         said_epoch_ = true;
                         return 1;
                       }
                     },
                     run.dataset.finetuning.has_value()},
                    whole_);
}

std::int64_t FoundryClock::steps() const {
  return std::max<std::int64_t>(1, clock_.steps(reading_.in.origin() + ": max_duration"));
}

double FoundryClock::batches(const std::string& key, const std::string& fallback) const {
  return clock_.batches(read_foundry_duration(reading_, key, fallback), reading_.in.origin() + ": " + key);
}

std::int64_t FoundryClock::whole_batches(const std::string& key, std::int64_t fallback) const {
  const double exact = batches(key, fmt::format("{}ba", fallback));
  const double whole = std::ceil(exact - 1e-9);
  if (whole - exact > 1e-9) reading_.assume("{}: found {} batches, taken as {}", key, exact, whole);
  return static_cast<std::int64_t>(whole);
}

void FoundryClock::assume_one_unit(const std::vector<std::string>& keys) const {
  const std::string t_max = "scheduler.t_max";
  const std::string unit = unit_of(read_foundry_duration(reading_, t_max, "1dur"), whole_);
  for (const std::string& key : keys) {
    if (!reading_.in.has(key)) continue;
    const std::string text = reading_.in.text(key, "");
    const Duration found = read_foundry_duration(reading_, key, "");
    if (unit_of(found, whole_) != unit)
      reading_.assume("{}: found {}, and an end in {}, which LLM Foundry refuses; taken as {} batches", key, text, unit,
                      batches(key, ""));
  }
}

void write_foundry_optimizer(RecipeDraft& draft) {
  const OptimizerSpec& o = draft.run.optimizer;
  const FoundryUnit unit(draft.run);
  Settings& out = draft.out;
  out.put("optimizer.name", o.one_moment() ? "decoupled_lionw" : "decoupled_adamw");
  out.put("optimizer.betas", Settings::Value::array({o.beta1, o.beta2}));
  if (!o.one_moment()) out.put("optimizer.eps", o.eps);
  out.put("optimizer.weight_decay",
          twelve_digits(o.weight_decay * o.lr));  // Composer scales the decay by lr / first lr, our run by lr
  out.put("scheduler.name", to_string(o.schedule));
  out.put("scheduler.t_warmup", unit.text(o.warmup_steps));
  out.put("max_duration", unit.text(foundry_length(draft.run)));
  const bool inside = o.schedule_steps != std::floor(o.schedule_steps);
  if (o.schedule_steps > 0 && !(inside && o.schedule_steps == foundry_length(draft.run)))
    out.put("scheduler.t_max", unit.text(o.schedule_steps));
  if (o.schedule_steps > 0 && o.schedule_steps < foundry_length(draft.run))
    draft.not_expressed.push_back(
        fmt::format("scheduler.t_max: found {} batches of {}, and LLM Foundry refuses one before the run's end",
                    o.schedule_steps, draft.run.steps));
  for (const ScheduleKey& key : kScheduleKeys)
    if (key.kind == o.schedule) out.put(std::string("scheduler.") + key.key, o.*key.field);
  if (o.schedule != ScheduleKind::inverse_sqrt) return;
  out.put("scheduler.t_scale", unit.text(o.scale_steps));
  out.put("scheduler.t_cooldown", unit.text(o.cooldown_steps));
}

void read_foundry_optimizer(RecipeReading& reading, const FoundryClock& clock) {
  OptimizerSpec& o = reading.run.optimizer;
  const std::string name = reading.in.text("optimizer.name", "decoupled_adamw");
  if (name != "decoupled_adamw" && name != "decoupled_lionw")
    reading.in.fail("optimizer.name", "found {}, needs decoupled_adamw or decoupled_lionw", name);
  const bool lion = name == "decoupled_lionw";
  o.kind = lion ? OptimizerKind::lionw : OptimizerKind::adamw;
  if (!reading.in.has("optimizer.lr")) o.lr = lion ? 1e-4 : 1e-3;
  o.beta1 = 0.9, o.beta2 = lion ? 0.99 : 0.95;
  if (!lion) o.eps = reading.in.number("optimizer.eps", 1e-8);
  const Settings::Value betas = reading.in.value("optimizer.betas");
  if (betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number())
    o.beta1 = betas[0], o.beta2 = betas[1];
  else if (!betas.is_null())
    reading.in.fail("optimizer.betas", "found {}, needs two numbers", betas.dump());
  const double decay = reading.in.number("optimizer.weight_decay", lion ? 0 : 1e-5);
  if (decay > 0 && o.lr == 0) reading.in.fail("optimizer.lr", "found 0, needs more: the decay is relative to it");
  o.weight_decay = recipe_ratio(decay, o.lr);

  const std::string schedule = reading.in.text("scheduler.name", "cosine_with_warmup");
  bool known = false;
  for (const ScheduleKind kind :
       {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::constant, ScheduleKind::inverse_sqrt})
    if (to_string(kind) == schedule) o.schedule = kind, known = true;
  if (!known)
    reading.in.fail(
        "scheduler.name",
        "found {}, needs cosine_with_warmup, linear_decay_with_warmup, constant_with_warmup or inv_sqrt_with_warmup",
        schedule);
  o.first_step = 0;
  o.warmup_steps = clock.batches("scheduler.t_warmup", "0ba");
  o.schedule_steps = 0;
  if (reading.in.text("scheduler.t_max", "1dur") != "1dur")
    o.schedule_steps = clock.batches("scheduler.t_max", "1dur");
  else if (const double end = clock.whole(); end != std::floor(end))
    o.schedule_steps = end;  // it lies within the run's last batch
  for (const ScheduleKey& key : kScheduleKeys)
    if (key.kind == o.schedule) o.*key.field = reading.in.number(std::string("scheduler.") + key.key, key.fallback);
  if (o.schedule == ScheduleKind::inverse_sqrt) {
    o.scale_steps = clock.batches("scheduler.t_scale", "");
    o.cooldown_steps = clock.batches("scheduler.t_cooldown", "");
  }
  clock.assume_one_unit({"scheduler.t_warmup", "scheduler.t_scale", "scheduler.t_cooldown"});
  check_schedule(o, reading.in.origin() + ": scheduler");
  if (reading.in.boolean("scheduler.scale_warmup", false))
    reading.assume("scheduler.scale_warmup: found true, which does nothing without a scale_schedule_ratio");

  const std::string clipping = reading.in.text("algorithms.gradient_clipping.clipping_type", "norm");
  if (clipping != "norm")
    reading.in.fail("algorithms.gradient_clipping.clipping_type", "found {}, needs norm", clipping);
}

}  // namespace wt
