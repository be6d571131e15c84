#include "planner/shell/interpreter.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "configs/base/error.hpp"

namespace wt::shell {
namespace {

constexpr std::size_t kMostSteps = 200000;  // commands, and bytes of variables by thousands
constexpr int kDeepestCalls = 40;           // functions and scripts inside each other
constexpr int kMostRounds = 200;            // of a loop

/// What a condition says, for errors.
std::string in_words(const List& list) {
  if (list.empty() || list.back().pipeline.commands.empty()) return "a condition";
  const Command& last = list.front().pipeline.commands.front();
  if (last.kind == Command::Kind::test) return "[[" + last.name + "]]";
  if (last.kind == Command::Kind::arithmetic) return "((" + last.name + "))";
  return last.words.empty() ? "a condition" : fmt::format("{}", fmt::join(last.words, " "));
}

}  // namespace

Interpreter::Interpreter(const ScriptSource& source) : source_(source), origin_(source.origin) {
  for (const auto& [name, value] : source.variables)
    state_.variables[name] = {.exported = true, .items = {{"0", without_marks(value)}}};
}

void Interpreter::step(std::size_t cost) {
  if ((steps_ += cost) > kMostSteps)
    throw_usage(
        "{}:{}: found loops or variables of more than {} steps, needs a script that can be followed; give its command "
        "line alone",
        origin_, line_, kMostSteps);
}

ReadScript Interpreter::result(const std::string& text) {
  const std::string clean = without_marks(text);
  std::istringstream lines(clean);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#SBATCH")) continue;
    std::istringstream words(line.substr(7));
    std::string word, value;
    while (words >> word && word.starts_with("-")) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos)
        value = word.substr(equals + 1), word.resize(equals);
      else if (!(words >> value))
        value.clear();
      static const std::map<std::string, std::string> kShort{{"N", "nodes"}, {"n", "ntasks"}, {"G", "gpus"}};
      const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
      out_.directives[kShort.contains(name) ? kShort.at(name) : name] = value;
    }
  }
  for (const auto& [directive, names] : {std::pair{"nodes", Words{"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
                                         {"ntasks-per-node", {"SLURM_NTASKS_PER_NODE"}},
                                         {"ntasks", {"SLURM_NTASKS", "SLURM_NPROCS"}},
                                         {"gpus-per-node", {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}}})
    if (const auto found = out_.directives.find(directive); found != out_.directives.end())
      for (const std::string& name : names)
        state_.variables.try_emplace(name, Variable{.exported = true, .items = {{"0", found->second}}});
  run_text(clean, origin_);
  for (const auto& [name, variable] : state_.variables) {
    Words words;
    for (const auto& [index, value] : variable.items) {
      std::istringstream parts(value);
      if (variable.list || has_unknown(value))
        words.push_back(value);
      else
        for (std::string part; parts >> part;) words.push_back(part);
    }
    out_.variables[name] = std::move(words);
  }
  return std::move(out_);
}

Flow Interpreter::run_text(const std::string& text, const std::string& origin) {
  if (++depth_ > kDeepestCalls)
    throw_usage("{}:{}: found scripts or functions inside each other more than {} times, needs fewer", origin_, line_,
                kDeepestCalls);
  const List list = parse(text, origin);
  const Flow flow = run(list);
  --depth_;
  return flow;
}

template <typename... Ways>
Flow Interpreter::fork(const std::string& condition, int line, Ways... ways) {
  const std::string why = fmt::format("{}, in line {}", shown(condition), line);
  const State before = state_;
  std::size_t size = 1;
  for (const auto& [name, variable] : before.variables)
    for (const auto& [index, value] : variable.items) size += value.size();
  step(1 + size / 1000 * sizeof...(ways));
  std::vector<std::pair<Flow, State>> ends;
  conditions_.push_back(why);
  const auto follow = [&](auto& way) {
    state_ = before;
    const Flow flow = way();
    ends.emplace_back(flow, std::move(state_));
  };
  (follow(ways), ...);
  conditions_.pop_back();
  return join(std::move(ends), why);
}

Flow Interpreter::run(const List& list) {
  Flow flow = Flow::goes_on;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Step& one = list[i];
    const bool needs = one.before == "&&", skips = one.before == "||";
    if ((needs && state_.last == Status::no) || (skips && state_.last == Status::yes)) continue;
    if ((needs || skips) && state_.last == Status::unknown) {
      const std::string what = i > 0 ? in_words({list[i - 1]}) : "a command";
      flow = fork(
          what, line_, [&] { return run(one.pipeline); }, [] { return Flow::goes_on; });
      state_.last = Status::unknown;
    } else {
      flow = run(one.pipeline);
    }
    if (flow != Flow::goes_on) return flow;
  }
  return Flow::goes_on;
}

