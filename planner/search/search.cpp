#include "planner/search/search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/search/group_bounds.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/cost/memory/dispatcher_memory.hpp"

namespace wt {
namespace {

constexpr double kMostAbove = 10;  ///< largest assumed ratio of a simulated step to its bound, used for the order of
                                   ///< evaluation

void choose(const SearchProblem& p, SearchResult& r) {
  const double best = r.candidates[r.best].value;
  for (std::size_t i = 0; i < r.candidates.size(); ++i)
    if (r.candidates[i].result && r.candidates[i].value <= best * (1 + p.space.tie)) r.ties.push_back(i);
  std::ranges::stable_sort(r.ties,
                           [&](std::size_t a, std::size_t b) { return r.candidates[a].value < r.candidates[b].value; });
  r.chosen = r.ties.front();
  for (std::size_t i : r.ties)
    if (more_robust(r.candidates[i], r.candidates[r.chosen])) r.chosen = i;
}

class Search {
 public:
  Search(const SearchProblem& problem, const SearchProgress& progress)
      : p_(problem), progress_(progress), space_(problem), bounds_(problem), known_memory_(problem.known_memory) {
    if (!known_memory_) known_memory_ = std::make_shared<std::map<std::string, double>>();
  }

  SearchResult run() {
    queue_groups();
    while (!open_.empty()) {
      const Entry top = open_.top();
      if (std::isinf(top.guess) && std::isinf(incumbent_)) endless();
      if (top.stage == Stage::path && spent_ >= p_.space.simulations * kOpsOfSimulation) break;
      open_.pop();
      const double guess = top.least * above_bound(top);
      if (guess > top.guess)  // the estimate has grown since it was pushed
        open_.push({top.least, guess, top.stage, top.at});
      else if (top.least <= incumbent_ * (1 + p_.space.tie))
        advance(top);
      else if (top.stage <= Stage::scheduled)
        leave(top);
    }
    for (; !open_.empty(); open_.pop())  // the rest is neither better nor a tie
      if (open_.top().stage <= Stage::scheduled) leave(open_.top());
    if (simulated_ == 0) nothing_fits();
    if (std::isinf(incumbent_)) endless();
    choose(p_, result_);
    certify();
    return std::move(result_);
  }

  SpaceFit fit() {
    groups_ = space_.groups();
    if (groups_.empty()) return SpaceFit::empty;
    const bool any = std::ranges::any_of(groups_, [&](const LayoutGroup& g) {
      return bounds_.memory_bytes(g) <= p_.memory_limit_bytes && least_needed(g) <= p_.memory_limit_bytes;
    });
    return any ? SpaceFit::fits : SpaceFit::too_large;
  }

 private:
  /// How far a group or candidate has been evaluated. The one with the smallest estimate advances to the next stage.
  enum class Stage { group, scheduled, opened, lanes, path };
  struct Entry {
    double least;  ///< lower bound for all members
    double guess;  ///< estimate of the value; it corrects bounds that are less sharp for some kinds of layouts
    Stage stage;
    std::size_t at;                             ///< index into groups_ or the result's candidates
    bool operator<(const Entry& other) const {  // smallest guess first; equal ones in order of counting
      return std::tie(guess, at) > std::tie(other.guess, other.at);
    }
  };
  /// Kinds of layouts whose bounds differ in sharpness.
  static std::size_t kind_of(const Layout& l) {
    return l.pipeline == 1 ? 0 : 1 + static_cast<std::size_t>(l.schedule) + (l.exchange_overlap ? 3 : 0);
  }
  /// Ratio of value to bound: the smallest among simulated layouts of the candidate's kind, or of its group with the
  /// same exchanges if that is larger.
  double above_bound(const Entry& entry) const {
    if (entry.stage <= Stage::scheduled) return 1;
    return std::max(above_bound_[kind_of(result_.candidates[entry.at].layout)].value_or(1),
                    siblings_above_[sibling_of_[entry.at]].value_or(1));
  }
  void push(double least, Stage stage, std::size_t at) {
    Entry entry{least, least, stage, at};
    entry.guess *= above_bound(entry);
    open_.push(entry);
  }

  double least(const Candidate& c) const {
    return p_.objective ? p_.objective->least(c.layout, {c.bound_s, c.computing_s}) : c.bound_s;
  }
  double least_of_any(const LeastStep& step) const {
    return p_.objective ? p_.objective->least_of_any(step) : step.step_s;
  }

  void say(const char* part, std::int64_t done, std::int64_t total, const Layout& layout) const {
    if (progress_) progress_(part, done, total, layout_label(layout, p_.stack));
  }

