// Format of machine.json. Sources repeat over hundreds of points, so the file keeps each once and refers to it by
// number.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "sim/cost/kernels/machine_data.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "windtunnel.machine/2";

class Sources {
 public:
  int number(const std::string& text) {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    list_.push_back(text);
    return numbers_[text] = static_cast<int>(list_.size()) - 1;
  }
  const json& list() const { return list_; }

 private:
  json list_ = json::array();
  std::map<std::string, int> numbers_;
};

/// Reads an enum by the words of its to_string.
template <typename Enum>
Enum word(const JsonReader& in, int count) {
  const std::string found = in.string();
  std::string allowed;
  for (int i = 0; i < count; ++i) {
    const std::string name = to_string(static_cast<Enum>(i));
    if (name == found) return static_cast<Enum>(i);
    allowed += (i ? ", " : "") + name;
  }
  in.fail(fmt::format("'{}'", found), allowed);
}

template <typename Enum>
constexpr int up_to(Enum last) {
  return static_cast<int>(last) + 1;
}
constexpr int kKernels = up_to(Kernel::bias), kPasses = 2, kPrecisions = 2, kEvidences = 4,
              kActions = up_to(Action::reduce_loss), kGroups = up_to(Group::adapter), kKinds = up_to(OpKind::send);
const char* const kDirections[] = {"fwd", "rec", "bwd"};

Direction direction_of(const JsonReader& in) {
  for (int i = 0; i < 3; ++i)
    if (in.string() == kDirections[i]) return static_cast<Direction>(i);
  in.fail(fmt::format("'{}'", in.string()), "fwd, rec, bwd");
}

json class_json(const ClassKey& key) {
  return {{"kernel", to_string(key.kernel)}, {"pass", to_string(key.pass)}, {"precision", to_string(key.precision)}};
}

ClassKey class_of(const JsonReader& in) {
  return {word<Kernel>(in.at("kernel"), kKernels), word<Pass>(in.at("pass"), kPasses),
          word<Precision>(in.at("precision"), kPrecisions)};
}

struct Reader {
  JsonReader in;
  std::vector<std::string> sources;

  std::string source(const JsonReader& at) const {
    const std::int64_t number = at.integer();
    if (number < 0 || number >= static_cast<std::int64_t>(sources.size()))
      at.fail(std::to_string(number), "a number of /sources");
    return sources[static_cast<std::size_t>(number)];
  }
  static Evidence evidence(const JsonReader& at) { return word<Evidence>(at, kEvidences); }
  /// The file has a root only if it differs from the evidence.
  static std::optional<Evidence> root(const JsonReader& of) {
    return of.has("root") ? std::optional(evidence(of.at("root"))) : std::nullopt;
  }
  static std::int64_t positive(const JsonReader& at) {
    if (at.integer() < 1) at.fail(std::to_string(at.integer()), "an integer >= 1");
    return at.integer();
  }

  void tables(MachineData& data) const {
    for (const JsonReader& entry : in.at("table").elements()) {
      entry.allow_only({"kernel", "pass", "precision", "dims", "points"});
      const ClassKey key = class_of(entry);
      ItemKey item{key.kernel, key.pass, key.precision, {}};
      const auto dims = entry.at("dims").elements();
      if (dims.size() != item.dims.size()) entry.at("dims").fail(std::to_string(dims.size()) + " numbers", "four");
      for (std::size_t i = 0; i < dims.size(); ++i) item.dims[i] = dims[i].integer();
      auto& points = data.table[item];
      for (const JsonReader& each : entry.at("points").elements()) {
        each.allow_only({"rows", "seconds", "low_s", "high_s", "evidence", "source", "root"});
        points.push_back({each.at("rows").non_negative(), each.at("seconds").non_negative(),
                          each.at("low_s").non_negative(), each.at("high_s").non_negative(),
                          evidence(each.at("evidence")), source(each.at("source")), root(each)});
        if (points.size() > 1 && points[points.size() - 2].rows >= points.back().rows)
          each.at("rows").fail("rows that do not ascend", "each row count once, ascending");
      }
    }
  }