Flow Interpreter::run(const Pipeline& pipeline) {
  Flow flow = Flow::goes_on;
  if (pipeline.commands.size() == 1) {
    flow = run(pipeline.commands.front());
  } else {  // each command is a subshell
    std::optional<std::string> handed;
    std::string* const outside = output_;
    const bool known_outside = output_known_;
    for (std::size_t i = 0; i < pipeline.commands.size(); ++i) {
      const bool last = i + 1 == pipeline.commands.size();
      std::string text;
      const State before = state_;
      const auto piped = std::exchange(piped_, i > 0 ? handed : piped_);
      output_ = last ? outside : &text;
      output_known_ = last ? known_outside : true;
      const std::string& name = pipeline.commands[i].words.empty() ? "" : pipeline.commands[i].words.front();
      flow = run(pipeline.commands[i]);
      if (!last && output_known_)
        handed = text;
      else
        handed.reset();
      const Status status = state_.last;
      auto files = std::move(state_.files);
      const auto variables = state_.variables;
      state_ = before;
      if (last && (name == "read" || name == "mapfile" || name == "readarray")) state_.variables = variables;
      state_.files = std::move(files), state_.last = status;
      piped_ = piped;
      if (flow == Flow::exits) flow = Flow::goes_on;
    }
    output_ = outside;
    if (output_ == nullptr) output_known_ = true;
  }
  if (pipeline.negated && state_.last != Status::unknown)
    state_.last = state_.last == Status::yes ? Status::no : Status::yes;
  return flow;
}

Flow Interpreter::run(const Command& command) {
  step();
  line_ = command.line;
  switch (command.kind) {
    case Command::Kind::simple:
      return run_simple(command);
    case Command::Kind::group:
      return run(*command.body);
    case Command::Kind::subshell: {
      State before = state_;
      const Flow flow = run(*command.body);
      before.last = state_.last, before.files = std::move(state_.files);
      state_ = std::move(before);
      return flow == Flow::exits ? Flow::goes_on : flow;
    }
    case Command::Kind::if_:
      return run_if(command, 0);
    case Command::Kind::case_:
      return run_case(command);
    case Command::Kind::for_:
      return run_for(command);
    case Command::Kind::while_:
    case Command::Kind::until:
      return run_while(command);
    case Command::Kind::function:
      state_.functions[command.name] = command.body;
      return Flow::goes_on;
    case Command::Kind::test:
      state_.last = double_test(command.name);
      return Flow::goes_on;
    case Command::Kind::arithmetic: {
      const std::string value = arithmetic(command.name);
      state_.last = has_unknown(value) ? Status::unknown : plain(value) == "0" ? Status::no : Status::yes;
      return Flow::goes_on;
    }
  }
  return Flow::goes_on;
}

Flow Interpreter::run_if(const Command& command, std::size_t branch) {
  if (branch == command.branches.size()) {
    state_.last = Status::yes;
    return Flow::goes_on;
  }
  const Branch& one = command.branches[branch];
  if (one.condition.empty()) return run(one.body);  // else
  asked_.clear();
  const int line = line_;
  if (const Flow flow = run(one.condition); flow != Flow::goes_on) return flow;
  const bool asks = asked_.contains("#");
  const auto yes = [&] { return run(one.body); };
  const auto no = [&] { return run_if(command, branch + 1); };
  if (state_.last == Status::unknown) return fork(in_words(one.condition), line, yes, no);
  // A check of the script's arguments that ends it is taken as passed.
  if (asks && state_.last == Status::yes) {
    const State before = state_;
    const Flow flow = yes();
    if (flow != Flow::exits) return flow;
    state_ = before;
    return Flow::goes_on;
  }
  return state_.last == Status::yes ? yes() : no();
}

Flow Interpreter::run_case(const Command& command) {
  const std::string word = expand_text(command.name);
  std::vector<const Branch*> open;  // that may match
  bool certain = false;
  for (const Branch& branch : command.branches) {
    Status found = Status::no;
    for (const std::string& written : branch.patterns) {
      const std::string pattern = expand_pattern(written);
      if (pattern == "*")
        found = Status::yes;
      else if (has_unknown(word) || has_unknown(pattern))
        found = found == Status::yes ? found : Status::unknown;
      else if (matches(plain(word), plain(pattern)))
        found = Status::yes;
    }
    if (found == Status::no) continue;
    open.push_back(&branch);
    certain = found == Status::yes;
    if (certain) break;
  }
  if (open.empty()) return Flow::goes_on;
  if (open.size() == 1 && certain) return run(open.front()->body);
  const std::string why = fmt::format("case {}, in line {}", shown(word), command.line);
  const State before = state_;
  std::vector<std::pair<Flow, State>> ends;
  conditions_.push_back(why);
  for (const Branch* branch : open) {
    state_ = before;
    const Flow flow = run(branch->body);
    ends.emplace_back(flow, state_);
  }
  conditions_.pop_back();
  if (!certain) ends.emplace_back(Flow::goes_on, before);
  return join(std::move(ends), why);
}

