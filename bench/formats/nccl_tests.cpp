#include "bench/formats/nccl_tests.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/parsed.hpp"

namespace wt {
namespace {

/// The programs of nccl-tests, and this project's names of their collectives.
const std::map<std::string, std::string> kTests{
    {"all_reduce", "all_reduce"}, {"all_gather", "all_gather"}, {"reduce_scatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},   {"broadcast", "broadcast"},   {"reduce", "reduce"},
    {"sendrecv", "send_recv"},    {"gather", "gather"},         {"scatter", "scatter"},
    {"hypercube", "hypercube"}};
const std::set<std::string> kTypes{"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                   "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};

constexpr std::int64_t kLargeMessage = 1 << 20;  // times of smaller messages depend on the host, and vary more
constexpr double kApart = 2;
constexpr std::size_t kLongestLine = 1024;  // longer than any line of the tests; std::regex recurses by character

class NcclTestsReader {
 public:
  explicit NcclTestsReader(std::string origin) : origin_(std::move(origin)) {}

  Profile read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line); ++line_) {
      line.resize(std::min(line.size(), kLongestLine));
      name(line);
      if (!device(line)) row(line);
    }
    line_ = 0;
    if (test_.empty())
      fail("no name of a test",
           "one of the tests' own (all_reduce_perf, ...); keep the command or the last line in the text");
    if (hosts_.empty())
      fail("no list of devices ('#  Rank  0 ... on HOST device  0 [..] GPU')", "the tests' whole output");
    if (sizes_.empty()) fail("no row with a size above 0", "the tests' table");
    Profile profile;
    const auto nodes = static_cast<std::int64_t>(hosts_.size());
    profile.fingerprint = {{"device", gpu_},
                           {"host", "asynchronous"},
                           {"gpus_per_node", std::to_string(ranks_ / nodes)},
                           {"source", "nccl-tests " + test_ + "_perf"}};
    if (!nccl_.empty()) profile.fingerprint["nccl"] = nccl_;
    for (auto& [bytes, times] : sizes_) {
      check_alike(bytes, times);
      Measurement m;
      m.kernel = kTests.at(test_), m.pass = "";
      m.shape = {{"bytes", bytes}, {"ranks", ranks_}, {"nodes", nodes}};
      m.counters = {{"in_place_s", times.in_place_s / static_cast<double>(times.out_of_place_s.size())}};
      m.samples = std::move(times.out_of_place_s);
      m.evidence = {Evidence::measured, "nccl-tests " + test_ + "_perf, out of place, " + origin_};
      profile.measurements.push_back(std::move(m));
    }
    return profile;
  }

 private:
  struct Times {
    std::vector<double> out_of_place_s;
    double in_place_s = 0;  ///< sum over repetitions
  };

  /// Runs in one text are merged, so they must come from one machine in one state.
  void check_alike(std::int64_t bytes, const Times& times) const {
    const auto [least, most] = std::ranges::minmax_element(times.out_of_place_s);
    if (bytes >= kLargeMessage && *most > kApart * *least)
      fail(fmt::format("runs of {:.3g} and {:.3g} us for {} bytes", *least * 1e6, *most * 1e6, bytes),
           fmt::format("runs within a factor of {} of each other; import each on its own", kApart));
  }

  void name(const std::string& line) {
    static const std::regex program("([a-z_]+)_perf\\b"), version("NCCL version:? ?([0-9][0-9.]*)");
    std::smatch found;
    if (line.find("_perf") != std::string::npos)
      for (std::sregex_iterator it(line.begin(), line.end(), program), end; it != end; ++it) {
        const std::string word = (*it)[1];
        if (!kTests.contains(word)) continue;
        if (!test_.empty() && test_ != word) fail("the tests " + test_ + " and " + word, "one test a file; split it");
        test_ = word;
      }
    if (line.find("NCCL version") != std::string::npos && std::regex_search(line, found, version)) nccl_ = found[1];
  }

