// windtunnel data pack: text files to MDS shards.
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/quantity.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/data_mix.hpp"
#include "planner/cli/words.hpp"
#include "reports/render/progress.hpp"
#include "trainer/data/pack.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> text;
  std::string output;
  std::int64_t seq_len = 1024;
  bool json = false;
};

void pack(const Options& o) {
  if (o.seq_len < 1)
    throw_error(Code::usage, "--seq-len: found {}, allowed are whole numbers from 1; give the tokens a sample predicts",
                o.seq_len);
  Progress bar("packing");
  PackOptions options;
  options.seq_len = o.seq_len;
  options.progress = [&](std::uint64_t done, std::uint64_t) {
    bar.update(static_cast<std::int64_t>(done), format_bytes(static_cast<double>(done)));
  };
  const PackResult r = pack_text({o.text.begin(), o.text.end()}, o.output, options);
  bar.finish();
  if (o.json)
    fmt::print("{}\n", nlohmann::json{{"files", r.files},
                                      {"bytes", r.bytes},
                                      {"tokens", r.tokens},
                                      {"dropped_tokens", r.dropped_tokens},
                                      {"samples", r.samples},
                                      {"shards", r.shards},
                                      {"folder", o.output}}
                           .dump(1));
  else
    fmt::print("{} files, {} of text: {} tokens in {} samples of {} (+1), {} shards in {}\n", r.files,
               format_bytes(static_cast<double>(r.bytes)), r.tokens, r.samples, o.seq_len, r.shards, o.output);
}

}  // namespace

void add_data(CLI::App& app) {
  const Command data(app, "data", "Training data: text to Mosaic's MDS shards");
  data.require_subcommand();
  const Command command =
      data.subcommand("pack",
                      "Pack text byte by byte (256 + end of text) into MDS shards\nExample: windtunnel data pack "
                      "--text /usr/share/common-licenses -o out/data --seq-len 128");
  auto o = std::make_shared<Options>();
  command.option("--text", o->text, "Text files, .gz files or folders").required();
  command.option("-o,--output", o->output, "Folder of the data set").required();
  command.option("--seq-len", o->seq_len, "Tokens a sample predicts").shows_default();
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] { pack(*o); });
  add_data_mix(data);
}

}  // namespace wt
