#include "planner/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/quantity.hpp"
#include "configs/spec/support/text.hpp"
#include "planner/search/search_evaluate.hpp"

namespace wt {
namespace {

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

/// The study's list, or everything that divides; sorted, each once.
std::vector<std::int64_t> choices(std::vector<std::int64_t> wanted, std::int64_t of) {
  if (wanted.empty()) return divisors(of);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

/// Why a layout is impossible whatever the machine, "" = it divides.
std::string indivisible(const SearchProblem& p, const Layout& layout) {
  if (p.gpus % layout.shard != 0) return "shard size does not divide the GPUs";
  if (layout.shard % layout.expert != 0) return "expert degree does not divide the shard size";
  if (p.model.experts % layout.expert != 0 || (p.model.experts == 0 && layout.expert > 1))
    return "expert degree does not divide the experts";
  if (layout.microbatch * p.gpus > p.global_batch) return "microbatch is larger than a rank's batch";
  return "";
}

[[noreturn]] void nothing_fits(const SearchProblem& p, const SearchResult& result) {
  const Candidate* nearest = nullptr;
  for (const Candidate& c : result.candidates)
    if (c.reason == "memory" && (!nearest || c.memory_bytes < nearest->memory_bytes)) nearest = &c;
  if (!nearest)
    throw_error(Code::usage,
                "search: none of {} combinations divides {} GPUs, {} experts and a batch of {}; set "
                "shard_sizes, expert_degrees and microbatch to auto",
                result.candidates.size(), p.gpus, p.model.experts, p.global_batch);
  throw_error(Code::finding,
              "nothing fits: the nearest miss, {} with recompute {} and microbatch {}, needs {} of {} a GPU; use more "
              "GPUs, GPUs with more memory, or a shorter sequence",
              nearest->layout.name(), to_string(nearest->layout.recompute), nearest->layout.microbatch,
              format_bytes(nearest->memory_bytes), format_bytes(p.memory_limit_bytes));
}

constexpr double kRoomy = 0.9;  ///< of the memory limit: what the model of memory leaves out has to fit in the rest

/// More robust first: room in memory for what the model of it leaves out, then the smaller failure domain (the ranks
/// whose state a lost node takes along), then more room.
bool more_robust(const Candidate& a, const Candidate& b, double limit) {
  const auto roomy = [&](const Candidate& c) { return c.memory_bytes <= kRoomy * limit; };
  if (roomy(a) != roomy(b)) return roomy(a);
  if (a.layout.shard != b.layout.shard) return a.layout.shard < b.layout.shard;
  if (a.memory_bytes != b.memory_bytes) return a.memory_bytes < b.memory_bytes;
  return a.result->step_s < b.result->step_s;
}

void choose(const SearchProblem& p, SearchResult& r) {
  const double fastest_s = r.candidates[r.fastest].result->step_s;
  for (std::size_t i = 0; i < r.candidates.size(); ++i)
    if (r.candidates[i].result && r.candidates[i].result->step_s <= fastest_s * (1 + p.space.tie)) r.ties.push_back(i);
  std::stable_sort(r.ties.begin(), r.ties.end(), [&](std::size_t a, std::size_t b) {
    return r.candidates[a].result->step_s < r.candidates[b].result->step_s;
  });
  r.chosen = r.ties.front();
  for (std::size_t i : r.ties)
    if (more_robust(r.candidates[i], r.candidates[r.chosen], p.memory_limit_bytes)) r.chosen = i;
  if (r.ties.size() == 1) return;
  const Candidate &c = r.candidates[r.chosen], &f = r.candidates[r.fastest];
  const bool roomy = c.memory_bytes <= kRoomy * p.memory_limit_bytes;
  r.tie_break = fmt::format(
      "{} layouts are within {:.1f} % of the fastest. Chosen: the smallest failure domain ({}){} {:.0f} "
      "% of the memory free",
      r.ties.size(), 100 * p.space.tie, counted(c.layout.shard, "GPU"), roomy ? " that leaves" : "; none leaves",
      100 * (1 - kRoomy));
  if (r.chosen != r.fastest)
    r.tie_break += fmt::format(". The fastest, {} ({}, microbatch {}), takes {:.2f} % less time", f.layout.name(),
                               to_string(f.layout.recompute), f.layout.microbatch,
                               100 * (1 - f.result->step_s / c.result->step_s));
}

Certificate certify(const SearchProblem& p, const SearchResult& r) {
  Certificate out;
  out.enumerated = static_cast<std::int64_t>(r.candidates.size());
  out.incumbent_s = r.candidates[r.fastest].result->step_s;
  double rest = std::numeric_limits<double>::infinity();  // smallest bound among those not simulated
  for (const Candidate& c : r.candidates) {
    if (c.fate == Fate::infeasible) ++out.infeasible[c.reason];
    if (c.fate == Fate::bounded) {
      ++out.bounded;
      rest = std::min(rest, c.bound_s());
    }
    if (c.fate != Fate::simulated) continue;
    ++out.simulated;
    if (c.result->step_s < c.bound_s() * (1 - 1e-9)) ++out.violations;
  }
  out.bound_s = std::min(out.incumbent_s, rest);
  out.gap = out.incumbent_s / out.bound_s - 1;
  out.proved = out.gap == 0 && out.violations == 0;
  out.ties_complete = rest > out.incumbent_s * (1 + p.space.tie) && out.violations == 0;
  return out;
}

}  // namespace

std::vector<Candidate> enumerate_layouts(const SearchProblem& p) {
  std::vector<Candidate> out;
  std::vector<Recompute> recompute = p.space.recompute;
  if (recompute.empty())  // from the most memory to the least; ranges of blocks in between are a study's to ask for
    recompute = p.model.experts > 0
                    ? std::vector{Recompute::none, recompute_from_string("experts"),
                                  recompute_from_string("attention+experts"), Recompute::block}
                    : std::vector{Recompute::none, recompute_from_string("attention"), Recompute::block};
  for (std::int64_t shard : choices(p.space.shard_sizes, p.gpus))
    for (std::int64_t expert : choices(p.space.expert_degrees, std::max<std::int64_t>(1, p.model.experts)))
      for (std::int64_t microbatch : choices(p.space.microbatches, std::max<std::int64_t>(1, p.global_batch / p.gpus)))
        for (const Recompute& policy : recompute) {
          Candidate c;
          c.layout.shard = shard;
          c.layout.expert = expert;
          if (expert > 1) c.layout.dispatcher = p.dispatcher;
          c.layout.microbatch = microbatch;
          c.layout.recompute = policy;
          c.layout.replicate = std::max<std::int64_t>(1, p.gpus / shard);
          c.reason = indivisible(p, c.layout);
          if (!c.reason.empty()) {
            c.fate = Fate::infeasible;
          } else {
            c.microbatches = sequences_of(p, c.layout).count;
            if (const auto placed = p.placements.find(expert); placed != p.placements.end())
              c.layout.placement = placed->second;
          }
          out.push_back(std::move(c));
        }
  return out;
}

SearchResult search_layouts(const SearchProblem& p, const SearchProgress& progress) {
  check_same_machine(p.cluster, p.cost);
  SearchResult r;
  r.candidates = enumerate_layouts(p);
  using Entry = std::pair<double, std::size_t>;  // bound, candidate: ties of bounds go to the first enumerated
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  for (std::size_t i = 0; i < r.candidates.size(); ++i) {
    Candidate& c = r.candidates[i];
    if (progress)
      progress("bounding layouts", static_cast<std::int64_t>(i), static_cast<std::int64_t>(r.candidates.size()),
               c.layout.name());
    if (c.fate == Fate::infeasible) continue;
    c.memory_bytes =
        i < p.known_memory.size() && p.known_memory[i] > 0 ? p.known_memory[i] : step_memory(p, c.layout).needed();
    if (c.memory_bytes > p.memory_limit_bytes) {
      c.fate = Fate::infeasible;
      c.reason = "memory";
      continue;
    }
    c.bound0_s = first_bound(p, c.layout, *routing_of(p, c.layout));
    open.emplace(c.bound0_s, i);
  }
  if (open.empty()) nothing_fits(p, r);

  double incumbent = std::numeric_limits<double>::infinity();
  std::int64_t simulated = 0;
  while (!open.empty()) {
    const auto [bound, i] = open.top();
    if (bound > incumbent * (1 + p.space.tie)) break;  // neither faster nor a tie
    Candidate& c = r.candidates[i];
    if (progress) progress("simulating layouts", simulated, 0, c.layout.name());
    if (c.bound1_s == 0) {  // the sharper bound may move it behind others
      open.pop();
      c.bound1_s = second_bound(p, c.layout, *routing_of(p, c.layout));
      open.emplace(c.bound_s(), i);
      continue;
    }
    if (simulated == p.space.simulations) break;
    open.pop();
    c.result = simulate_layout(p, c.layout);
    c.fate = Fate::simulated;
    ++simulated;
    if (c.result->step_s < incumbent) {
      incumbent = c.result->step_s;
      r.fastest = i;
    }
  }
  choose(p, r);
  r.certificate = certify(p, r);
  return r;
}

std::vector<std::string> check_certificate(const SearchResult& r) {
  const Certificate& c = r.certificate;
  std::vector<std::string> wrong;
  std::int64_t infeasible = 0, bounded = 0, simulated = 0, claimed_infeasible = 0;
  bool reached = false;
  for (const Candidate& candidate : r.candidates) {
    if (candidate.fate == Fate::infeasible) {
      ++infeasible;
      if (candidate.reason.empty()) wrong.push_back(candidate.layout.name() + " is infeasible without a reason");
    } else if (candidate.fate == Fate::simulated) {
      ++simulated;
      if (candidate.result->step_s < c.incumbent_s) wrong.push_back(candidate.layout.name() + " beats the incumbent");
      if (candidate.result->step_s == c.incumbent_s) reached = true;
      if (candidate.result->step_s < c.bound_s) wrong.push_back(candidate.layout.name() + " is below the bound");
    } else {
      ++bounded;
      if (candidate.bound_s() < c.bound_s) wrong.push_back(candidate.layout.name() + " may be below the bound");
      if (c.proved && candidate.bound_s() < c.incumbent_s)
        wrong.push_back(candidate.layout.name() + " may beat an incumbent that is called proved");
    }
  }
  for (const auto& [reason, count] : c.infeasible) claimed_infeasible += count;
  if (infeasible != claimed_infeasible || bounded != c.bounded || simulated != c.simulated ||
      c.enumerated != static_cast<std::int64_t>(r.candidates.size()))
    wrong.push_back("the counts are not those of the candidates");
  if (!reached) wrong.push_back("no simulated layout has the incumbent's time");
  if (std::abs(c.gap - (c.incumbent_s / c.bound_s - 1)) > 1e-12)
    wrong.push_back("the gap is not incumbent / bound - 1");
  if (c.proved && c.gap != 0) wrong.push_back("proved with a gap");
  return wrong;
}

}  // namespace wt
