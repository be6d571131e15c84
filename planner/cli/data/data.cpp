// windtunnel data pack: text to MDS shards. The other subcommands of windtunnel data: data.hpp.
#include "planner/cli/data/data.hpp"

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "reports/render/progress.hpp"
#include "trainer/data/pack.hpp"

namespace wt {

WT_TO_JSON(PackResult, files, bytes, documents, empty_documents, dropped_documents, tokens, dropped_tokens, samples,
           shards, vocabulary)

namespace {

struct PackWords {
  std::vector<std::string> text, hashes = {"xxh3_64"};
  std::string output, samples = "overlapping";
  std::int64_t processes = 0;
  PackOptions options;
  bool no_wrap = false, json = false;
};

std::string samples_in_words(const PackResult& r, const PackOptions& options) {
  switch (options.samples) {
    case SampleKind::overlapping:
      return fmt::format("{} tokens in {} of {} (+1)", r.tokens, counted(r.samples, "sample"), options.seq_len);
    case SampleKind::concat:
      return fmt::format("{} tokens in {} of {}", r.tokens, counted(r.samples, "sample"), options.seq_len);
    case SampleKind::document:
      return fmt::format("{} tokens in {}, a document each", r.tokens, counted(r.samples, "sample"));
    case SampleKind::text:
      return fmt::format("{}, a document each", counted(r.samples, "sample"));
    case SampleKind::finetune:
      return fmt::format("{} tokens in {}, an example each", r.tokens, counted(r.samples, "sample"));
  }
  return "";
}

void pack(const PackWords& words) {
  PackOptions options = words.options;
  if (options.seq_len < 1)
    throw_usage("--seq-len: found {}, allowed are whole numbers from 1; give the tokens a sample predicts",
                options.seq_len);
  options.samples = sample_kind_from_string(words.samples);
  options.wrap = !words.no_wrap;
  options.processes = static_cast<int>(words.processes);
  options.writer.hashes = words.hashes;
  std::erase(options.writer.hashes, "none");
  Progress bar("packing");
  options.progress = [&](std::uint64_t done, std::uint64_t) {
    bar.update(static_cast<std::int64_t>(done), format_bytes(static_cast<double>(done)));
  };
  const PackResult r = pack_text({words.text.begin(), words.text.end()}, words.output, options);
  bar.finish();
  if (words.json) {
    nlohmann::json document = r;
    document["schema"] = "windtunnel.pack/1";
    document["folder"] = words.output;
    return fmt::print("{}\n", document.dump(1));
  }
  fmt::print("{}, {} of text: {}, {} in {}\n", counted(r.files, "file"), format_bytes(static_cast<double>(r.bytes)),
             samples_in_words(r, options), counted(r.shards, "shard"), words.output);
  if (r.empty_documents > 0) fmt::print("left out: {} without text\n", counted(r.empty_documents, "document"));
  if (r.dropped_documents > 0)
    fmt::print("left out: {} with nothing to learn within {} tokens\n", counted(r.dropped_documents, "example"),
               options.seq_len);
}

}  // namespace

void add_data(CLI::App& app) {
  const Command data(app, "data", "Training data: text to Mosaic's MDS shards, and what a data set holds");
  data.require_subcommand();
  const Command command =
      data.subcommand("pack",
                      "Pack text into MDS shards, by a Hugging Face tokenizer or byte by byte\nExample: windtunnel "
                      "data pack --text /usr/share/common-licenses -o out/data --seq-len 128");
  const auto o = command.runs(pack);
  command.option("--text", o->text, "Text, .jsonl or .json files (also .gz), or folders of them").required();
  command.output(o->output, Output::folder, "Folder of the data set").required();
  command.option("--seq-len", o->options.seq_len, "Tokens a sample predicts").shows_default();
  command
      .option("--samples", o->samples,
              "overlapping (seq-len + 1 tokens), concat (seq-len, as LLM Foundry), document, text or finetune")
      .shows_default();
  command.option(
      "--tokenizer", o->options.tokenizer,
      "tokenizer.json of Hugging Face or its folder; without it each byte is a token and 256 ends a document");
  command.option("--bos-text", o->options.bos_text, "Text whose tokens stand before each document");
  command.option("--eos-text", o->options.eos_text, "Text whose tokens stand behind each document");
  command.flag("--no-wrap", o->no_wrap, "Drop what is left of a document when a sample is full");
  command.option("--processes", o->processes, "Tokenizers at once; 0: one a core")
      .between(std::int64_t{0}, std::int64_t{4096})
      .shows_default();
  command.option("--compression", o->options.writer.compression, "zstd[:LEVEL], gz, br, bz2 or snappy");
  command.option("--hashes", o->hashes, "Hashes of each shard in the index, or none").shows_default();
  command.flag("--overwrite", o->options.writer.overwrite, "Replace a data set of the same columns");
  command.flag("--json", o->json, "Print one JSON document");
  add_data_check(data);
  add_data_mix(data);
}

}  // namespace wt
