#include "trainer/data/data_check.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/scratch_folder.hpp"
#include "trainer/data/labelled_tokens.hpp"
#include "trainer/data/mds_compression.hpp"
#include "trainer/data/mds_shard_file.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kListedProblems = 20;

enum class CheckedColumn { tokens, text, turns };

struct ColumnChoice {
  std::size_t place = 0;
  CheckedColumn kind = CheckedColumn::tokens;
};

ColumnChoice column_to_check(const MdsShard& shard, const std::string& origin) {
  for (std::size_t i = 0; i < shard.columns->size(); ++i) {
    const MdsColumn& column = (*shard.columns)[i];
    if ((column.name == kTokensColumn || column.name == "input_ids") && holds_tokens(column.encoding))
      return {i, CheckedColumn::tokens};
    if (column.name == "turns" && column.encoding.name == "json") return {i, CheckedColumn::turns};
    if (column.name == "text" && (column.encoding.name == "str" || column.encoding.name == "bytes"))
      return {i, CheckedColumn::text};
  }
  throw_usage(
      "{}: {}: found the columns {}, allowed is one of tokens or input_ids (integers), text (str), turns (json); check "
      "a data set of these",
      origin, shard.raw.basename, column_list(*shard.columns));
}

std::vector<std::int64_t> drawn_samples(std::int64_t samples, const DataCheckOptions& options) {
  std::set<std::int64_t> chosen;
  const std::int64_t wanted = std::min(options.shown, samples);
  if (wanted > 0) chosen.insert(0);
  for (std::uint64_t i = 0; static_cast<std::int64_t>(chosen.size()) < wanted; ++i)
    chosen.insert(static_cast<std::int64_t>(splitmix64(options.seed + i) % static_cast<std::uint64_t>(samples)));
  return {chosen.begin(), chosen.end()};
}

/// Reads the shards in order and collects the result.
class DatasetCheck {
 public:
  DatasetCheck(fs::path folder, const DataCheckOptions& options, DataCheckResult& result)
      : folder_(std::move(folder)), options_(options), result_(result) {}

  void shard(const MdsShard& entry, std::int64_t first_sample, const std::vector<std::int64_t>& shown) {
    const ColumnChoice column = column_to_check(entry, (folder_ / kMdsIndexName).string());
    result_.text |= column.kind == CheckedColumn::text;
    if (options_.finetuning && column.kind != CheckedColumn::turns)
      problem(
          fmt::format("{}: found the column {}, allowed for a loader named finetuning is {}; pack the examples with "
                      "--samples finetune",
                      (folder_ / entry.raw.basename).string(), (*entry.columns)[column.place].name, kTurnsColumn));
    try {
      const fs::path file = shard_on_disk(entry);
      const MdsShardFile data(file, entry, column.place);
      if (!hashed_) hash_of_raw(entry, data);
      for (std::int64_t place = 0; place < entry.samples; ++place)
        sample(data, column, static_cast<std::size_t>(place), first_sample + place, shown, entry);
    } catch (const Error& error) {
      problem(error.what());
    }
    std::error_code none;
    if (!unpacked_.empty()) fs::remove(unpacked_, none);
    unpacked_.clear();
  }

 private:
  void problem(const std::string& what) {
    if (++result_.problem_count <= static_cast<std::int64_t>(kListedProblems)) result_.problems.push_back(what);
  }

  /// The uncompressed file; a compressed shard is decompressed to a scratch folder.
  fs::path shard_on_disk(const MdsShard& entry) {
    hashed_ = false;
    const fs::path raw = folder_ / entry.raw.basename;
    std::error_code error;
    if (!entry.zip || fs::exists(raw, error)) {
      const auto size = fs::file_size(raw, error);
      if (!error) result_.stored += size;
      return raw;
    }
    const fs::path zip = folder_ / entry.zip->basename;
    const detail::MappedFile file(zip);
    const auto bytes = file.bytes();
    result_.stored += bytes.size();
    if (bytes.size() != entry.zip->bytes)
      throw_usage("{}: found {} bytes, allowed are the {} of index.json; fetch or pack the dataset again", zip.string(),
                  bytes.size(), entry.zip->bytes);
    if (const std::string hash = quickest_hash(*entry.zip, "", zip.string()); !hash.empty()) {
      check_hash(*entry.zip, hash, bytes, zip.string());
      hashed_ = true;
      result_.hash = hash;
    }
    const auto codec = mds_compression_from_string(entry.compression, zip.string());
    const std::string unpacked = decompress_mds(codec, bytes, entry.raw.bytes, zip.string());
    unpacked_ = scratch().path() / fs::path(entry.raw.basename).filename();
    std::ofstream out(unpacked_, std::ios::binary | std::ios::trunc);
    out.write(unpacked.data(), static_cast<std::streamsize>(unpacked.size()));
    if (!out.flush())
      throw_runtime("{}: cannot be written; is the disk of temporary files full? Set TMPDIR to another",
                    unpacked_.string());
    return unpacked_;
  }

  ScratchFolder& scratch() {
    if (!scratch_) scratch_.emplace("windtunnel-check");
    return *scratch_;
  }

