// The table that nccl-tests and rccl-tests print, in versions 2.9 to 2.19.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

#include "bench/formats/nccl_run.hpp"
#include "configs/base/parsed.hpp"

namespace wt {
namespace {

const std::set<std::string> kTypes{"int8",  "uint8",  "int32",    "uint32", "int64",  "uint64",   "half",
                                   "float", "double", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"};
constexpr std::size_t kLongestLine = 1024;  // longer than any line of the tests; std::regex recurses by character

class NcclText {
 public:
  explicit NcclText(std::string origin) : origin_(std::move(origin)) {}

  std::vector<NcclRun> read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line); ++line_) {
      line.resize(std::min(line.size(), kLongestLine));
      remark(line);
      if (header(line) || device(line)) continue;
      std::istringstream in(line);
      std::vector<std::string> words;
      for (std::string word; in >> word;) words.push_back(word);
      if (!row(words)) rest_of_row(std::move(words));
    }
    if (begun_) run_.notes.insert(fmt::format("the last row, of {} bytes, is cut off and left out", begun_->bytes));
    if (mentioned_.empty()) mentioned_ = next_mentioned_;
    end_run();
    return std::move(runs_);
  }

 private:
  /// A row whose times have not all come yet: NCCL's own lines may stand between them.
  struct BegunRow {
    std::int64_t bytes = 0;
    std::string where;
    std::size_t words = 0;  ///< behind the element type
    std::vector<std::string> cells = {};
  };

  std::string where() const { return fmt::format("{}:{}", origin_, line_); }

  void end_run() {
    if (run_.rows.empty()) return;
    if (run_.tests.empty()) run_.tests = mentioned_;
    runs_.push_back(std::exchange(run_, {}));
    mentioned_ = std::exchange(next_mentioned_, {});
    devices_.clear();
    lists_ = headers_ = 0;
  }

  /// What the tests and NCCL say around the table.
  void remark(const std::string& line) {
    const auto says = [&](const char* words) { return line.find(words) != std::string::npos; };
    if (says("_perf")) {
      const std::set<std::string> named = nccl_test_names(line);
      // A test names itself before its table and behind it; a command stands before.
      if (says("Collective test starting")) {
        end_run();
        run_.tests = named;
      } else if (says("Collective test concluded")) {
        run_.tests.insert(named.begin(), named.end());
      } else {
        (run_.rows.empty() ? mentioned_ : next_mentioned_).insert(named.begin(), named.end());
      }
    }
    static const std::regex version("NCCL version:? ?([0-9][0-9.]*)"), library("nccl-library=(\\d{4,6})");
    std::smatch found;
    if (says("NCCL version") && std::regex_search(line, found, version)) run_.nccl = found[1];
    if (run_.nccl.empty() && says("nccl-library=") && std::regex_search(line, found, library))
      run_.nccl = nccl_version(parsed<std::int64_t>(found[1].str()).value_or(0));
    if (says("Out of bounds values")) {
      refuse_begun();
      if (says("FAILED")) check_nccl_results("more than 0", where());
    }
    for (const char* failure : {"Test NCCL failure", "Test CUDA failure", "Test timeout", "Test failure"})
      if (says(failure)) {
        run_.notes.insert("a test ended with an error: " + line.substr(0, 120));
        lists_ = headers_ = 0;
      }
    if (says("Blocking Enabled"))
      run_.notes.insert("every iteration waited for its end (-z): times include the host's");
  }

  bool header(const std::string& line) {
    if (line.find("algbw") == std::string::npos || line.find("busbw") == std::string::npos) return false;
    if (run_.devices.empty()) end_run();
    ++headers_;
    run_.cpu_time = line.find("cputime") != std::string::npos;
    side_ = line.find("i_p99") != std::string::npos ? 8 : 4;
    before_times_ =
        (line.find("redop") != std::string::npos ? 1U : 0U) + (line.find("root") != std::string::npos ? 1U : 0U);
    return true;
  }

  bool device(const std::string& line) {
    static const std::regex rank(
        "#\\s+Rank\\s+(\\d{1,9})\\s+(?:Group\\s+(\\d{1,9})\\s)?.*\\bon\\s+(\\S+)\\s+device\\s+(\\d+)\\s+\\[([^\\]]*)\\]"
        "\\s+(.*\\S)\\s*");
    std::smatch found;
    if (line.find("Rank") == std::string::npos || !std::regex_search(line, found, rank)) return false;
    const auto number = [&](std::size_t group) { return parsed<std::int64_t>(found[group].str()).value_or(0); };
    if (number(1) == 0) {  // the list of a further run, or of another process
      end_run();
      run_.devices.clear(), devices_.clear();
      ++lists_;
    }
    devices_.add(run_, {number(1), number(2), found[3], found[6]}, found[4], found[5], where());
    return true;
  }

