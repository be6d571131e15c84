#include "planner/plan/decision.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "configs/spec/study_keys.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/number.hpp"
#include "configs/spec/support/quantity.hpp"

namespace wt {
namespace {

std::int64_t whole(const std::string& text, const std::string& all) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1)
    throw_error(Code::usage, "--gpus: found '{}', needs whole numbers from 1: 256, 256,512 or 256..4096", all);
  return value;
}

PlannedOption planned(const StudySpec& study, const std::string& origin, const std::string& cluster, std::int64_t gpus,
                      bool allow_assumed, const SearchProgress& progress) {
  PlannedOption out{cluster, gpus, {}, {}, "", false};
  std::string text = study.text;
  if (!cluster.empty()) text = set_study_key(text, "cluster", nlohmann::json(cluster).dump(), origin);
  text = set_study_key(text, "gpus", std::to_string(gpus), origin);
  StudySpec one = study_from_text(text, origin);
  out.cluster = one.cluster.name;
  out.inputs = read_plan_inputs(std::move(one), allow_assumed);
  try {
    out.plan = make_plan(*out.inputs, progress);
  } catch (const Error& error) {  // the option's own: nothing fits, or nothing divides its GPUs and the batch
    out.misfit = error.what();
  }
  return out;
}

std::string name_of(const PlannedOption& o) { return fmt::format("{} {} GPUs", o.gpus, o.cluster); }

std::string finish_of(const PlannedOption& o) {
  return fmt::format("{:.1f} days (95 % of runs within {:.1f})", o.days(), o.p95_days());
}

/// What would bring the nearest miss into time.
std::string remedy(const PlannedOption& o, double within_days) {
  const double factor = o.p95_days() / within_days, tokens = o.inputs->study.tokens / factor;
  return fmt::format("a step {:.0f} % shorter, {} tokens instead of {}, or more GPUs would do", 100 * (1 - 1 / factor),
                     format_tokens(tokens), format_tokens(o.inputs->study.tokens));
}

void weigh(Decision& d, const DecisionSpec& asked) {
  const auto better = [&](const PlannedOption& a, const PlannedOption& b) {
    if (asked.prefer == Prefer::gpus && a.gpus != b.gpus) return a.gpus < b.gpus;
    return a.days() < b.days();
  };
  for (std::size_t i = 0; i < d.options.size(); ++i) {
    PlannedOption& o = d.options[i];
    if (!o.plan) continue;
    o.in_time = !asked.within_s || o.p95_days() * kDay_s <= *asked.within_s;
    if (o.in_time && (!d.chosen || better(o, d.options[*d.chosen]))) d.chosen = i;
    if (!d.nearest || o.p95_days() < d.options[*d.nearest].p95_days()) d.nearest = i;
    const bool beaten = std::any_of(d.options.begin(), d.options.end(), [&](const PlannedOption& other) {
      return other.plan && other.days() <= o.days() && other.gpu_hours() <= o.gpu_hours() &&
             (other.days() < o.days() || other.gpu_hours() < o.gpu_hours());
    });
    if (!beaten) d.front.push_back(i);
  }
  std::sort(d.front.begin(), d.front.end(),
            [&](std::size_t a, std::size_t b) { return d.options[a].days() < d.options[b].days(); });
}

std::string sentence_of(const Decision& d, const DecisionSpec& asked) {
  if (d.chosen) {
    const PlannedOption& o = d.options[*d.chosen];
    return fmt::format("{}: {} tokens in {}{}.", name_of(o), format_tokens(o.inputs->study.tokens), finish_of(o),
                       asked.prefer == Prefer::gpus ? ", the fewest GPUs that are in time" : "");
  }
  const PlannedOption& o = d.options[*d.nearest];
  const double within_days = *asked.within_s / kDay_s;
  return fmt::format("None is done within {:.1f} days. The nearest, {}, takes {}: {}.", within_days, name_of(o),
                     finish_of(o), remedy(o, within_days));
}

}  // namespace

double PlannedOption::p95_days() const { return plan->runs.distribution.p95_s / kDay_s; }

double PlannedOption::gpu_hours() const { return days() * 24 * as_double(gpus); }

std::vector<std::int64_t> parse_gpus(const std::string& text) {
  std::vector<std::int64_t> out;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::int64_t first = whole(text.substr(0, dots), text), last = whole(text.substr(dots + 2), text);
    if (last < first)
      throw_error(Code::usage, "--gpus: found {}, needs the smaller number first: {}..{}", text, last, first);
    for (std::int64_t gpus = first; gpus <= last; gpus *= 2) {
      out.push_back(gpus);
      if (gpus % 2 == 0 && gpus / 2 * 3 <= last) out.push_back(gpus / 2 * 3);
    }
    if (out.back() != last) out.push_back(last);
    return out;
  }
  std::size_t begin = 0;
  for (std::size_t comma; begin <= text.size(); begin = comma + 1) {
    comma = std::min(text.find(',', begin), text.size());
    out.push_back(whole(text.substr(begin, comma - begin), text));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Decision decide(const StudySpec& study, const std::string& origin, const DecisionSpec& asked, bool allow_assumed,
                const SearchProgress& progress) {
  Decision d;
  const std::vector<std::string> clusters = asked.clusters.empty() ? std::vector<std::string>{""} : asked.clusters;
  const std::vector<std::int64_t> numbers = asked.gpus.empty() ? std::vector{study.gpus} : asked.gpus;
  const auto total = static_cast<std::int64_t>(clusters.size() * numbers.size());
  for (const std::string& cluster : clusters)
    for (const std::int64_t gpus : numbers) {
      const auto part = [&](const std::string& what, std::int64_t, std::int64_t, const std::string& layout) {
        progress("planning options", static_cast<std::int64_t>(d.options.size()), total,
                 fmt::format("{} GPUs, {}{}", gpus, what, layout.empty() ? "" : ", " + layout));
      };
      d.options.push_back(
          planned(study, origin, cluster, gpus, allow_assumed, progress ? SearchProgress(part) : SearchProgress()));
    }
  weigh(d, asked);
  if (!d.nearest)
    throw_error(Code::finding, "nothing fits on any of the options; the last: {}", d.options.back().misfit);
  d.sentence = sentence_of(d, asked);
  return d;
}

}  // namespace wt