Flow Interpreter::run_while(const Command& command) {
  const Branch& loop = command.branches.front();
  const Status ends = command.kind == Command::Kind::while_ ? Status::no : Status::yes;
  for (int round = 0;; ++round) {
    const int line = line_;
    if (const Flow flow = run(loop.condition); flow != Flow::goes_on) return flow;
    if (state_.last == ends) break;
    if (state_.last == Status::unknown || round >= kMostRounds) {
      const Flow flow = fork(
          in_words(loop.condition), line, [&] { return run(loop.body); }, [] { return Flow::goes_on; });
      return flow == Flow::returns || flow == Flow::exits ? flow : Flow::goes_on;
    }
    const Flow flow = run(loop.body);
    if (flow == Flow::breaks) break;
    if (flow == Flow::returns || flow == Flow::exits) return flow;
  }
  state_.last = Status::yes;
  return Flow::goes_on;
}

Flow Interpreter::run_for(const Command& command) {
  const Branch& loop = command.branches.front();
  if (command.name.starts_with("((")) {
    const std::string inner =
        command.name.substr(2, command.name.size() - std::min<std::size_t>(4, command.name.size()));
    const std::size_t first = inner.find(';'), second = first == std::string::npos ? first : inner.find(';', first + 1);
    if (second == std::string::npos) return Flow::goes_on;
    arithmetic(inner.substr(0, first));
    for (int round = 0; round < kMostRounds; ++round) {
      const std::string going = arithmetic(inner.substr(first + 1, second - first - 1));
      if (plain(going) == "0") break;
      const Flow flow = has_unknown(going)
                            ? fork(
                                  going, command.line, [&] { return run(loop.body); }, [] { return Flow::goes_on; })
                            : run(loop.body);
      if (flow == Flow::breaks || has_unknown(going)) break;
      if (flow == Flow::returns || flow == Flow::exits) return flow;
      arithmetic(inner.substr(second + 1));
    }
    return Flow::goes_on;
  }
  const Words values = command.over_arguments ? state_.arguments : expand(command.words);
  for (const std::string& value : values) {
    step();
    set(command.name, value);
    const Flow flow = run(loop.body);
    if (flow == Flow::breaks) break;
    if (flow == Flow::returns || flow == Flow::exits) return flow;
  }
  state_.last = Status::yes;
  return Flow::goes_on;
}

Flow Interpreter::call(const std::string& name, const Words& arguments) {
  if (++depth_ > kDeepestCalls)
    throw_usage("{}:{}: found {} inside of itself more than {} times, needs fewer", origin_, line_, name,
                kDeepestCalls);
  const std::shared_ptr<List> body = state_.functions.at(name);
  const Words before = std::exchange(state_.arguments, arguments);
  const bool known = std::exchange(state_.arguments_known, true);
  locals_.emplace_back();
  const Flow flow = run(*body);
  for (const auto& [local, outside] : locals_.back())
    if (outside)
      state_.variables[local] = *outside;
    else
      state_.variables.erase(local);
  locals_.pop_back();
  state_.arguments = before, state_.arguments_known = known;
  --depth_;
  return flow == Flow::exits ? flow : Flow::goes_on;
}

Flow Interpreter::run_simple(const Command& command) {
  const Words words = expand(command.words);
  if (words.empty()) {
    state_.last = Status::yes;
    for (const Assignment& one : command.assignments) assign(one);
    return Flow::goes_on;
  }
  if (const auto flow = builtin(words, command)) return *flow;
  if (state_.functions.contains(words.front())) return call(words.front(), {words.begin() + 1, words.end()});
  state_.last = Status::unknown;
  if (output_ != nullptr) {
    if (filter(words)) return Flow::goes_on;
    output_known_ = false;
  }
  const State before = state_;
  for (const Assignment& one : command.assignments) assign(one, true);
  start(words, command);
  const auto files = state_.files;
  state_ = before;
  state_.files = files;
  return Flow::goes_on;
}

/// A shell among the words, with -c and a text, a file or a here-document, starts what they start.

}  // namespace wt::shell