  void hash_of_raw(const MdsShard& entry, const MdsShardFile& data) {
    const std::string origin = (folder_ / entry.raw.basename).string();
    const std::string hash = quickest_hash(entry.raw, "", origin);
    if (hash.empty()) return;
    check_hash(entry.raw, hash, data.bytes(), origin);
    result_.hash = hash;
  }

  void sample(const MdsShardFile& data, const ColumnChoice& column, std::size_t place, std::int64_t id,
              const std::vector<std::int64_t>& shown, const MdsShard& entry) {
    const std::string where = fmt::format("{}: sample {}", (folder_ / entry.raw.basename).string(), place);
    ShownSample read{id, 0, {}, {}};
    if (column.kind == CheckedColumn::tokens) {
      read.ids = data.tokens(place);
    } else {
      const auto bytes = data.payload(place);
      read.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (column.kind == CheckedColumn::turns) {
        read.ids = ids_of_turns(read.text, where);
        if (options_.finetuning) learn(read.text, where);
        read.text.clear();
      }
    }
    read.length = static_cast<std::int64_t>(column.kind == CheckedColumn::text ? read.text.size() : read.ids.size());
    ++result_.lengths[read.length];
    result_.tokens += read.length;
    check_ids(read.ids, where);
    const bool fixed = column.kind == CheckedColumn::tokens && options_.seq_len;
    if (fixed && read.length != *options_.seq_len && read.length != *options_.seq_len + 1)
      problem(fmt::format("{}: found {} tokens, allowed are {} or {}; pack it with --seq-len {}", where, read.length,
                          *options_.seq_len, *options_.seq_len + 1, *options_.seq_len));
    if (std::ranges::binary_search(shown, id)) result_.shown.push_back(std::move(read));
  }

  void check_ids(const std::vector<std::int32_t>& ids, const std::string& where) {
    if (ids.empty()) return;
    const auto most = std::ranges::max_element(ids);
    result_.largest_id = std::max<std::int64_t>(result_.largest_id, *most);
    if (options_.vocabulary && *most >= *options_.vocabulary)
      problem(fmt::format(
          "{}: found id {} at place {}, allowed are 0 to {}; use the tokenizer of the model, or set its vocab_size",
          where, *most, most - ids.begin(), *options_.vocabulary - 1));
  }

  std::vector<std::int32_t> ids_of_turns(const std::string& text, const std::string& where) {
    std::vector<std::int32_t> ids;
    try {
      const auto turns = nlohmann::json::parse(text);
      for (const auto& turn : turns) {
        const auto prompt = turn.at("input_ids").get<std::vector<std::int32_t>>();
        const auto response = turn.at("labels").get<std::vector<std::int32_t>>();
        ids.insert(ids.end(), prompt.begin(), prompt.end());
        ids.insert(ids.end(), response.begin(), response.end());
        if (!options_.finetuning && &turn == &turns.back())
          result_.trained += static_cast<std::int64_t>(response.size());
      }
    } catch (const nlohmann::json::exception& error) {
      throw_usage("{}: found turns that cannot be read ({}), allowed is a list of {{input_ids, labels}}; pack it again",
                  where, error.what());
    }
    if (!ids.empty() && *std::ranges::min_element(ids) < 0)
      throw_usage("{}: found a negative id, allowed are 0 to 2147483647; tokenize the text again", where);
    return ids;
  }

  /// Selects the tokens in the loss as the run does.
  void learn(const std::string& turns, const std::string& where) {
    constexpr std::int64_t kNoLimit = std::int64_t{1} << 40;
    try {
      const std::int64_t targets =
          labelled_tokens(turns, *options_.finetuning, options_.seq_len.value_or(kNoLimit), where).targets();
      result_.trained += targets;
      if (targets == 0)
        problem(
            fmt::format("{}: found no token to learn, allowed is at least one; name more with target_prompts or "
                        "target_responses, or leave the example out",
                        where));
    } catch (const Error& error) {
      problem(error.what());
    }
  }

  fs::path folder_;
  const DataCheckOptions& options_;
  DataCheckResult& result_;
  std::optional<ScratchFolder> scratch_;
  fs::path unpacked_;
  bool hashed_ = false;
};

}  // namespace

DataCheckResult check_dataset(const fs::path& folder, const DataCheckOptions& options) {
  const std::vector<MdsShard> shards = read_mds_index(folder);
  DataCheckResult result;
  result.shards = static_cast<std::int64_t>(shards.size());
  for (const MdsShard& shard : shards) {
    result.samples += shard.samples;
    result.bytes += shard.raw.bytes;
  }
  if (result.samples == 0)
    throw_usage("{}: found no sample, allowed is a dataset of at least one; pack some data",
                (folder / kMdsIndexName).string());
  result.columns = mapped(*shards.front().columns, [](const MdsColumn& c) { return c.name + ": " + c.encoding.name; });
  result.compression = shards.front().compression;
  const std::vector<std::int64_t> shown = drawn_samples(result.samples, options);
  DatasetCheck check(folder, options, result);
  std::int64_t first = 0, done = 0;
  for (const MdsShard& shard : shards) {
    check.shard(shard, first, shown);
    first += shard.samples;
    if (options.progress) options.progress(++done, result.shards);
  }
  return result;
}

}  // namespace wt