  /// Columns: size count type [redop] [root], then out of place and in place: time algbw busbw #wrong, with -I also
  /// i_min i_max i_p99 i_cv%; a date and a time with -S. Tests before 2.13 print redop and root where they have one.
  bool row(const std::vector<std::string>& words) {
    std::size_t type = 2;
    while (type < words.size() && !kTypes.contains(words[type])) ++type;
    if (type >= words.size() || !parsed<std::int64_t>(words[type - 1])) return false;
    const auto size = parsed<std::int64_t>(words[type - 2]);
    if (!size) return false;
    refuse_begun();
    if (std::min(lists_, headers_) > 1)
      refuse_nccl(where(), fmt::format("{} lists of devices that each begin with rank 0", std::min(lists_, headers_)),
                  kNcclOneRun);
    std::vector<std::string> cells(words.begin() + static_cast<std::ptrdiff_t>(type) + 1, words.end());
    begun_ = {*size, where(), cells.size()};
    drop_date(cells);
    const std::size_t more = cells.size() - std::min(cells.size(), cells_of_row());
    const std::size_t first = cells.size() >= cells_of_row() && more <= 2 ? more : before_times_;
    cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(std::min(first, cells.size())));
    while (!cells.empty() && !is_cell(cells.back())) cells.pop_back();
    if (!std::ranges::all_of(cells, is_cell)) cells.clear();
    begun_->cells = std::move(cells);
    end_row();
    return true;
  }

  /// The times of a row whose begin stood on an earlier line.
  void rest_of_row(std::vector<std::string> words) {
    if (!begun_) return;
    drop_date(words);
    const std::size_t needed = cells_of_row() - begun_->cells.size();
    if (words.size() < needed || (words.size() > needed && is_cell(words[words.size() - needed - 1]))) return;
    const auto first = words.end() - static_cast<std::ptrdiff_t>(needed);
    if (!std::all_of(first, words.end(), is_cell)) return;
    begun_->cells.insert(begun_->cells.end(), first, words.end());
    end_row();
  }

  /// Takes the row that has begun, where all of its times have come.
  void end_row() {
    if (begun_->cells.size() > cells_of_row()) refuse_begun();
    if (begun_->cells.size() < cells_of_row()) return;
    const BegunRow row = *std::exchange(begun_, std::nullopt);
    if (row.bytes > 0)  // else nothing was sent
      run_.rows.push_back(
          {.where = row.where, .bytes = row.bytes, .out_of_place = side(row, 0), .in_place = side(row, side_)});
  }

  void refuse_begun() const {
    if (begun_)
      refuse_nccl(begun_->where, fmt::format("{} words behind the element type", begun_->words),
                  "redop, root, and twice time, algbw, busbw, #wrong, as the header says");
  }

  static bool is_cell(const std::string& word) { return word == "N/A" || parsed<double>(word); }
  static void drop_date(std::vector<std::string>& words) {
    if (words.size() < 2) return;
    const std::string& date = words[words.size() - 2];
    if (date.size() == 10 && date[4] == '-' && date[7] == '-') words.resize(words.size() - 2);
  }
  std::size_t cells_of_row() const { return 2 * side_; }

  NcclSide side(const BegunRow& row, std::size_t at) const {
    const auto& words = row.cells;
    const auto time = printed_number(words[at]), algbw = printed_number(words[at + 1]),
               busbw = printed_number(words[at + 2]);
    if (!time || !algbw || !busbw || !(time->value > 0))
      refuse_nccl(row.where, fmt::format("'{} {} {}'", words[at], words[at + 1], words[at + 2]),
                  "microseconds and GB/s");
    check_nccl_results(words[at + 3], row.where);
    return {*time, *algbw, *busbw};
  }

  const std::string origin_;
  int line_ = 1;
  std::vector<NcclRun> runs_;
  NcclRun run_;
  NcclDeviceList devices_;
  std::set<std::string> mentioned_, next_mentioned_;  ///< tests in commands before this run's table, and behind it
  int lists_ = 0, headers_ = 0;                       ///< since the last run's rows
  std::size_t side_ = 4, before_times_ = 2;           ///< columns out of place, and between the type and the times
  std::optional<BegunRow> begun_;
};

}  // namespace

std::vector<NcclRun> nccl_runs_of_text(const std::string& text, const std::string& origin) {
  return NcclText(origin).read(text);
}

}  // namespace wt
