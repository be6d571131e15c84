#include "planner/plan/decision.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/plan/other_gpus.hpp"

namespace wt {
namespace {

// The value of knowing one class of times of one cluster before an option is chosen: how often the choice would change,
// and the saving. Uses the plans' simulations; simulates nothing.

/// An option's step with a class of times at the low and high end of its interval, relative to the middle.
std::array<double, 2> factors(const PlannedOption& o, const std::string& times) {
  const RobustChoice& r = o.plan->robust;
  std::array<double, 2> out{1, 1};
  for (const VariedClass& varied : r.classes)
    if (varied.times.name == times)
      for (std::size_t end = 0; end < out.size(); ++end)
        out[end] = r.table.steps_s[varied.scenarios[end]][r.chosen] / r.table.steps_s[0][r.chosen];
  return out;
}

bool asks_times(const Decision& d) { return d.chosen && d.prefer != Prefer::gpus; }

/// The classes of times of every cluster with feasible options that would change the choice, ordered by the saving. A
/// class changes all options of its cluster, and each keeps its plan's layout. Empty if the fewest GPUs are preferred,
/// because times do not change numbers of GPUs.
std::vector<OptionWorth> option_worths(const Decision& d) {
  std::vector<OptionWorth> out;
  if (!asks_times(d)) return out;
  std::vector<const PlannedOption*> options;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < d.options.size(); ++i) {
    if (!d.options[i].plan || !d.options[i].feasible()) continue;
    if (i == *d.chosen) chosen = options.size();
    options.push_back(&d.options[i]);
  }
  std::map<std::pair<std::string, std::string>, const Worth*> classes;  // by cluster and times
  for (const PlannedOption* o : options)
    for (const Worth& w : o->plan->next.rows)
      if (w.measurable()) classes.try_emplace({o->cluster, w.what}, &w);
  for (const auto& [key, row] : classes) {
    const auto& [cluster, times] = key;
    if (std::ranges::any_of(options, [&known = key](const PlannedOption* o) {
          return o->cluster == known.first && std::ranges::count(o->plan->robust.not_reached, known.second) > 0;
        }))
      continue;  // its effect on one of these options is unknown
    std::array<std::vector<double>, 3> cases;
    for (const PlannedOption* o : options) {
      const std::array<double, 2> ends = o->cluster == cluster ? factors(*o, times) : std::array<double, 2>{1, 1};
      const double value = preferred(*o, d.prefer);  // days, money and energy are proportional to the step
      cases[0].push_back(ends[0] * value);
      cases[1].push_back(value);
      cases[2].push_back(ends[1] * value);
    }
    const ValueOfKnowing known = value_of_knowing(cases, chosen, 0);
    if (known.changes > 0)
      out.push_back({cluster, times, known.changes, known.saves_s, row->minutes, row->how, row->joint});
  }
  std::ranges::stable_sort(out, {}, [](const OptionWorth& w) { return std::pair(w.joint, -w.saves); });
  return out;
}

/// What to measure first (Decision::next), or that no measurement would change the choice. "" if times are not varied.
std::string option_worth_sentence(const Decision& d) {
  if (!asks_times(d)) return "";
  if (d.next.empty()) {
    const bool all = std::ranges::all_of(d.options, [](const PlannedOption& o) {
      return !o.plan || !o.feasible() || o.plan->robust.not_reached.empty();
    });
    return std::string("No single time that could be measured would change the choice") +
           (all ? "" : ", of those that the budget of simulations reached");
  }
  const OptionWorth& first = d.next.front();
  return fmt::format(
      "Measure {} of {} first: knowing it would change the option in {:.0f} % of cases and saves {} in the mean",
      first.times, first.cluster, 100 * first.changes, amount_text(first.saves, d.preferred_unit));
}

/// A list for each wanted value. Without any: one empty list, which keeps the study's value.
template <typename T>
std::vector<std::vector<T>> one_each(const std::vector<T>& wanted) {
  if (wanted.empty()) return {{}};
  std::vector<std::vector<T>> out;
  for (const T& value : wanted) out.push_back({value});
  return out;
}

void make_plan(PlannedOption& option, const SearchProgress& progress) try {
  option.plan = make_plan_or_say(*option.inputs, progress);
} catch (const Error& error) {
  if (error.code() != Code::finding) throw;  // no layout fits, or no layout divides these GPUs and batch
  option.misfit = error.what();
}

std::string name_of(const Decision& d, const PlannedOption& o) {
  return fmt::format("{} {} GPUs", o.gpus, o.cluster) +
         (d.batches ? fmt::format(" with batches of {} sequences", o.batch) : "");
}

std::string finish_of(const PlannedOption& o) {
  return fmt::format("{:.1f} days (95 % of simulated runs within {:.1f})", o.days(), o.p95_days());
}

double money_p95(const PlannedOption& o) { return o.plan->cost.money->p95; }

/// The largest factor by which the option misses deadline or budget; at most 1 = it does not.
double miss_factor(const PlannedOption& o, const DecisionSpec& asked) {
  double most = 0;
  if (asked.within_s) most = std::max(most, o.p95_days() * kDay_s / *asked.within_s);
  if (asked.budget) most = std::max(most, money_p95(o) / *asked.budget);
  return most;
}

/// What would make the nearest miss feasible.
std::string remedy(const PlannedOption& o, const DecisionSpec& asked) {
  const double factor = miss_factor(o, asked), tokens = o.inputs->study.tokens;
  std::string out = fmt::format("a step {:.0f} % shorter or {} tokens instead of {}", 100 * (1 - 1 / factor),
                                format_tokens(tokens / factor), format_tokens(tokens));
  if (!o.in_time && o.in_budget) out += ", or more GPUs,";
  if (!o.in_budget && o.in_time) out += fmt::format(", or a budget of {:.3g} million,", money_p95(o) / 1e6);
  return out + " would do";
}

/// Runs before anything is planned, because planning takes minutes.
void check_prices(const std::vector<StudySpec>& studies, const DecisionSpec& asked) {
  const StudySpec* first = nullptr;
  for (const StudySpec& s : studies) {
    const bool money = costs_money(s.prices);
    if (money) {
      if (first && first->prices->currency != s.prices->currency)
        throw_usage("plan: found prices of {} in {} and of {} in {}; needs one currency", first->cluster.name,
                    first->prices->currency, s.cluster.name, s.prices->currency);
      first = &s;
    }
    const auto needs = [&](bool there, const char* what) {
      if (!there)
        throw_usage("plan: found {} without prices of {}; needs a map prices in the cluster or the study", what,
                    s.cluster.name);
    };
    needs(!asked.budget || money, "--budget");
    needs(s.prefer != Prefer::money || money, "prefer: money");
    needs(s.prefer != Prefer::energy || (s.prices && s.prices->power), "prefer: energy");
  }
}

void weigh(Decision& d, const DecisionSpec& asked) {
  const auto rank = [&](const PlannedOption& o) { return std::pair(preferred(o, d.prefer), o.days()); };
  d.priced = std::ranges::all_of(d.options, [](const PlannedOption& o) { return !o.plan || o.plan->cost.money; });
  for (std::size_t i = 0; i < d.options.size(); ++i) {
    PlannedOption& o = d.options[i];
    if (!o.plan) continue;
    o.in_time = !asked.within_s || o.p95_days() * kDay_s <= *asked.within_s;
    o.in_budget = !asked.budget || money_p95(o) <= *asked.budget;
    if (o.feasible() && (!d.chosen || rank(o) < rank(d.options[*d.chosen]))) d.chosen = i;
    if (!d.nearest || miss_factor(o, asked) < miss_factor(d.options[*d.nearest], asked)) d.nearest = i;
    const bool beaten = std::ranges::any_of(d.options, [&](const PlannedOption& other) {
      return other.plan && other.days() <= o.days() && other.spent(d.priced) <= o.spent(d.priced) &&
             (other.days() < o.days() || other.spent(d.priced) < o.spent(d.priced));
    });
    if (!beaten) d.front.push_back(i);
  }
  std::ranges::sort(d.front, [&](std::size_t a, std::size_t b) { return d.options[a].days() < d.options[b].days(); });
}

std::string unit_of(const Decision& d) {
  if (d.prefer == Prefer::money) return d.options[*d.nearest].plan->cost.prices->currency;
  return d.prefer == Prefer::days ? "days" : d.prefer == Prefer::gpus ? "GPUs" : "kWh";
}

std::string sentence_of(const Decision& d, const DecisionSpec& asked) {
  static const std::vector<std::string> why{"", ", the fewest GPUs", ", for the least money",
                                            ", with the least energy"};
  std::string limits;
  if (asked.within_s) limits += fmt::format(" within {:.1f} days", *asked.within_s / kDay_s);
  if (asked.budget) limits += fmt::format("{} for {:.3g} million", limits.empty() ? "" : " and", *asked.budget / 1e6);
  if (d.chosen) {
    const PlannedOption& o = d.options[*d.chosen];
    return fmt::format("{}: {} tokens in {}{}{}.", name_of(d, o), format_tokens(o.inputs->study.tokens), finish_of(o),
                       why.at(static_cast<std::size_t>(d.prefer)),
                       limits.empty() || d.prefer == Prefer::days ? "" : " of those that are done" + limits);
  }
  const PlannedOption& o = d.options[*d.nearest];
  return fmt::format("None is done{}. The nearest, {}, takes {}: {}.", limits, name_of(d, o), finish_of(o),
                     remedy(o, asked));
}

}  // namespace

