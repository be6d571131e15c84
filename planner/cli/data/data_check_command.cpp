// windtunnel data check: whether a data set matches its index, and what it contains.
#include <fmt/ranges.h>

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/run.hpp"
#include "planner/cli/data/data.hpp"
#include "planner/cli/parts/commands.hpp"
#include "reports/render/progress.hpp"
#include "trainer/data/data_check.hpp"
#include "trainer/data/pack.hpp"
#include "trainer/data/tokenizer_process.hpp"

namespace wt {

WT_TO_JSON(ShownSample, sample, length, ids)
WT_TO_JSON(DataCheckResult, columns, compression, hash, shards, samples, bytes, largest_id, problems, problem_count)

namespace {

struct CheckWords {
  std::string what, tokenizer;
  std::optional<std::int64_t> seq_len;
  std::int64_t show = 3;
  std::uint64_t seed = 0;
  bool json = false;
};

struct CheckedFolder {
  std::filesystem::path folder;
  DataCheckResult result;
  std::vector<std::string> texts;  ///< decoded samples to show
  bool by_run = false;             ///< which tokens count in the loss follows the run file
};

constexpr std::size_t kShownTokens = 64;
constexpr std::size_t kShownBytes = 240;

/// Decodes byte tokens; unprintable bytes and the end of a document become escapes.
std::string text_of_bytes(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids)
    text += id == kEndOfText ? std::string("<256>") : std::string(1, static_cast<char>(id));
  return text;
}

/// In one line: JSON's escapes, and U+FFFD for invalid UTF-8.
std::string in_a_line(std::string text) {
  const bool cut = text.size() > kShownBytes;
  if (cut) text.resize(kShownBytes);
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return cut ? quoted + " ..." : quoted;
}

std::vector<std::string> texts_of(const DataCheckResult& result, TokenizerProcess* tokenizer) {
  std::vector<std::vector<std::int32_t>> cut;
  for (const ShownSample& sample : result.shown) {
    cut.push_back(sample.ids);
    if (tokenizer != nullptr && cut.back().size() > kShownTokens) cut.back().resize(kShownTokens);
  }
  if (tokenizer != nullptr && !result.text) return tokenizer->decode(cut);
  std::vector<std::string> texts;
  for (const ShownSample& sample : result.shown) {
    if (result.text)
      texts.push_back(sample.text);
    else if (result.largest_id < kByteVocabulary)
      texts.push_back(text_of_bytes(sample.ids));
    else
      texts.push_back("");
  }
  return texts;
}

/// The length that a share of the samples does not exceed.
std::int64_t length_at(const DataCheckResult& r, double share) {
  std::int64_t seen = 0, all = 0;
  for (const auto& [length, samples] : r.lengths) all += samples;
  for (const auto& [length, samples] : r.lengths) {
    seen += samples;
    if (static_cast<double>(seen) >= share * static_cast<double>(all)) return length;
  }
  return 0;
}

std::string lengths_in_words(const DataCheckResult& r) {
  const char* const unit = r.text ? "bytes" : "tokens";
  if (r.lengths.empty()) return "no sample could be read";
  if (r.lengths.size() == 1) return fmt::format("every sample has {} {}", r.lengths.begin()->first, unit);
  return fmt::format("samples have {} to {} {}: half of them at most {}, 90 % at most {}", r.lengths.begin()->first,
                     r.lengths.rbegin()->first, unit, length_at(r, 0.5), length_at(r, 0.9));
}

nlohmann::json check_document(const CheckedFolder& checked) {
  const DataCheckResult& r = checked.result;
  nlohmann::json lengths = nlohmann::json::array(), shown = nlohmann::json::array();
  for (const auto& [length, samples] : r.lengths) lengths.push_back({{"length", length}, {"samples", samples}});
  for (std::size_t i = 0; i < r.shown.size(); ++i) shown.emplace_back(r.shown[i])["text"] = checked.texts[i];
  nlohmann::json out = r;
  out.update({{"schema", "windtunnel.data-check/1"},
              {"folder", checked.folder.string()},
              {r.text ? "text_bytes" : "tokens", r.tokens},
              {"stored_bytes", r.stored},
              {"trained_tokens", r.trained},
              {"lengths", lengths},
              {"shown", shown}});
  return out;
}

void print_check(const CheckedFolder& checked) {
  const DataCheckResult& r = checked.result;
  fmt::print("{}: {}, {}, {} {}; columns {}\n", checked.folder.string(), counted(r.shards, "shard"),
             counted(r.samples, "sample"), r.tokens, r.text ? "bytes of text" : "tokens", fmt::join(r.columns, ", "));
  fmt::print("  files: {}{}, {}\n", format_bytes(static_cast<double>(r.stored)),
             r.compression.empty()
                 ? ""
                 : fmt::format(" ({} of {})", r.compression, format_bytes(static_cast<double>(r.bytes))),
             r.hash.empty() ? "the index has no hash to compare" : fmt::format("compared with their {}", r.hash));
  fmt::print("  lengths: {}\n", lengths_in_words(r));
  if (!r.text) fmt::print("  largest id: {}\n", r.largest_id);
  if (r.trained > 0)
    fmt::print("  learned: {} tokens{}\n", r.trained, checked.by_run ? "" : ", those of the last responses");
  for (std::size_t i = 0; i < r.shown.size(); ++i) {
    const ShownSample& sample = r.shown[i];
    std::vector<std::int32_t> ids = sample.ids;
    if (ids.size() > 24) ids.resize(24);
    const std::string said =
        checked.texts[i].empty() ? fmt::format("ids {}", fmt::join(ids, " ")) : in_a_line(checked.texts[i]);
    fmt::print("  sample {}: {}\n", sample.sample, said);
  }
  for (const std::string& problem : r.problems) fmt::print("  PROBLEM {}\n", problem);
  if (r.problem_count > static_cast<std::int64_t>(r.problems.size()))
    fmt::print("  and {} problems more\n", r.problem_count - static_cast<std::int64_t>(r.problems.size()));
  fmt::print("  {}\n", r.problem_count == 0 ? "ok" : counted(r.problem_count, "problem"));
}

/// The folders of a run's streams, or the named folder.
std::vector<std::filesystem::path> folders_to_check(const CheckWords& words, DataCheckOptions& options) {
  options.seq_len = words.seq_len;
  if (std::filesystem::is_directory(words.what)) return {words.what};
  if (!std::filesystem::exists(words.what) && words.what.find('/') != std::string::npos)
    throw_usage("{}: found nothing there, allowed is the folder of a data set or a run file; check the path",
                words.what);
  const RunSpec run = read_run(find_config("runs", words.what));
  if (!options.seq_len) options.seq_len = run.seq;
  options.vocabulary = run.model.vocab;
  options.finetuning = run.dataset.finetuning;
  std::vector<std::filesystem::path> folders;
  for (const StreamSpec& stream : run.dataset.streams) {
    if (stream.local_folder().empty())
      throw_usage(
          "{}: stream {}: found remote {} alone, allowed is a local folder; fetch it, or check a folder by name",
          words.what, stream.name, stream.remote_folder());
    folders.emplace_back(stream.local_folder());
  }
  if (folders.empty())
    throw_usage("{}: found no train_loader, allowed is a run with a data set; add train_loader.dataset", words.what);
  return folders;
}

void check(const CheckWords& words) {
  DataCheckOptions options;
  const auto folders = folders_to_check(words, options);
  options.shown = words.show;
  options.seed = words.seed;
  std::optional<TokenizerProcess> tokenizer;
  if (!words.tokenizer.empty()) {
    tokenizer.emplace(TokenizerSettings{words.tokenizer, "", ""});
    if (!options.vocabulary) options.vocabulary = tokenizer->facts().vocabulary;
  }
  nlohmann::json document = nlohmann::json::array();
  bool found = false;
  for (const auto& folder : folders) {
    Progress bar("checking " + folder.string());
    options.progress = [&](std::int64_t done, std::int64_t all) {
      bar.update("checking " + folder.string(), done, all);
    };
    CheckedFolder checked{folder, check_dataset(folder, options), {}, options.finetuning.has_value()};
    bar.finish();
    checked.texts = texts_of(checked.result, tokenizer ? &*tokenizer : nullptr);
    found |= checked.result.problem_count > 0;
    if (words.json)
      document.push_back(check_document(checked));
    else
      print_check(checked);
  }
  if (words.json) fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (found) set_status(1);
}

}  // namespace

void add_data_check(const Command& data) {
  const Command command = data.subcommand(
      "check",
      "Read a whole data set: files, hashes, lengths, ids; show samples\nExample: windtunnel data check out/data");
  const auto o = command.runs(check);
  command.option("DATA", o->what, "Folder of MDS shards, or a run file, whose streams, length and vocabulary are taken")
      .required();
  command.option("--seq-len", o->seq_len, "Tokens that a sample must have, or one more");
  command.option("--tokenizer", o->tokenizer, "tokenizer.json of Hugging Face or its folder: shows samples as text");
  command.option("--show", o->show, "Samples to show: the first, and others drawn")
      .between(std::int64_t{0}, std::int64_t{1000})
      .shows_default();
  command.option("--seed", o->seed, "Of the samples that are drawn").shows_default();
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