  void fits(MachineData& data) const {
    for (const JsonReader& each : in.at("fits").elements()) {
      each.allow_only({"kernel", "pass", "precision", "overlap", "launch_s", "s_per_flop", "s_per_wave_flop",
                       "s_per_byte", "low_ratio", "high_ratio", "table_low_ratio", "table_high_ratio", "points",
                       "evidence", "root"});
      KernelFit& fit = data.fits[class_of(each)];
      fit.overlap = each.at("overlap").boolean();
      fit.launch_s = each.at("launch_s").non_negative();
      fit.s_per_flop = each.at("s_per_flop").non_negative();
      fit.s_per_wave_flop = each.at("s_per_wave_flop").non_negative();
      fit.s_per_byte = each.at("s_per_byte").non_negative();
      fit.low_ratio = each.at("low_ratio").non_negative();
      fit.high_ratio = each.at("high_ratio").non_negative();
      fit.table_low_ratio = each.at("table_low_ratio").non_negative();
      fit.table_high_ratio = each.at("table_high_ratio").non_negative();
      fit.points = positive(each.at("points"));
      fit.evidence = evidence(each.at("evidence"));
      fit.root = root(each);
    }
  }

  void ops(MachineData& data) const {
    for (const JsonReader& each : in.at("ops").elements()) {
      each.allow_only({"action", "direction", "group", "factor", "overhead_s", "low_ratio", "high_ratio", "points",
                       "evidence", "source"});
      const OpKey key{word<Action>(each.at("action"), kActions), direction_of(each.at("direction")),
                      word<Group>(each.at("group"), kGroups)};
      data.ops[key] = {each.at("factor").non_negative(),
                       each.at("overhead_s").non_negative(),
                       each.at("low_ratio").non_negative(),
                       each.at("high_ratio").non_negative(),
                       positive(each.at("points")),
                       evidence(each.at("evidence")),
                       source(each.at("source"))};
    }
  }

  void crowding(std::map<std::int64_t, double>& out) const {
    for (const JsonReader& each : in.at("crowding").elements()) {
      each.allow_only({"ranks", "ratio"});
      const JsonReader ranks = each.at("ranks"), ratio = each.at("ratio");
      if (ranks.integer() < 2) ranks.fail(std::to_string(ranks.integer()), "at least 2");
      if (!(ratio.non_negative() >= 1)) ratio.fail(fmt::format("{}", ratio.non_negative()), "at least 1");
      out[ranks.integer()] = ratio.non_negative();
    }
  }

  CommunicationSlowdown slowdown() const {
    const JsonReader each = in.at("communication_slowdown");
    each.allow_only({"share", "low", "high", "evidence", "source"});
    const CommunicationSlowdown out{each.at("share").non_negative(), each.at("low").non_negative(),
                                    each.at("high").non_negative(), evidence(each.at("evidence")),
                                    source(each.at("source"))};
    if (!(out.low <= out.share && out.share <= out.high && out.high < 1))
      each.fail(fmt::format("low {}, share {}, high {}", out.low, out.share, out.high), "low <= share <= high < 1");
    return out;
  }

