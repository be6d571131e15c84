#include "bench/formats/nsight.hpp"

#include <fmt/core.h>
#include <sqlite3.h>

#include <cctype>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <regex>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::int64_t kMostRows = 20'000'000;

/// A row of an answer. NULL is 0 or "".
class SqlRow {
 public:
  explicit SqlRow(sqlite3_stmt* at) : at_(at) {}
  std::int64_t whole(int column) const { return sqlite3_column_int64(at_, column); }
  std::string text(int column) const {
    const unsigned char* const text = sqlite3_column_text(at_, column);
    return text == nullptr ? "" : reinterpret_cast<const char*>(text);
  }

 private:
  sqlite3_stmt* at_;
};

/// A foreign database, read without trust: nothing of it is written, no view or function of its schema runs, and
/// queries end.
class Database {
 public:
  explicit Database(const std::filesystem::path& file) : file_(file.string()) {
    sqlite3* opened = nullptr;
    const int result =
        sqlite3_open_v2(unchanging(file).c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    db_.reset(opened);
    if (result != SQLITE_OK) fail("a file that cannot be opened");
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_progress_handler(
        opened, 1'000'000, [](void* turns) { return ++*static_cast<int*>(turns) > 2000 ? 1 : 0; }, &turns_);
  }

  /// Fails for a table with values that SQLite would compute: a virtual one, and one with generated columns.
  bool has_table(const std::string& name) {
    const bool stored = any("sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = '" + name + "'");
    if (!stored && any("sqlite_schema WHERE type = 'table' AND name = '" + name + "'")) fail("a virtual table " + name);
    if (stored && any("pragma_table_xinfo('" + name + "') WHERE hidden <> 0"))
      fail("generated columns in the table " + name);
    return stored;
  }

  bool has_column(const std::string& table, const std::string& name) {
    return any("pragma_table_info('" + table + "') WHERE name = '" + name + "'");
  }

  void each(const std::string& query, const std::function<void(const SqlRow&)>& take) {
    sqlite3_stmt* made = nullptr;
    const int prepared = sqlite3_prepare_v2(db_.get(), query.c_str(), -1, &made, nullptr);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
    if (prepared != SQLITE_OK) fail("a database that is damaged, cut, or has other columns than Nsight Systems'");
    int result = SQLITE_ROW;
    for (std::int64_t rows = 0; (result = sqlite3_step(made)) == SQLITE_ROW; ++rows) {
      if (rows >= kMostRows) fail(fmt::format("more than {} rows of one kind", kMostRows));
      take(SqlRow(made));
    }
    if (result != SQLITE_DONE) fail("a database that is damaged or cut");
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw_usage(
        "{}: found {}; needs an SQLite export of Nsight Systems (nsys export --type sqlite) of one GPU's kernels",
        file_, found);
  }

 private:
  bool any(const std::string& rows) {
    bool found = false;
    each("SELECT 1 FROM " + rows, [&](const SqlRow&) { found = true; });
    return found;
  }

  /// The file's URI, read as it is: without locks, and without a journal beside it.
  static std::string unchanging(const std::filesystem::path& file) {
    std::string out = "file:";
    for (const char c : std::filesystem::absolute(file).string())
      out += c == '/' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0
                 ? std::string(1, c)
                 : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return out + "?immutable=1";
  }

  std::string file_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_{nullptr, sqlite3_close};
  int turns_ = 0;
};

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";

class NsightReader {
 public:
  explicit NsightReader(const std::filesystem::path& file) : db_(file) {}

  GpuTrace read() {
    if (!db_.has_table(kKernels)) db_.fail(std::string("no table ") + kKernels);
    if (db_.has_table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"))
      db_.fail("CUDA graphs that were traced as a whole (profile with --cuda-graph-trace=node)");
    if (db_.has_table("StringIds")) read_texts();
    db_.each(fmt::format("SELECT start, end, deviceId, demangledName FROM {}", kKernels), [&](const SqlRow& row) {
      const std::string& name = texts_[row.whole(3)];
      GpuWork& work = add(row, kernel_class(name));
      if (work.kind == KernelClass::collective) work.group = collective_of_kernel(name);
    });
    for (const char* const table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"})
      if (db_.has_table(table))
        db_.each(fmt::format("SELECT start, end, deviceId FROM {}", table),
                 [&](const SqlRow& row) { add(row, KernelClass::transfer); });
    if (out_.work.empty()) db_.fail("no kernel");
    read_marks();
    return std::move(out_);
  }

 private:
  GpuWork& add(const SqlRow& row, KernelClass kind) {
    if (row.whole(1) < row.whole(0)) db_.fail("work that ends before it begins");
    if (device_.value_or(row.whole(2)) != row.whole(2)) db_.fail("work of a second GPU");
    device_ = row.whole(2);
    constexpr double kNano = 1e-9;
    return out_.work.emplace_back(GpuWork{.begin_s = kNano * static_cast<double>(row.whole(0)),
                                          .end_s = kNano * static_cast<double>(row.whole(1)),
                                          .kind = kind});
  }

  void read_texts() {
    constexpr std::size_t kMost = std::size_t{256} << 20;
    std::size_t bytes = 0;
    db_.each("SELECT id, value FROM StringIds", [&](const SqlRow& row) {
      std::string& text = texts_[row.whole(0)] = row.text(1);
      bytes += text.size();
      if (bytes > kMost) db_.fail(fmt::format("texts of more than {} MiB", kMost >> 20));
    });
  }

  void read_marks() {
    if (!db_.has_table("NVTX_EVENTS")) return;
    static const std::regex kStep(R"((?:ProfilerStep|(?:train(?:ing)?[ _])?(?:step|iteration|iter))[ _#:=]*(\d{1,15}))",
                                  std::regex::icase);
    // 59: pushed and popped, 60: started and ended.
    const bool by_id = db_.has_column("NVTX_EVENTS", "textId");
    db_.each(fmt::format("SELECT text, {} FROM NVTX_EVENTS WHERE eventType IN (59, 60)", by_id ? "textId" : "0"),
             [&](const SqlRow& row) {
               constexpr std::size_t kLongest = 60;
               const std::string own = row.text(0), &text = own.empty() ? texts_[row.whole(1)] : own;
               if (std::smatch m; text.size() < kLongest && std::regex_match(text, m, kStep))
                 out_.marks.insert(std::stoll(m[1]));
             });
  }

  Database db_;
  GpuTrace out_;
  std::map<std::int64_t, std::string> texts_;  ///< of StringIds
  std::optional<std::int64_t> device_;
};

}  // namespace

bool is_sqlite(const std::filesystem::path& file) {
  constexpr std::string_view kBegin{"SQLite format 3\0", 16};
  std::string begin(kBegin.size(), '\0');
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;
  std::ifstream(file, std::ios::binary).read(begin.data(), std::ssize(begin));
  return begin == kBegin;
}

GpuTrace read_nsight(const std::filesystem::path& file) { return NsightReader(file).read(); }

}  // namespace wt
