#include "configs/files/dataset.hpp"

#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/run.hpp"
#include "configs/files/shared_cache.hpp"

using Catch::Contains;
using wt::DatasetSpec;

namespace {

DatasetSpec loader(const std::string& text) {
  wt::YamlMap map = wt::YamlMap::from_text(text, "run.yaml");
  return wt::read_train_loader(map, wt::RunClock());
}

DatasetSpec dataset(const std::string& text) { return loader("dataset: {" + text + "}"); }

std::string refused(const std::string& text) {
  try {
    loader(text);
  } catch (const wt::Error& e) {
    CHECK(e.code() == wt::Code::usage);
    return e.what();
  }
  return "";
}

std::string refused_dataset(const std::string& text) { return refused("dataset: {" + text + "}"); }

constexpr const char* kTwo = "streams: {web: {local: a, proportion: 3}, code: {local: b, proportion: 1}}";

}  // namespace

TEST_CASE("a folder alone is one stream, shuffled, with one canonical node") {
  const DatasetSpec spec = dataset("local: data/text");
  REQUIRE(spec.streams.size() == 1);
  CHECK(spec.streams[0].name.empty());
  CHECK(spec.folder() == "data/text");
  CHECK(spec.shuffle);
  CHECK(spec.num_canonical_nodes == 1);
  CHECK(spec.shuffle_algorithm == wt::ShuffleAlgorithm::py1e);
  CHECK(spec.shuffle_seed == 9176);
  CHECK(spec.batching_method == wt::BatchingMethod::random);
  CHECK(spec.streams[0].download_retry == 2);
  CHECK(spec.streams[0].download_timeout_s == 60);
  DatasetSpec made;
  made.use_folder("data/text");
  CHECK(made == spec);
  made.use_folder({});
  CHECK(made.empty());
}