  void queue_groups() {
    groups_ = space_.groups();
    if (groups_.empty())
      throw_error(
          Code::finding,
          "{} {} GPUs, {} experts and a batch of {}, of those that {} runs; set the study's search axes to auto, "
          "or choose a batch that more GPUs divide",
          kNoLayoutDivides, p_.gpus, p_.model.experts, p_.global_batch,
          p_.stack.name.empty() ? "the stack" : p_.stack.name);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const LayoutGroup& g = groups_[i];
      if (i % 64 == 0)
        say("bounding layouts", static_cast<std::int64_t>(i), static_cast<std::int64_t>(groups_.size()), g.layout);
      group_.push_back({bounds_.step_s(g), bounds_.computing_s(g)});
      push(least_of_any(group_.back()), Stage::group, i);
    }
  }

  void advance(const Entry& entry) {
    if (entry.stage == Stage::group) return schedule(entry);
    if (entry.stage == Stage::scheduled) return open(entry);
    Candidate& c = result_.candidates[entry.at];
    if (entry.stage == Stage::path) return simulate(entry.at);
    if (entry.stage == Stage::opened && !fits(c)) return;
    raise(c, entry.stage == Stage::opened ? bounds_.lane_s(c.layout) : bounds_.path_s(c.layout));
    push(c.least, entry.stage == Stage::opened ? Stage::lanes : Stage::path, entry.at);
  }

  bool fits(Candidate& c) {
    c.memory_bytes = needed(c.layout) + (p_.memory ? dispatcher_bytes(p_.model, c.layout) : 0);
    if (c.memory_bytes <= p_.memory_limit_bytes) return true;
    c.fate = Fate::infeasible;
    c.reason = "memory";
    return false;
  }

  void raise(Candidate& c, double bound_s) const {
    c.bound_s = std::max(c.bound_s, bound_s);
    c.least = std::max(c.least, least(c));
  }

  /// Sharpens a group's bound, pass by pass. First drops the group if no member can fit.
  void schedule(const Entry& entry) {
    const LayoutGroup& g = groups_[entry.at];
    if (const double bytes = bounds_.memory_bytes(g); bytes > p_.memory_limit_bytes) return drop(entry, bytes);
    LeastStep& step = group_[entry.at];
    step.step_s = std::max(step.step_s, bounds_.scheduled_s(g));
    push(std::max(entry.least, least_of_any(step)), Stage::scheduled, entry.at);
  }

  void drop(const Entry& entry, double bytes) {
    const LayoutGroup& g = groups_[entry.at];
    result_.groups.push_back({g.layout, g.members, Fate::infeasible, group_[entry.at].step_s, entry.least, bytes});
  }

  /// Turns a group's members into candidates, unless no member fits.
  void open(const Entry& entry) {
    const LayoutGroup& g = groups_[entry.at];
    if (const double bytes = least_needed(g); bytes > p_.memory_limit_bytes) return drop(entry, bytes);
    std::map<std::pair<Dispatcher, bool>, std::size_t> siblings;
    for (Layout& layout : space_.members(g)) {
      const auto [sibling, fresh] =
          siblings.try_emplace({layout.dispatcher, layout.exchange_overlap}, siblings_above_.size());
      if (fresh) siblings_above_.emplace_back();
      sibling_of_.push_back(sibling->second);
      Candidate& c = result_.candidates.emplace_back();
      c.layout = std::move(layout);
      c.microbatches = g.microbatches;
      c.bound_s = bounds_.scheduled_s(c.layout);
      c.computing_s = group_[entry.at].computing_s;
      c.least = std::max(entry.least, least(c));
      push(c.least, Stage::opened, result_.candidates.size() - 1);
    }
  }

  void leave(const Entry& entry) {
    const LayoutGroup& g = groups_[entry.at];
    result_.groups.push_back({g.layout, g.members, Fate::bounded, group_[entry.at].step_s, entry.least, 0});
  }

  /// The least memory of a group's members. Stops at the first member that fits.
  double least_needed(const LayoutGroup& group) {
    double least = std::numeric_limits<double>::infinity();
    for (const Layout& layout : space_.narrowest(group))
      if (least > p_.memory_limit_bytes) least = std::min(least, needed(layout));
    return least;
  }

  /// Cached without dispatchers of their own buffers, which are not counted, and without launches, which change
  /// nothing.
  double needed(Layout layout) {
    if (sends_once(layout.dispatcher)) layout.dispatcher = Dispatcher::alltoall;
    layout.cuda_graphs = CudaGraphs::none;
    double& known = (*known_memory_)[key_of(layout)];
    if (known == 0) known = needed_bytes(p_, layout);
    return known;
  }