double preferred(const PlannedOption& o, Prefer prefer) {
  switch (prefer) {
    case Prefer::gpus:
      return as_double(o.gpus);
    case Prefer::money:
      return o.plan->cost.money->p50;
    case Prefer::energy:
      return o.plan->cost.energy->p50;
    case Prefer::days:
      break;
  }
  return o.days();
}

std::string batch_note(const Decision& d) {
  return d.batches ? "All batches train on the same tokens. What a larger batch costs in loss is not part of this; the "
                     "range is the study's."
                   : "";
}

Decision decide(const std::string& study_text, const std::string& origin, const DecisionSpec& asked, bool allow_assumed,
                const SearchProgress& progress) {
  Decision d;
  const StudyOptions& o = asked.options;
  const std::string text =
      asked.prefer
          ? set_study_key(study_text, "prefer", prefer_names().at(static_cast<std::size_t>(*asked.prefer)), origin)
          : study_text;
  std::vector<StudySpec> studies;
  for (const auto& cluster : one_each(o.clusters))
    for (const auto& gpus : one_each(o.gpus))
      for (const auto& batch : one_each(o.batches))
        studies.push_back(assigned_study(set_options(text, {cluster, gpus, batch}, origin), origin, asked.assignments));
  d.prefer = studies.front().prefer;
  d.batches = o.batches.size() > 1;
  check_prices(studies, asked);
  for (StudySpec& study : studies) {
    d.options.push_back({.cluster = study.cluster.name, .gpus = study.gpus, .batch = study.global_batch});
    d.options.back().inputs = read_plan_inputs(std::move(study), allow_assumed);
  }
  std::int64_t done = 0;
  for (PlannedOption& option : d.options) {
    const std::string name =
        fmt::format("{} GPUs{}", option.gpus, d.batches ? fmt::format(", batch {}", option.batch) : std::string());
    const auto part = [&](const std::string& what, std::int64_t, std::int64_t, const std::string& layout) {
      progress("planning options", done, static_cast<std::int64_t>(d.options.size()),
               fmt::format("{}, {}{}", name, what, layout.empty() ? "" : ", " + layout));
    };
    make_plan(option, progress ? SearchProgress(part) : SearchProgress());
    ++done;
  }
  weigh(d, asked);
  if (!d.nearest)
    throw_error(Code::finding, "nothing fits on any of the options; the last: {}", d.options.back().misfit);
  d.sentence = sentence_of(d, asked);
  d.preferred_unit = unit_of(d);
  d.next = option_worths(d);
  d.next_sentence = option_worth_sentence(d);
  return d;
}

}  // namespace wt