TEST_CASE("every key is read, and written so that it is read back") {
  const DatasetSpec spec = loader(R"(
dataset:
  streams:
    web: {remote: s3://bucket/web, local: /cache/web, proportion: 0.7, split: train, validate_hash: xxh64}
    code: {remote: s3://bucket/code, local: /cache/code, proportion: 0.3, keep_zip: true, download_retry: 5}
    "no: 3": {local: c, proportion: 0, download_timeout: 1.5}
  split: val
  download_timeout: 90
  epoch_size: 1.5M
  sampling_method: fixed
  sampling_granularity: 16
  shuffle: false
  shuffle_algo: py2s
  shuffle_seed: 7
  shuffle_block_size: 5000
  num_canonical_nodes: 64
  partition_algo: orig
  replication: 4
  predownload: 100
  cache_limit: 2TB
  allow_unsafe_types: false
drop_last: true
curriculum:
- {at: 100ba, proportions: {web: 0.5, code: 0.25, "no: 3": 0.25}}
- {at: 200ba, proportions: {web: 0, code: 1, "no: 3": 3}}
)");
  REQUIRE(spec.streams.size() == 3);
  CHECK(spec.streams[0].remote_folder() == "s3://bucket/web/train");
  CHECK(spec.streams[0].local_folder() == "/cache/web/train");
  CHECK(spec.streams[0].validate_hash == "xxh64");
  CHECK(spec.streams[1].split == "val");
  CHECK(spec.streams[1].download_timeout_s == 90);
  CHECK(spec.streams[1].download_retry == 5);
  CHECK(spec.streams[1].keep_zip);
  CHECK(spec.streams[2].download_timeout_s == 1.5);
  CHECK(spec.epoch_size == 1'500'000);
  CHECK(spec.sampling_method == wt::SamplingMethod::fixed);
  CHECK(spec.sampling_granularity == 16);
  CHECK_FALSE(spec.shuffle);
  CHECK(spec.shuffle_algorithm == wt::ShuffleAlgorithm::py2s);
  CHECK(spec.shuffle_block_size == 5000);
  CHECK(spec.num_canonical_nodes == 64);
  CHECK(spec.partition_algorithm == wt::PartitionAlgorithm::orig);
  CHECK(spec.replication == 4);
  CHECK(spec.predownload == 100);
  CHECK(spec.cache_limit == std::int64_t{2} << 40);
  REQUIRE(spec.curriculum.size() == 2);
  CHECK(spec.curriculum[1].at == 200);
  CHECK(spec.curriculum[1].proportions == std::vector<double>{0, 1, 3});
  YAML::Emitter out;
  wt::train_loader_to_yaml(spec, out);
  CHECK(loader(out.c_str()) == spec);
}

TEST_CASE("finetuning keys are read, written and read back") {
  const DatasetSpec plain = loader("{name: finetuning, dataset: {local: a}}");
  REQUIRE(plain.finetuning);
  CHECK(*plain.finetuning == wt::FinetuningSpec{});
  CHECK(plain.samples_drawn(24) == 24);
  CHECK_FALSE(loader("{name: text, dataset: {local: a}}").finetuning);
  for (const char* keys :
       {"", "target_prompts: all", "target_prompts: 'length>=512', target_responses: all, eos_token_id: 7",
        "packing_ratio: 3.3, batching_method: stratified, streams: {x: {local: x}}"}) {
    const bool streams = std::string(keys).find("streams") != std::string::npos;
    const DatasetSpec spec =
        loader(std::string("{name: finetuning, dataset: {") + (streams ? "" : "local: a, ") + keys + "}}");
    YAML::Emitter out;
    wt::train_loader_to_yaml(spec, out);
    CHECK(loader(out.c_str()) == spec);
  }
  const DatasetSpec packed = loader("{name: finetuning, dataset: {local: a, packing_ratio: 3.3}}");
  CHECK(packed.packs());
  CHECK(packed.samples_drawn(24) == 79);
}

TEST_CASE("finetuning keys that are out of range or out of place are refused") {
  const auto finetuning = [](const std::string& keys) {
    return refused("{name: finetuning, dataset: {local: a, " + keys + "}}");
  };
  CHECK_THAT(finetuning("target_prompts: some"), Contains("found 'some', needs none, all, or 'length>=N'"));
  CHECK_THAT(finetuning("target_prompts: 'length>=0'"), Contains("needs none, all"));
  CHECK_THAT(finetuning("target_prompts: 'length>=9x'"), Contains("needs none, all"));
  CHECK_THAT(finetuning("target_responses: first"), Contains("target_responses") && Contains("last"));
  CHECK_THAT(finetuning("packing_ratio: auto"), Contains("found auto, needs a number from 1"));
  CHECK_THAT(finetuning("packing_ratio: 0.5"), Contains("packing_ratio"));
  CHECK_THAT(finetuning("packing_ratio: 2, batching_method: per_stream"),
             Contains("found 2 with batching_method per_stream, needs random or stratified"));
  CHECK_THAT(finetuning("eos_token_id: -1"), Contains("eos_token_id"));
  CHECK_THAT(refused("{name: finetunning, dataset: {local: a}}"), Contains("finetunning") && Contains("text"));
  CHECK_THAT(refused_dataset("local: a, packing_ratio: 2"), Contains("needs `name: finetuning`"));
}

TEST_CASE("absolute weights and batching methods are read back") {
  for (const char* method : {"random", "stratified", "per_stream", "device_per_stream"}) {
    const DatasetSpec spec = dataset(
        "streams: {a: {local: a, repeat: 1.5}, b: {local: b, choose: 30}, c: {local: c}}, "
        "batching_method: " +
        std::string(method));
    CHECK(to_string(spec.batching_method) == method);
    YAML::Emitter out;
    wt::train_loader_to_yaml(spec, out);
    CHECK(loader(out.c_str()) == spec);
  }
}

TEST_CASE("samples count in powers of 1000, bytes in powers of 1024, as in Streaming") {
  const auto epoch = [](const std::string& size) { return *dataset("local: a, epoch_size: " + size).epoch_size; };
  CHECK(epoch("12") == 12);
  CHECK(epoch("10k") == 10'000);
  CHECK(epoch("2m") == 2'000'000);
  CHECK(epoch("1.5B") == 1'500'000'000);
  CHECK(epoch("3t") == 3'000'000'000'000);
  const auto cache = [](const std::string& size) { return *dataset("local: a, cache_limit: " + size).cache_limit; };
  CHECK(cache("100b") == 100);
  CHECK(cache("64kb") == 65536);
  CHECK(cache("1.5mb") == 1572864);
  CHECK(cache("3gb") == std::int64_t{3} << 30);
}

TEST_CASE("values out of range name file, line and key") {
  CHECK_THAT(refused_dataset("local: a, epoch_size: 0"), Contains("run.yaml:1: dataset.epoch_size: found '0'"));
  for (const char* bad : {"-5", "1.5", "10x", "k", "1e30", "nan"})
    CHECK_THAT(refused_dataset(std::string("local: a, epoch_size: ") + bad), Contains("epoch_size: found"));
  CHECK_THAT(refused_dataset("local: a, cache_limit: 5q"), Contains("cache_limit: found '5q'"));
  CHECK_THAT(refused_dataset("local: a, shuffle_algo: py1b"),
             Contains("shuffle_algo: found 'py1b'") && Contains("use py1br"));
  CHECK_THAT(refused_dataset("local: a, batching_method: mixed"),
             Contains("found 'mixed', allowed random, stratified"));
  CHECK_THAT(refused_dataset("local: a, sampling_method: other"), Contains("allowed balanced, fixed"));
  CHECK_THAT(refused_dataset("local: a, partition_algo: other"), Contains("allowed relaxed, orig"));
  CHECK_THAT(refused_dataset("local: a, validate_hash: crc7"),
             Contains("validate_hash: found 'crc7'") && Contains("xxh3_64"));
  CHECK_THAT(refused_dataset("local: a, download_timeout: 0"), Contains("needs more than 0 seconds"));
  for (const char* key :
       {"sampling_granularity", "num_canonical_nodes", "shuffle_block_size", "predownload", "replication"})
    CHECK_THAT(refused_dataset("local: a, " + std::string(key) + ": 0"), Contains(key) && Contains("found '0'"));
  CHECK_THAT(refused_dataset("local: a, shuffle_seed: -1"), Contains("shuffle_seed: found '-1'"));
  CHECK_THAT(refused_dataset("local: a, download_retry: -1"), Contains("download_retry: found '-1'"));
  CHECK_THAT(refused_dataset("local: a, split: ../up"), Contains("split: found '../up'"));
  CHECK_THAT(refused_dataset("local: a, split: /root"), Contains("split: found '/root'"));
  CHECK_THAT(refused_dataset("local: a, shufle: true"), Contains("did you mean 'shuffle'?"));
}

TEST_CASE("what runs code of a data set, or has no meaning here, is refused with a reason") {
  CHECK_THAT(refused_dataset("local: a, allow_unsafe_types: true"), Contains("no code of a data set is run"));
  CHECK_THAT(refused_dataset("local: a, stream_name: text"), Contains("stream_name") && Contains("Python classes"));
  CHECK_THAT(refused_dataset("local: a, stream_config: {}"), Contains("stream_config"));
  CHECK_THAT(refused("dataset: {local: a}\ndrop_last: false"), Contains("drop_last: found false"));
}

TEST_CASE("streams have a folder, a name of their own and one kind of weight") {
  CHECK_THAT(refused_dataset("shuffle: true"), Contains("local: missing") && Contains("remote"));
  CHECK_THAT(refused_dataset("streams: {a: {proportion: 1}}"), Contains("streams.a.local: missing"));
  CHECK_THAT(refused_dataset("streams: {}"), Contains("found none"));
  CHECK_THAT(refused_dataset("local: x, streams: {a: {local: a}}"), Contains("found streams, too"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a}, a: {local: b}}"),
             Contains("a: found a second time, first in line"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, repeat: 1, choose: 5}}"), Contains("more than one weight"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, proportion: 1}, b: {local: b}}"),
             Contains("with and without a proportion"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, repeat: 0}}"), Contains("repeat: found 0"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, choose: 0}}"), Contains("choose: found '0'"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, proportion: -1}}"), Contains("proportion: found '-1'"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, proportion: .nan}}"), Contains("proportion"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, choose: 4}}, epoch_size: 9"),
             Contains("epoch_size: found streams with"));
}