  StorageRate storage_rate(const JsonReader& each) const {
    each.allow_only(
        {"latency_s", "node", "nodes", "all_Bps", "limited", "largest_bytes", "rows", "evidence", "source"});
    StorageRate out{.latency_s = each.at("latency_s").non_negative()};
    for (const JsonReader& point : each.at("node").elements()) {
      point.allow_only({"ranks", "Bps"});
      out.node.push_back({positive(point.at("ranks")), point.at("Bps").non_negative()});
      const std::size_t n = out.node.size();
      if (!(out.node[n - 1].Bps > 0)) point.at("Bps").fail("0", "a number above 0");
      if (n > 1 && (out.node[n - 2].ranks >= out.node[n - 1].ranks || out.node[n - 2].Bps > out.node[n - 1].Bps))
        point.fail("ranks or rates that descend", "each number of ranks once, ascending, with rates that do not fall");
    }
    if (out.node.empty()) each.at("node").fail("none", "at least one rate");
    out.nodes = positive(each.at("nodes"));
    out.all_Bps = each.at("all_Bps").non_negative();
    if (!(out.all_Bps > 0)) each.at("all_Bps").fail("0", "a number above 0");
    out.limited = each.at("limited").boolean();
    out.largest_bytes = positive(each.at("largest_bytes"));
    out.rows = positive(each.at("rows"));
    out.evidence = {evidence(each.at("evidence")), source(each.at("source"))};
    return out;
  }

  void storage(std::vector<StorageRates>& out) const {
    for (const JsonReader& each : in.at("storage").elements()) {
      each.allow_only({"store", "write", "read"});
      StorageRates& rates = out.emplace_back();
      rates.store = each.at("store").string();
      if (each.has("write")) rates.write = storage_rate(each.at("write"));
      if (each.has("read")) rates.read = storage_rate(each.at("read"));
    }
  }

  void collectives(CollectiveData& out) const {
    const JsonReader all = in.at("collectives");
    all.allow_only({"cpu", "nvlink_Bps", "nic_Bps", "generation", "transport", "nvls_ranks", "all_reduce", "points"});
    CollectiveMachine& machine = out.machine;
    machine = machine_of_link(all.at("nvlink_Bps").non_negative(), all.at("nic_Bps").non_negative());
    machine.generation = static_cast<int>(positive(all.at("generation")));
    machine.transport = all.at("transport").string();
    machine.nvls_ranks = all.has("nvls_ranks") ? positive(all.at("nvls_ranks")) : 0;
    if (all.has("all_reduce"))
      machine.only = word<AllReduce>(all.at("all_reduce"), static_cast<int>(kAllReduces.size()));
    for (const JsonReader& each : all.at("cpu").elements()) {
      each.allow_only({"kind", "ranks", "latency_s", "latency_s_per_byte", "cpu_s", "cpu_s_per_byte", "relative_spread",
                       "points", "evidence"});
      const std::int64_t ranks = positive(each.at("ranks"));
      if (ranks < 2) each.at("ranks").fail("1", "at least 2");
      out.cpu.push_back({word<OpKind>(each.at("kind"), kKinds), ranks, each.at("latency_s").non_negative(),
                         each.at("latency_s_per_byte").non_negative(), each.at("cpu_s").non_negative(),
                         each.at("cpu_s_per_byte").non_negative(), each.at("relative_spread").non_negative(),
                         positive(each.at("points")), evidence(each.at("evidence"))});
    }
    for (const JsonReader& each : all.at("points").elements()) {
      each.allow_only({"kind", "nodes", "ranks", "bytes", "seconds", "relative_spread", "evidence", "source", "root"});
      CollectivePoint& p = out.points.emplace_back();
      p.kind = word<OpKind>(each.at("kind"), kKinds);
      p.bytes = each.at("bytes").non_negative();
      p.group = {positive(each.at("ranks")), positive(each.at("nodes"))};
      p.machine = machine;
      p.seconds = each.at("seconds").non_negative();
      p.relative_spread = each.at("relative_spread").non_negative();
      p.evidence = evidence(each.at("evidence"));
      p.root = root(each);
      p.source = source(each.at("source"));
      if (!(p.seconds > 0)) each.at("seconds").fail("0", "a number above 0");
      if (!(p.bytes > 0)) each.at("bytes").fail("0", "a number above 0");
    }
  }
};

