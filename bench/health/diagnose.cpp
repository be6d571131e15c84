#include <fmt/core.h>
#include <array>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "bench/health/training.hpp"
#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/trend.hpp"

namespace wt {
namespace {

using Window = std::span<const TrainingStep>;

double step_s(Window window) {
  std::vector<double> values;
  for (const TrainingStep& step : window) values.push_back(step.step_s);
  return median(values);
}

/// Median of a signal; none if a step of the window lacks it.
std::optional<double> of(Window window, std::optional<double> TrainingStep::*member) {
  std::vector<double> values;
  for (const TrainingStep& step : window)
    if (step.*member) values.push_back(*(step.*member));
  return values.size() == window.size() ? std::optional(median(values)) : std::nullopt;
}

/// The fastest window of the run so far, which the current one is compared with.
Window best_window(Window steps, std::size_t window) {
  Window best = steps.first(window);
  for (std::size_t i = 1; i + window <= steps.size(); ++i)
    if (step_s(steps.subspan(i, window)) < step_s(best)) best = steps.subspan(i, window);
  return best;
}

std::string share(double value) { return fmt::format("{:.0f} %", 100 * value); }

double known(std::initializer_list<bool> signals) {
  return static_cast<double>(std::ranges::count(signals, true)) / static_cast<double>(signals.size());
}

std::vector<double> losses(Window window) {
  std::vector<double> out;
  for (const TrainingStep& step : window) out.push_back(step.loss);
  return out;
}

/// The reason for which the loss alone shows that the run is lost; "" otherwise. Its level is the lowest median of a
/// window before the last one.
std::string lost_loss(Window steps, const DiagnosisOptions& options) {
  const Window last = steps.last(options.window), before = steps.first(steps.size() - options.window);
  for (const TrainingStep& step : last)
    if (!std::isfinite(step.loss))
      return fmt::format("the loss is no number since step {}, and steps go on", step.step);
  if (std::ranges::all_of(last, [&](const TrainingStep& s) { return s.loss == last.front().loss; }))
    return fmt::format("the loss is {:g} to the last bit for {} steps: nothing is learnt", last.front().loss,
                       last.size());
  double level = std::numeric_limits<double>::infinity(), deviation = 0;
  for (std::size_t i = 0; i + options.window <= before.size(); ++i) {
    const std::vector<double> values = losses(before.subspan(i, options.window));
    if (!std::ranges::all_of(values, [](double loss) { return std::isfinite(loss); })) continue;
    if (const double now = median(values); now < level) level = now, deviation = deviation_from_trend(values);
  }
  const std::vector<double> values = losses(last);
  const double rise =
      std::max(options.loss_rise, options.loss_deviations * std::max(deviation, deviation_from_trend(values)));
  return median(values) > level + rise ? fmt::format("the loss rose from {:.4g} to {:.4g}", level, median(values)) : "";
}

void diagnose_stall(const TrainingObservation& t, double silent_s, double typical_s, const DiagnosisOptions& o,
                    Diagnosis& out) {
  const bool busy = t.utilisation && *t.utilisation >= o.busy, idle = t.utilisation && *t.utilisation <= o.idle;
  out.confidence = known({true, t.utilisation.has_value(), t.network_Bps.has_value()});
  const std::string since = t.steps.empty() ? fmt::format("no first step for {}", format_seconds(silent_s))
                                            : fmt::format("no step for {}, {:.0f} times the usual one",
                                                          format_seconds(silent_s), silent_s / typical_s);
  if (t.network_Bps && *t.network_Bps > o.silent_Bps) {
    out.ailment = Ailment::undecided;
    out.reason = fmt::format("{}, but the network moves {}/s", since, format_bytes(*t.network_Bps));
    out.action = "look whether it evaluates or saves; look again";
    return;
  }
  out.ailment = Ailment::silent_failure;
  out.reason = since;
  if (t.network_Bps) out.reason += ", the network is silent";
  if (busy)
    out.reason += fmt::format(", devices are {} busy: a hung collective or kernel", share(*t.utilisation));
  else if (idle)
    out.reason +=
        fmt::format(", devices are {} busy: the host waits for input, storage or a dead rank", share(*t.utilisation));
  out.action = "stop and restart the job from its checkpoint, then windtunnel health on every node";
}

void diagnose_slow(const TrainingObservation& t, Window last, Window best, const DiagnosisOptions& o, Diagnosis& out) {
  const double grew = step_s(last) - step_s(best);
  const auto exact = of(last, &TrainingStep::expert_imbalance), exact_best = of(best, &TrainingStep::expert_imbalance);
  const auto proxy = of(last, &TrainingStep::aux_loss), proxy_best = of(best, &TrainingStep::aux_loss);
  const bool counted = exact && exact_best && *exact_best > 0,
             balanced_by_loss = proxy && proxy_best && *proxy_best > 0;
  const double rise = counted ? *exact / *exact_best : balanced_by_loss ? *proxy / *proxy_best : 1;
  const auto exposed = of(last, &TrainingStep::exposed_communication_s),
             exposed_best = of(best, &TrainingStep::exposed_communication_s);
  const std::string slower =
      fmt::format("steps take {} instead of {}", format_seconds(step_s(last)), format_seconds(step_s(best)));
  out.confidence = known({true, counted || balanced_by_loss, t.utilisation.has_value(), t.network_Bps.has_value()});

  if (out.relative_pace > 0.95) {  // MFU is low, but as high as it ever was in this run
    const bool starved = t.utilisation && *t.utilisation <= o.idle;
    out.ailment = starved ? Ailment::starved_input : Ailment::undecided;
    out.reason = starved ? fmt::format("devices are {} busy, from the first step on", share(*t.utilisation))
                         : "the run was never faster than it is now";
    out.action =
        starved ? "give the data path more workers, or put the data nearer" : "compare with windtunnel simulate";
    return;
  }
  // Loads that grew by a factor lengthen a step by at most that factor.
  const bool explains = rise >= o.imbalance_rise && (!counted || 1 / out.relative_pace <= 1.1 * rise);
  if (explains) {
    out.ailment = Ailment::imbalanced_router;
    out.reason = fmt::format("{}, while {} rose by {}: expert loads, not hardware", slower,
                             counted ? "the largest expert load" : "the balancing loss", share(rise - 1));
    out.action = "cordon nobody; raise the balancing loss or place experts anew";
    return;
  }
  const double waits = exposed && exposed_best && grew > 0 ? (*exposed - *exposed_best) / grew : 0;
  if (waits >= 0.5) {
    out.ailment = Ailment::slow_hardware;
    out.reason =
        fmt::format("{}, {} of the difference waiting for collectives: the network, or a slower rank elsewhere", slower,
                    share(waits));
    out.action = "windtunnel health on every node, judged together";
  } else if (t.utilisation && *t.utilisation <= o.idle) {
    out.ailment = Ailment::starved_input;
    out.reason =
        fmt::format("{}, devices are {} busy and wait no longer for collectives", slower, share(*t.utilisation));
    out.action = "look at the data path; cordon nobody";
  } else if (t.utilisation && *t.utilisation >= o.busy) {
    out.ailment = Ailment::slow_hardware;
    out.reason = fmt::format("{}, devices are {} busy: they compute slower", slower, share(*t.utilisation));
    out.action = "look for throttling; windtunnel health on every node, judged together";
  } else {
    out.ailment = Ailment::undecided;
    out.reason = slower + (t.utilisation ? fmt::format(", devices are {} busy", share(*t.utilisation))
                                         : ", and nothing says how busy the devices are");
    out.action = t.utilisation ? "windtunnel health on every node, judged together" : "give DCGM's metrics with --dcgm";
  }
}

}  // namespace

Diagnosis diagnose(const TrainingObservation& t, const DiagnosisOptions& o) {
  if (o.window < 2 || !(o.mfu_below > 0) || o.mfu_below > 1)
    throw_usage("health: found a window of {} steps and a threshold of {}, allowed 2 or more and above 0 up to 1",
                o.window, o.mfu_below);
  Diagnosis out;
  const Window steps(t.steps), last = steps.last(std::min(o.window, steps.size()));
  const double silent_s = t.now_unix_s - t.last_sign_unix_s, typical_s = last.empty() ? o.least_stall_s : step_s(last);
  const bool stalled = !t.ended && silent_s > std::max(o.least_stall_s, o.stall_factor * typical_s);
  if (steps.size() < o.window) {
    if (stalled) {
      diagnose_stall(t, silent_s, typical_s, o, out);
      return out;
    }
    out.ailment = Ailment::undecided;
    out.confidence = 0;
    out.reason = fmt::format("{} steps so far, needs {}", steps.size(), o.window);
    out.action = "wait";
    return out;
  }
  const Window best = best_window(steps, o.window);
  out.relative_pace = step_s(best) / step_s(last);
  out.mfu = of(last, &TrainingStep::mfu);
  if (const std::string lost = lost_loss(steps, o); !lost.empty()) {
    out.ailment = Ailment::silent_failure;
    out.reason = lost;
    out.action = "go back to a checkpoint from before; windtunnel health on every node finds wrong results";
  } else if (stalled) {
    diagnose_stall(t, silent_s, typical_s, o, out);
  } else if (out.mfu.value_or(out.relative_pace) < o.mfu_below) {
    diagnose_slow(t, last, best, o, out);
  } else {
    out.reason = fmt::format("{} of the run's best pace{}", share(out.relative_pace),
                             out.mfu ? fmt::format(", MFU {}", share(*out.mfu)) : "");
  }
  return out;
}

std::string to_string(Ailment ailment) {
  return word_for(ailment, std::array{"fine", "silent failure", "slow hardware", "imbalanced router",
                                      "starved of input", "undecided"});
}

}  // namespace wt