TEST_CASE("a proportion of zero needs an entry of the curriculum that raises it, and random batches") {
  const std::string streams = "streams: {a: {local: a, proportion: 1}, b: {local: b, proportion: 0}}";
  CHECK_THAT(refused_dataset(streams), Contains("streams.b.proportion: found 0"));
  const std::string later = "\ncurriculum: [{at: 5ba, proportions: {a: 1, b: 1}}]";
  CHECK(loader("dataset: {" + streams + "}" + later).curriculum.size() == 1);
  CHECK_THAT(refused("dataset: {" + streams + ", batching_method: stratified}" + later),
             Contains("found a proportion of 0"));
  CHECK_THAT(refused_dataset("streams: {a: {local: a, proportion: 0}}"), Contains("found 0"));
}

TEST_CASE("a curriculum ascends, names every stream and needs proportions") {
  const auto entries = [&](const std::string& list) {
    return refused("dataset: {" + std::string(kTwo) + "}\ncurriculum: [" + list + "]");
  };
  CHECK(entries("{at: 5ba, proportions: {web: 1, code: 1}}, {at: 9ba, proportions: {web: 1, code: 0}}").empty());
  CHECK_THAT(entries("{at: 5ba, proportions: {web: 1}}"), Contains("proportions.code: missing"));
  CHECK_THAT(entries("{at: 5ba, proportions: {web: 1, code: 1, text: 1}}"), Contains("proportions.text: unknown key"));
  CHECK_THAT(entries("{at: 0ba, proportions: {web: 1, code: 1}}"), Contains("at: found 0ba"));
  CHECK_THAT(entries("{at: 5ba, proportions: {web: 1, code: 1}}, {at: 5ba, proportions: {web: 1, code: 1}}"),
             Contains("curriculum[1].at: found 5ba"));
  CHECK_THAT(entries("{at: 5ba, proportions: {web: 0, code: 0}}"), Contains("found only zeros"));
  CHECK_THAT(entries("{at: 5tok, proportions: {web: 1, code: 1}}"), Contains("no batch says how many"));
  CHECK_THAT(refused("dataset: {local: a}\ncurriculum: [{at: 5ba, proportions: {}}]"),
             Contains("streams without a proportion"));
}