  bool device(const std::string& line) {
    static const std::regex rank(
        "#\\s+Rank\\s+(\\d+)\\s.*\\bon\\s+(\\S+)\\s+device\\s+(\\d+)\\s+\\[([^\\]]*)\\]\\s+(.*\\S)\\s*");
    std::smatch found;
    if (line.find("Using devices") != std::string::npos) list_begins_ = true;
    if (line.find("device") == std::string::npos || !std::regex_search(line, found, rank)) return false;
    const std::string number = found[1], host = found[2], index = found[3], bus = found[4], gpu = found[5];
    if (number == "0" && (list_begins_ || !sizes_.empty())) {  // the list of a further run
      if (!sizes_.empty()) before_ = {ranks_, hosts_.size()};
      ranks_ = 0, hosts_.clear(), devices_.clear();
    }
    if (number != std::to_string(ranks_))
      fail(fmt::format("rank {} behind {} ranks", number, ranks_), "ranks 0, 1, 2, ... of one run");
    if (!gpu_.empty() && gpu_ != gpu) fail("GPUs " + gpu_ + " and " + gpu, "one kind of GPU");
    if (!devices_.insert(std::array{host, index, bus}).second)
      fail(fmt::format("a second rank on device {} of host {}, bus id {}", index, host, bus),
           "a GPU a rank; hosts with one name count as one, give each its own");
    ++ranks_, hosts_.insert(host), gpu_ = gpu, list_begins_ = false;
    return true;
  }

  /// Columns: size count type redop [root] time algbw busbw #wrong time algbw busbw #wrong; older tests have no root.
  void row(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    std::size_t type = 2;
    while (type < words.size() && !kTypes.contains(words[type])) ++type;
    if (type >= words.size() || !parsed<std::int64_t>(words[type - 1])) return;
    const auto size = parsed<std::int64_t>(words[type - 2]);
    if (!size) return;
    const std::size_t left = words.size() - type;
    if (left != 10 && left != 11)
      fail(fmt::format("{} words behind the element type", left - 1),
           "redop, root, and twice time, algbw, busbw, #wrong");
    const std::int64_t bytes = *size;
    if (bytes == 0) return;
    if (before_ && *before_ != std::pair{ranks_, hosts_.size()})
      fail("runs over " + std::to_string(before_->first) + " and " + std::to_string(ranks_) + " GPUs",
           "one cluster's ranks and nodes a file; split it");
    const std::size_t first = words.size() - 8;
    const double out = time_s(words, first, bytes), in_place = time_s(words, first + 4, bytes);
    Times& times = sizes_[bytes];
    times.out_of_place_s.push_back(out);
    times.in_place_s += in_place;
  }

  double time_s(const std::vector<std::string>& words, std::size_t at, std::int64_t bytes) const {
    const double us = parsed<double>(words[at]).value_or(0);
    const auto algbw = parsed<double>(words[at + 1]);
    if (!algbw || !(us > 0 && std::isfinite(us)))
      fail("'" + words[at] + " " + words[at + 1] + "'", "microseconds and GB/s");
    if (words[at + 3] != "N/A" &&
        !(parsed<double>(words[at + 3]).value_or(1) <= 1e-3))  // older tests print the largest error instead
      fail(words[at + 3] + " wrong results", "0 or N/A; do not use this cluster's figures before it computes rightly");
    // Both are rounded, to three digits or two decimals.
    const double expected = static_cast<double>(bytes) / us * 1e-3;
    if (std::abs(*algbw - expected) > 0.011 + 0.01 * expected)
      fail(fmt::format("algbw {} GB/s where size / time is {:.3g}", *algbw, expected),
           "the columns of nccl-tests: time in us, then algbw in GB/s");
    return us * 1e-6;
  }

  [[noreturn]] void fail(const std::string& found, const std::string& allowed) const {
    throw_usage("{}{}: found {}, allowed {}", origin_, line_ > 0 ? ":" + std::to_string(line_) : "", found, allowed);
  }

  const std::string origin_;
  int line_ = 1;
  std::string test_, gpu_, nccl_;
  bool list_begins_ = true;  ///< no line of the list of devices has been read yet
  std::int64_t ranks_ = 0;
  std::set<std::string> hosts_;
  /// Host, index and bus id; the index alone is not unique, because it is 0 for all tasks that see one GPU each.
  std::set<std::array<std::string, 3>> devices_;
  std::optional<std::pair<std::int64_t, std::size_t>> before_;  ///< ranks and hosts of the previous run in this text
  std::map<std::int64_t, Times> sizes_;
};

}  // namespace

Profile from_nccl_tests(const std::string& text, const std::string& origin) {
  return NcclTestsReader(origin).read(text);
}

namespace {

/// Lines of the tests may also begin with a bracket: OpenMPI's label "[1,0]<stdout>:", a host, a time.
bool is_json_document(const std::string& text) {
  const char* const space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos || (text[first] != '{' && text[first] != '[')) return false;
  const std::size_t next = text.find_first_not_of(space, first + 1);
  return text[first] == '{' || next == std::string::npos || std::string("{[\"]").find(text[next]) != std::string::npos;
}

}  // namespace

bool is_nccl_tests(const std::string& text) {
  return text.find("algbw") != std::string::npos && text.find("busbw") != std::string::npos && !is_json_document(text);
}

}  // namespace wt
