// windtunnel data mix: what a run draws from each stream.
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "planner/cli/data/data.hpp"
#include "trainer/data/mds_index.hpp"
#include "trainer/data/mds_shard_file.hpp"
#include "trainer/data/mixture.hpp"

namespace wt {

static void to_json(nlohmann::json& out, const StreamDraw& draw) {
  out = {{"name", draw.name},
         {"samples", draw.samples},
         {"drawn_an_epoch", draw.epoch_draws},
         {"share_of_samples", draw.share},
         {"repeats_an_epoch", static_cast<double>(draw.epoch_draws) / static_cast<double>(draw.samples)},
         {"epochs_in_part", draw.run_draws / static_cast<double>(draw.samples)}};
  if (draw.token_share) out["share_of_tokens"] = *draw.token_share;
}
static void to_json(nlohmann::json& out, const MixturePart& part) {
  out = {{"first_batch", part.first},           {"batches", part.batches},
         {"epoch_samples", part.epoch_size},    {"epoch_batches", part.epoch_batches},
         {"epoch_dropped", part.epoch_dropped}, {"streams", part.streams}};
}
static void to_json(nlohmann::json& out, const Mixture& mixture) {
  out = {{"schema", "windtunnel.mixture/1"},
         {"parts", mixture.parts},
         {"epochs_in_run", mixture.seen},
         {"warnings", mixture.warnings}};
}

namespace {

struct MixCommand {
  std::string file;
  bool json = false;
};

/// The folder with the stream's index: its local folder, or a remote one that is on this machine.
std::filesystem::path index_folder(const StreamSpec& stream, const std::string& file) {
  for (const std::string& folder : {stream.local_folder(), stream.remote_folder()})
    if (!folder.empty() && std::filesystem::exists(std::filesystem::path(folder) / kMdsIndexName)) return folder;
  throw_usage(
      "{}: stream '{}': found no {} in {}, allowed is a folder that has it; fetch the stream's {} first, or give its "
      "folder",
      file, stream.name, kMdsIndexName, stream.local.empty() ? stream.remote_folder() : stream.local_folder(),
      kMdsIndexName);
}

/// Tokens of the first sample; none where it is not on this machine or has none.
std::optional<std::int64_t> sample_tokens(const std::filesystem::path& folder) {
  try {
    for (const MdsShard& shard : read_mds_index(folder)) {
      if (shard.samples == 0) continue;
      const std::filesystem::path file = folder / shard.raw.basename;
      return static_cast<std::int64_t>(
          MdsShardFile(file, shard, token_column(shard, kTokensColumn, file.string())).tokens(0).size());
    }
    return {};
  } catch (const Error&) {
    return {};
  }
}

void print_mixture(const Mixture& mixture, std::int64_t global_batch) {
  for (const MixturePart& part : mixture.parts) {
    if (mixture.parts.size() > 1)
      fmt::print("{}batches {} to {}\n", part.first > 0 ? "\n" : "", part.first + 1, part.first + part.batches);
    fmt::print("{:<20} {:>13} {:>13} {:>9} {:>9} {:>8} {:>8}\n", "stream", "samples", "an epoch", "% samples",
               "% tokens", "repeats", "in run");
    for (std::size_t i = 0; i < part.streams.size(); ++i) {
      const StreamDraw& draw = part.streams[i];
      fmt::print("{:<20} {:>13} {:>13} {:>9.2f} {:>9} {:>8.2f} {:>8.2f}\n", draw.name.empty() ? "(all)" : draw.name,
                 draw.samples, draw.epoch_draws, 100 * draw.share,
                 draw.token_share ? fmt::format("{:.2f}", 100 * *draw.token_share) : "unknown",
                 static_cast<double>(draw.epoch_draws) / static_cast<double>(draw.samples), mixture.seen[i]);
    }
    fmt::print(
        "an epoch: {} samples, {} batches of {}; {} batches are {:.2f} epochs; {} samples of an epoch are dropped\n",
        part.epoch_size, part.epoch_batches, global_batch, part.batches,
        static_cast<double>(part.batches) / static_cast<double>(part.epoch_batches), part.epoch_dropped);
  }
  for (const std::string& warning : mixture.warnings) fmt::print("warning: {}\n", warning);
}

void mix(const MixCommand& o) {
  const RunSpec run = read_run(o.file);
  if (run.dataset.empty())
    throw_usage("{}: train_loader: found none, needs a data set whose streams are mixed", o.file);
  std::vector<std::vector<std::int64_t>> shards;
  std::vector<std::optional<std::int64_t>> tokens;
  for (const StreamSpec& stream : run.dataset.streams) {
    const std::filesystem::path folder = index_folder(stream, o.file);
    std::vector<std::int64_t>& sizes = shards.emplace_back();
    for (const MdsShard& shard : read_mds_index(folder)) sizes.push_back(shard.samples);
    tokens.push_back(sample_tokens(folder));
  }
  std::int64_t drawn = run.steps;
  for (const BatchRange& range : run.resilience.skipped)  // ascending
    if (range.first <= drawn) drawn += range.last - range.first + 1;
  const Mixture mixture =
      mixture_of(run.dataset, shards, tokens, run.samples_per_step(), drawn, {1, run.layout.data_ranks()});
  if (o.json)
    fmt::print("{}\n", nlohmann::json(mixture).dump(1));
  else
    print_mixture(mixture, run.samples_per_step());
}

}  // namespace

void add_data_mix(const Command& data) {
  const Command command = data.subcommand(
      "mix", "What a run draws of each stream: samples, shares, repeats\nExample: windtunnel data mix run.yaml");
  const auto o = command.runs(mix);
  command.option("RUN", o->file, "Run file").required();
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