TEST_CASE("replication is what the layout says already") {
  const auto run = [](const std::string& replication) {
    return wt::run_from_text(
        "{model: mixtral-8x7b, max_duration: 1ba, max_seq_len: 64, global_train_batch_size: 8, "
        "device_train_microbatch_size: 1, fsdp_config: {data_parallel_shard_degree: 4, context_parallel_degree: 2}, "
        "train_loader: {dataset: {local: a, replication: " +
            replication + "}}}",
        "run.yaml");
  };
  CHECK(run("2").dataset.replication == 2);
  CHECK_THROWS_WITH(run("4"), Contains("replication: found 4, needs the 2 ranks"));
}

TEST_CASE("an evaluation set does not cache where the training data do under a limit") {
  const DatasetSpec trained = dataset("remote: s3://b/text, local: cache, split: train, cache_limit: 1gb");
  const auto error = [&](const std::string& sets) -> std::string {
    wt::YamlMap map = wt::YamlMap::from_text("eval_loader: [" + sets + "]", "run.yaml");
    try {
      check_caches(map, wt::read_evaluation(map, wt::RunClock()), trained);
    } catch (const wt::Error& e) {
      CHECK(e.code() == wt::Code::usage);
      return e.what();
    }
    return "";
  };
  const auto set = [](const std::string& label, const std::string& text) {
    return "{label: " + label + ", dataset: {" + text + "}}";
  };
  const std::string here = "remote: s3://b/text, local: ./cache, split: train";
  CHECK_THAT(error(set("held", here)), Contains("'held' caches shards in cache/train, and so does the train_loader") &&
                                           Contains("needs a folder of its own as `local`"));
  CHECK_THAT(error(set("held", here + ", cache_limit: 2gb")), Contains("another limit"));
  CHECK(error(set("held", "remote: s3://b/text, local: cache, split: train, cache_limit: 1gb")).empty());
  CHECK(error(set("held", "remote: s3://b/text, local: cache, split: val, cache_limit: 2gb")).empty());
  CHECK(error(set("held", "remote: s3://b/text, local: other, split: train, cache_limit: 2gb")).empty());
  CHECK(error(set("held", "local: cache, split: train")).empty());  // which it does not fetch
  const std::string own = "remote: s3://b/more, cache_limit: ";
  CHECK_THAT(error(set("one", own + "1gb") + ", " + set("two", own + "2gb")),
             Contains("eval_loader[1]") && Contains("'two' caches shards in the temporary folder of s3://b/more") &&
                 Contains("so does 'one'"));
}