json storage_json(const std::vector<StorageRates>& stores, Sources& sources) {
  json out = json::array();
  for (const StorageRates& rates : stores) {
    json& one = out.emplace_back(json{{"store", rates.store}});
    for (const auto& [key, rate] : {std::pair{"write", &rates.write}, {"read", &rates.read}}) {
      if (!rate->measured()) continue;
      json node = json::array();
      for (const NodeRate& point : rate->node) node.push_back({{"ranks", point.ranks}, {"Bps", point.Bps}});
      one[key] = {{"latency_s", rate->latency_s},
                  {"node", std::move(node)},
                  {"nodes", rate->nodes},
                  {"all_Bps", rate->all_Bps},
                  {"limited", rate->limited},
                  {"largest_bytes", rate->largest_bytes},
                  {"rows", rate->rows},
                  {"evidence", to_string(rate->evidence.kind)},
                  {"source", sources.number(rate->evidence.source)}};
    }
  }
  return out;
}

json collectives_json(const CollectiveData& data, Sources& sources) {
  const CollectiveMachine& machine = data.machine;
  json out = {{"nvlink_Bps", machine.nvlink_Bps}, {"nic_Bps", machine.nic_Bps}, {"generation", machine.generation},
              {"transport", machine.transport},   {"cpu", json::array()},       {"points", json::array()}};
  if (machine.nvls_ranks > 0) out["nvls_ranks"] = machine.nvls_ranks;
  if (machine.only) out["all_reduce"] = to_string(*machine.only);
  for (const CpuCollective& c : data.cpu)
    out["cpu"].push_back({{"kind", to_string(c.kind)},
                          {"ranks", c.ranks},
                          {"latency_s", c.latency_s},
                          {"latency_s_per_byte", c.latency_s_per_byte},
                          {"cpu_s", c.cpu_s},
                          {"cpu_s_per_byte", c.cpu_s_per_byte},
                          {"relative_spread", c.relative_spread},
                          {"points", c.points},
                          {"evidence", to_string(c.evidence)}});
  for (const CollectivePoint& p : data.points) {
    out["points"].push_back({{"kind", to_string(p.kind)},
                             {"nodes", p.group.nodes},
                             {"ranks", p.group.ranks},
                             {"bytes", p.bytes},
                             {"seconds", p.seconds},
                             {"relative_spread", p.relative_spread},
                             {"evidence", to_string(p.evidence)},
                             {"source", sources.number(p.source)}});
    if (p.root) out["points"].back()["root"] = to_string(*p.root);
  }
  return out;
}

}  // namespace

std::string to_string(const ClassKey& key) {
  return to_string(key.kernel) + "/" + to_string(key.pass) + "/" + to_string(key.precision);
}

std::string to_string(const OpKey& key) {
  return to_string(key.action) + "." + kDirections[static_cast<int>(key.direction)] + "/" + to_string(key.group);
}

