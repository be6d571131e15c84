#include "configs/spec/fault.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "configs/spec/find.hpp"
#include "configs/spec/run.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/nearest.hpp"
#include "configs/spec/support/yaml.hpp"

namespace wt {
namespace {

FaultCase read_case(YamlMap& map) {
  static const std::regex kOpId(R"((mb\d+\.)?(L\d+\.)?[a-z_]+(\.[a-z_]+)*)");
  FaultCase out;
  out.name = map.text("name");
  map.choice("kind", {"kill"});
  out.rank = map.integer("rank", 0);
  const std::string at = map.text("at");
  out.at_checkpoint = at == "checkpoint";
  out.step = map.integer("step", 1);
  if (out.at_checkpoint) {
    out.after = map.number("after", 0, 1);
  } else {
    if (!std::regex_match(at, kOpId))
      map.fail("at", fmt::format("found '{}', needs 'checkpoint' or the id of an op such as mb0.L1.experts.bwd", at));
    if (map.has("after")) map.fail("after", "only a fault at a checkpoint has a fraction of bytes written; remove it");
    out.op = at;
  }
  map.finish();
  return out;
}

}  // namespace

std::string to_string(KilledKind) { return "kill"; }
std::string to_string(FaultExpectation) { return "bitwise"; }

FaultSpec read_fault_spec(const std::string& name_or_file) {
  return read_fault_spec_file(find_config("faults", name_or_file));
}

FaultSpec read_fault_spec_file(const std::filesystem::path& file) {
  YamlMap map = YamlMap::from_file(file);
  FaultSpec out;
  out.file = file;
  out.name = map.text("name");
  out.run = map.text("run");
  map.choice("expect", {"bitwise"});
  for (YamlMap& c : map.maps("cases")) {
    FaultCase next = read_case(c);
    for (const FaultCase& earlier : out.cases)
      if (earlier.name == next.name)
        c.fail("name", fmt::format("found '{}' twice, each case needs its own name", next.name));
    out.cases.push_back(std::move(next));
  }
  if (out.cases.empty()) map.fail("cases", "found none, needs at least one case");
  map.finish();
  return out;
}

void check_fault_spec(const FaultSpec& spec, const RunSpec& run, const std::vector<std::string>& op_ids) {
  for (const FaultCase& c : spec.cases) {
    const std::string where = fmt::format("{}: case {}", spec.file.string(), c.name);
    if (c.rank >= run.layout.world())
      throw_error(Code::usage, "{}: rank: found {}, the run {} has ranks 0..{}", where, c.rank, run.name,
                  run.layout.world() - 1);
    if (c.step > run.steps)
      throw_error(Code::usage, "{}: step: found {}, the run {} has steps 1..{}", where, c.step, run.name, run.steps);
    if (c.at_checkpoint) {
      const bool due = c.step == run.steps || (run.save_interval > 0 && c.step % run.save_interval == 0);
      if (!run.save || !due)
        throw_error(Code::usage, "{}: step: found {}, the run {} writes no checkpoint there; it saves {}", where,
                    c.step, run.name,
                    !run.save ? "none"
                    : run.save_interval == 0
                        ? fmt::format("at its end, step {}", run.steps)
                        : fmt::format("every {} steps and at its end, step {}", run.save_interval, run.steps));
      if (c.rank >= run.layout.shard)  // one replica writes
        throw_error(Code::usage, "{}: rank: found {}, but ranks 0..{} write the checkpoints of {}; choose one of them",
                    where, c.rank, run.layout.shard - 1, run.name);
    } else if (std::find(op_ids.begin(), op_ids.end(), c.op) == op_ids.end()) {
      throw_error(Code::usage, "{}: at: found '{}', the run {} issues no such op{}; ids look like mb0.L1.experts.bwd",
                  where, c.op, run.name, did_you_mean(c.op, op_ids));
    }
  }
}

std::string inject_text(const FaultCase& c) {
  if (c.at_checkpoint) return fmt::format("rank={},step={},at=checkpoint,after={}", c.rank, c.step, c.after);
  return fmt::format("rank={},step={},at={}", c.rank, c.step, c.op);
}

FaultCase parse_inject(const std::string& text) {
  FaultCase fault;
  fault.rank = fault.step = -1;
  fault.after = 0.5;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals), value = equals == std::string::npos ? "" : part.substr(equals + 1);
    std::size_t used = value.size();
    try {
      if (key == "rank")
        fault.rank = std::stoll(value, &used);
      else if (key == "step")
        fault.step = std::stoll(value, &used);
      else if (key == "at")
        fault.op = value;
      else if (key == "after")
        fault.after = std::stod(value, &used);
      else
        throw std::invalid_argument(key);
      if (used != value.size() || !(fault.after >= 0 && fault.after <= 1)) throw std::invalid_argument(value);
    } catch (const std::exception&) {
      throw_error(Code::usage, "fault '{}': found '{}', needs rank=N,step=N,at=OP_ID|checkpoint[,after=SHARE]", text,
                  part);
    }
  }
  if (fault.rank < 0 || fault.step < 1 || fault.op.empty())
    throw_error(Code::usage, "fault '{}': needs rank=N,step=N,at=OP_ID|checkpoint[,after=SHARE]", text);
  fault.at_checkpoint = fault.op == "checkpoint";
  if (fault.at_checkpoint) fault.op.clear();
  fault.name = text;
  return fault;
}

}  // namespace wt