  void simulate(std::size_t at) {
    Candidate& c = result_.candidates[at];
    say("simulating layouts", simulated_, 0, c.layout);
    c.result = simulate_layout(p_, c.layout);
    c.fate = Fate::simulated;
    c.value = p_.objective ? p_.objective->of(c.layout, *c.result) : c.result->step_s;
    ++simulated_;
    spent_ += std::max(c.result->work, kOpsOfSimulation);
    for (std::optional<double>* above : {&above_bound_[kind_of(c.layout)], &siblings_above_[sibling_of_[at]]})
      *above = std::min(above->value_or(kMostAbove), std::max(1.0, c.value / c.least));
    if (c.value < incumbent_) {
      incumbent_ = c.value;
      result_.best = at;
    }
  }

  [[noreturn]] void nothing_fits() const {
    const Layout* nearest = nullptr;
    double bytes = std::numeric_limits<double>::infinity();
    const auto take = [&](const Layout& layout, double at_least) {
      if (at_least >= bytes) return;
      if (const double needs = step_memory(p_, layout).needed(); needs < bytes) nearest = &layout, bytes = needs;
    };
    for (const UnopenedGroup& g : result_.groups) take(g.layout, g.memory_bytes);
    for (const Candidate& c : result_.candidates) take(c.layout, c.memory_bytes);
    throw_error(Code::finding,
                "nothing fits: the nearest miss, {} with recompute {} and microbatch {}, needs {} of {} a GPU; use "
                "more GPUs, GPUs with more memory, or a shorter sequence",
                layout_label(*nearest, p_.stack), to_string(nearest->recompute), nearest->microbatch,
                format_bytes(bytes), format_bytes(p_.memory_limit_bytes));
  }

  /// The objective is infinite for all remaining layouts.
  [[noreturn]] void endless() const {
    throw_error(Code::finding,
                "search: found no layout with which the run ends: it fails so often that no work is saved in between; "
                "needs more time between failures (fewer GPUs, scale.mtbf) or faster storage");
  }

  void certify() {
    Certificate& out = result_.certificate;
    if (p_.objective) out.unit = p_.objective->unit();
    out.incumbent = incumbent_;
    double rest = std::numeric_limits<double>::infinity();  // smallest bound among layouts not simulated
    const auto count = [&](Fate fate, std::int64_t layouts, double least, const std::string& reason) {
      out.enumerated += layouts;
      if (fate == Fate::infeasible) out.infeasible[reason] += layouts;
      if (fate == Fate::simulated) out.simulated += layouts;
      if (fate != Fate::bounded) return;
      out.bounded += layouts;
      rest = std::min(rest, least);
    };
    for (const UnopenedGroup& g : result_.groups) count(g.fate, g.members, g.least, "memory");
    for (const Candidate& c : result_.candidates) {
      count(c.fate, 1, c.least, c.reason);
      if (c.result && (c.result->step_s < c.bound_s * (1 - 1e-9) || c.value < c.least * (1 - 1e-9))) ++out.violations;
    }
    out.bound = std::min(out.incumbent, rest);
    out.gap = out.incumbent / out.bound - 1;
    out.proved = out.gap == 0 && out.violations == 0;
    out.ties_complete = rest > out.incumbent * (1 + p_.space.tie) && out.violations == 0;
  }

  const SearchProblem& p_;
  const SearchProgress& progress_;
  LayoutSpace space_;
  GroupBounds bounds_;
  std::shared_ptr<std::map<std::string, double>> known_memory_;  ///< by key_of
  std::vector<LayoutGroup> groups_;
  std::vector<LeastStep> group_;  ///< by group: bounds for its members
  std::priority_queue<Entry> open_;
  std::array<std::optional<double>, 7> above_bound_;  ///< by kind_of()
  /// By candidate: index of its siblings, the members of its group with the same exchanges.
  std::vector<std::size_t> sibling_of_;
  std::vector<std::optional<double>> siblings_above_;  ///< by index of siblings: smallest value over bound
  double incumbent_ = std::numeric_limits<double>::infinity();
  std::int64_t simulated_ = 0, spent_ = 0;  ///< simulated layouts; ops that they spent of the budget
  SearchResult result_;
};

}  // namespace

bool more_robust(const Candidate& a, const Candidate& b) {
  if (a.layout.state_ranks() != b.layout.state_ranks()) return a.layout.state_ranks() < b.layout.state_ranks();
  return a.value < b.value;
}

SearchResult search_layouts(const SearchProblem& p, const SearchProgress& progress) {
  check_same_machine(p.cluster, p.cost);
  return Search(p, progress).run();
}

SpaceFit space_fit(const SearchProblem& p) { return Search(p, {}).fit(); }

}  // namespace wt