json to_json(const MachineData& data) {
  Sources sources;
  json table = json::array(), fits = json::array(), ops = json::array();
  for (const auto& [key, points] : data.table) {
    json entry = class_json({key.kernel, key.pass, key.precision});
    entry["dims"] = key.dims;
    for (const TimePoint& p : points) {
      entry["points"].push_back({{"rows", p.rows},
                                 {"seconds", p.seconds},
                                 {"low_s", p.low_s},
                                 {"high_s", p.high_s},
                                 {"evidence", to_string(p.evidence)},
                                 {"source", sources.number(p.source)}});
      if (p.root) entry["points"].back()["root"] = to_string(*p.root);
    }
    table.push_back(std::move(entry));
  }
  for (const auto& [key, fit] : data.fits) {
    json entry = class_json(key);
    entry.update({{"overlap", fit.overlap},
                  {"launch_s", fit.launch_s},
                  {"s_per_flop", fit.s_per_flop},
                  {"s_per_wave_flop", fit.s_per_wave_flop},
                  {"s_per_byte", fit.s_per_byte},
                  {"low_ratio", fit.low_ratio},
                  {"high_ratio", fit.high_ratio},
                  {"table_low_ratio", fit.table_low_ratio},
                  {"table_high_ratio", fit.table_high_ratio},
                  {"points", fit.points},
                  {"evidence", to_string(fit.evidence)}});
    if (fit.root) entry["root"] = to_string(*fit.root);
    fits.push_back(std::move(entry));
  }
  for (const auto& [key, op] : data.ops)
    ops.push_back({{"action", to_string(key.action)},
                   {"direction", kDirections[static_cast<int>(key.direction)]},
                   {"group", to_string(key.group)},
                   {"factor", op.factor},
                   {"overhead_s", op.overhead_s},
                   {"low_ratio", op.low_ratio},
                   {"high_ratio", op.high_ratio},
                   {"points", op.points},
                   {"evidence", to_string(op.evidence)},
                   {"source", sources.number(op.source)}});
  json collectives = collectives_json(data.collectives, sources);
  const CommunicationSlowdown& slowdown = data.communication_slowdown;
  json crowding = json::array();
  for (const auto& [ranks, ratio] : data.crowding) crowding.push_back({{"ranks", ranks}, {"ratio", ratio}});
  json storage = storage_json(data.storage, sources);
  json document = {{"schema", kSchema},
                   {"fingerprint", data.fingerprint},
                   {"synchronous_host", data.synchronous_host},
                   {"allow_assumed", data.allow_assumed},
                   {"row_tile", data.row_tile},
                   {"multiprocessors", data.multiprocessors},
                   {"table", std::move(table)},
                   {"fits", std::move(fits)},
                   {"ops", std::move(ops)},
                   {"collectives", std::move(collectives)},
                   {"communication_slowdown",
                    {{"share", slowdown.share},
                     {"low", slowdown.low},
                     {"high", slowdown.high},
                     {"evidence", to_string(slowdown.evidence)},
                     {"source", sources.number(slowdown.source)}}},
                   {"crowding", std::move(crowding)},
                   {"variation", data.variation},
                   {"sources", sources.list()}};
  if (!data.storage.empty()) document["storage"] = std::move(storage);
  machine_from_json(document, "machine model to be written");  // JSON would silently turn a NaN into null
  return document;
}

MachineData machine_from_json(const json& document, const std::string& origin) {
  Reader reader{JsonReader(document, origin), {}};
  const JsonReader& in = reader.in;
  if (const std::string schema = in.at("schema").string(); schema != kSchema)
    in.at("schema").fail(fmt::format("'{}'", schema), fmt::format("'{}'", kSchema));
  in.allow_only({"schema", "fingerprint", "synchronous_host", "allow_assumed", "row_tile", "multiprocessors", "table",
                 "fits", "ops", "collectives", "communication_slowdown", "crowding", "variation", "storage",
                 "sources"});
  for (const JsonReader& each : in.at("sources").elements()) reader.sources.push_back(each.string());
  MachineData data;
  for (const auto& [key, value] : in.at("fingerprint").items()) data.fingerprint[key] = value.string();
  data.synchronous_host = in.at("synchronous_host").boolean();
  data.allow_assumed = in.at("allow_assumed").boolean();
  data.row_tile = Reader::positive(in.at("row_tile"));
  data.multiprocessors = in.at("multiprocessors").integer();
  reader.tables(data);
  reader.fits(data);
  reader.ops(data);
  reader.collectives(data.collectives);
  if (in.has("communication_slowdown"))
    data.communication_slowdown = reader.slowdown();       // not in files made before it was known
  if (in.has("crowding")) reader.crowding(data.crowding);  // likewise
  if (in.has("storage")) reader.storage(data.storage);
  if (in.has("variation")) data.variation = in.at("variation").non_negative();
  return data;
}

MachineData read_machine(const std::filesystem::path& file) {
  return machine_from_json(read_json(file), file.string());
}

void write_machine(const MachineData& data, const std::filesystem::path& file) {
  write_file_atomically(file, to_json(data).dump() + "\n");
}

}  // namespace wt
