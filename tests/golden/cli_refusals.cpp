// What a command line asks for and cannot have is refused before the work: each command here also names something that
// only the work would find, and is told of the first.
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using Catch::Matchers::Contains;
using namespace wt::test;

namespace {

void refused(const std::string& arguments, int status, const std::string& why) {
  const Ended ended = windtunnel(arguments);
  INFO(arguments);
  CHECK(ended.status == status);
  CHECK_THAT(ended.said, Contains(why));
}

}  // namespace

TEST_CASE("a folder that cannot be made is refused before the times are read") {
  const TempDirectory folder;
  write_bytes(folder / "file", "");
  const std::string in_the_way = " -o " + (folder / "file").string() + "/below", rest = " --routing no-such";
  refused("plan --model olmoe-1b-7b --cluster hgx-h100 --gpus 16" + rest + in_the_way, 2,
          "file is a file; needs a folder");
  refused("plan --model olmoe-1b-7b --cluster hgx-h100 --gpus 16" + rest + " -o " + (folder / "file").string(), 2,
          "file is a file");
  std::string run = read_bytes("configs/runs/tiny-moe.yaml");
  const std::size_t at = run.find("precision: fp32");
  REQUIRE(at != std::string::npos);
  write_bytes(folder / "narrow.yaml", run + "precisions: {dispatch: fp8}\n");
  write_bytes(folder / "tiny.yaml", run.replace(at, 15, "precision: amp_bf16"));
  const auto simulate = [&](const char* name) {
    return "simulate " + (folder / name).string() + " --cluster hgx-h100 --stack no-such";
  };
  refused(simulate("tiny.yaml") + in_the_way, 2, "file is a file");
  refused(simulate("narrow.yaml"), 2, "found fp8 beside precision fp32");
}

TEST_CASE("every command with -o refuses a place where nothing can be, before all else") {
  const TempDirectory folder;
  write_bytes(folder / "file", "");
  std::istringstream commands(read_bytes("tests/golden/flags.txt"));
  int refusals = 0;
  for (std::string line; std::getline(commands, line);) {
    const std::string command = line.substr(0, line.find(':'));
    if (line.find("--output") == line.npos || command == "train" || command == "bench") continue;  // below
    ++refusals;
    refused(command + " -o " + (folder / "file/below/out.json").string(), 2, "file is a file; needs a ");
  }
  CHECK(refusals > 15);
  refused("export no-such --to torchtitan -o " + folder.path().string(), 2, "is a folder; needs a file");
  refused("health -o /proc/self/status/x.json", 2, "is a file; needs a file");
  refused("train --rehearse no-such.yaml -o " + (folder / "file/below").string(), 2, "file is a file; needs a folder");
  refused("bench kernels --for no-such.yaml -o " + folder.path().string(), 2, "is a folder; needs a file");
  CHECK(read_bytes(folder / "file").empty());
}

TEST_CASE("demo and drill write into no folder that holds what they did not write, and leave it as it is") {
  const TempDirectory folder;
  std::string run = read_bytes("configs/runs/tiny-moe.yaml");
  const std::string data = "out/data/seq128";
  REQUIRE(run.find(data) != std::string::npos);
  write_bytes(folder / "run.yaml", run.replace(run.find(data), data.size(), (folder / "data").string()));
  write_bytes(folder / "faults.yaml", "name: one\nrun: " + (folder / "run.yaml").string() +
                                          "\nevents:\n  - {who: {domain: rank, index: 1}, when: {step: 4, at: "
                                          "optimizer}, what: {kind: kill}}\n");
  std::filesystem::create_directories(folder / "data");
  write_bytes(folder / "data/index.json", "no index");
  const auto at = [&](const char* name) { return " -o " + (folder / name).string(); };
  const std::string drill = "drill " + (folder / "faults.yaml").string(), foreign = "found 'train', not written by ";

  std::filesystem::create_directories(folder / "mine/train");
  write_bytes(folder / "mine/train/weights", "months of work");
  refused("demo" + at("mine"), 2, foreign + "windtunnel demo");
  refused(drill + at("mine"), 2, foreign + "windtunnel drill");
  refused("demo" + at("run.yaml"), 2, "run.yaml is a file");
  // A part that another command wrote, or a person.
  std::filesystem::create_directories(folder / "demo/drill");
  write_bytes(folder / "demo/.windtunnel", "windtunnel demo\n");
  write_bytes(folder / "demo/drill/notes", "kept");
  refused("demo" + at("demo"), 2, "found 'notes', not written by windtunnel drill");

  for (int i = 0; i < 2; ++i) refused(drill + at("new"), 2, "index.json");  // the second time its own earlier output
  refused("demo" + at("new"), 2, "found output of windtunnel drill, not written by windtunnel demo");
  CHECK(read_bytes(folder / "mine/train/weights") == "months of work");
  CHECK(read_bytes(folder / "demo/drill/notes") == "kept");
  for (const auto& [name, entries] : {std::pair{"mine", 1}, {"mine/train", 1}, {"demo", 2}, {"demo/drill", 1}}) {
    const std::filesystem::directory_iterator begin(folder / name);
    CHECK(std::distance(begin, std::filesystem::directory_iterator()) == entries);
  }
}

TEST_CASE("a report's ending is refused before runs are replayed") {
  const TempDirectory folder;
  const std::string compare = "compare " + folder.path().string() + " --machine no-such.json -o report";
  refused(compare + ".pdf", 2, "found the ending '.pdf'");
  refused(compare, 2, "found the ending ''");
  refused(compare + ".html", 2, "no-such.json");
}

TEST_CASE("a device that cannot measure for a study is refused before its shapes are listed") {
  const TempDirectory folder;
  write_bytes(folder / "study.yaml",
              "model: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\ntokens: 20B\nmax_seq_len: 2048\n"
              "global_train_batch_size: 64\nstack: no-such\n");
  const std::string bench = "bench kernels --for " + (folder / "study.yaml").string();
  refused(bench, 2, "found --device cpu, but its shapes are wanted of H100");
  refused(bench + " --dry-run", 2, "no-such");
  refused(bench + " --device cuda", 2, "no-such");
  refused(bench + " --worth x", 2, "--worth: found 'x', needs a duration");
  refused(bench + " --worth 0", 2, "--worth: found '0', needs a duration");
  refused(bench + " --worth 0s", 2, "--worth: found 0s, needs a time above 0, as 10m");
  refused("bench --worth 10m", 2, "--for is required");
}

TEST_CASE("offers without a price are all named before anything of the study is read") {
  const TempDirectory folder;
  write_bytes(folder / "study.yaml",
              "model: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\ntokens: 20B\nmax_seq_len: 2048\n"
              "global_train_batch_size: 64\nstack: no-such\n");
  for (const char* name : {"a.yaml", "b.yaml"})
    write_bytes(folder / name, "cluster: hgx-h100\ngpus: 16\nsource: 'assumed: a test'\n");
  const std::string compare = "compare-offers " + (folder / "study.yaml").string();
  refused(compare + " " + (folder / "a.yaml").string() + " made-up-h100 " + (folder / "b.yaml").string(), 2,
          "offers without a price: " + (folder / "a.yaml").string() + ", " + (folder / "b.yaml").string() + "; each");
  refused(compare + " made-up-h100 no-such-offer", 2, "'no-such-offer' is neither a file nor a preset");
  refused(compare + " made-up-h100", 2, "offer made-up-h100");
  refused(compare, 2, "offers is required");
}

TEST_CASE("a study that fits on no offer is a finding, with the nearest miss") {
  const TempDirectory folder;
  write_bytes(folder / "one.yaml",
              "cluster: hgx-h100\ngpus: 1\nsource: 'assumed: a test'\nprices: {currency: USD, date: 2026-03-01, "
              "source: 'assumed: a test', gpu_hour: 2, spares: as_gpus}\n");
  const std::string compare = "compare-offers dbrx-3072-h100 " + (folder / "one.yaml").string();
  refused(compare, 1, "dbrx-3072-h100 fits on none of the offers.");
  refused(compare, 1, "offer one: nothing fits: the nearest miss");
}

TEST_CASE("a study without a name is called as its file, whatever is set beside it") {
  const TempDirectory folder;
  write_bytes(folder / "my.yaml",
              "model: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\ntokens: 20B\nmax_seq_len: 2048\n"
              "global_train_batch_size: 64\nruns: 10\n"
              "search: {expert_degrees: 8, microbatch: 1, shard_sizes: 8}\n");
  const Ended ended =
      windtunnel("plan " + (folder / "my.yaml").string() + " --stack megatron-lm --routing balanced --json");
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("\"name\": \"my\"") && !Contains("windtunnel plan"));
}

TEST_CASE("export and import-run say what they need, and write nothing where they are refused") {
  const TempDirectory folder;
  const std::string out = " -o " + (folder / "job").string();
  refused("export tiny-moe --to torchtitn" + out, 2, "--to: found 'torchtitn'; did you mean 'torchtitan'?");
  refused("export no-such-run --to torchtitan" + out, 2, "no-such-run");
  refused("export " + folder.path().string() + " --to torchtitan" + out, 2, "found a folder without plan.yaml");
  refused("export tiny-moe --to llm-foundry" + out, 2, "LLM Foundry refuses replicas of sharded experts");
  refused("export tiny-moe --to torchtitan -o " + folder.path().string() + "/no/folder", 4, "");
  write_bytes(folder / "job.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n");
  const std::string toml = "import-run " + (folder / "job.toml").string();
  refused(toml + out, 2, "give --gpus N");
  refused(toml + " --gpus 0" + out, 2, "--gpus");
  refused(toml + " --gpus 8 --from yaml" + out, 2, "--from: found 'yaml'");
  refused(toml + " --gpus 8 --from llm-foundry" + out, 2, "found no map, needs YAML with one");
  refused(toml + " --gpus 8 --model no-such" + out, 2, "no-such");
  refused("import-run " + (folder / "nothing").string() + out, 2, "cannot be read");
  CHECK_FALSE(std::filesystem::exists(folder / "job"));
  const Ended ended = windtunnel(toml + " --gpus 8" + out);
  CHECK(ended.status == 0);
  CHECK(windtunnel("export " + (folder / "job").string() + " --to megatron-core --json").status == 0);
}

TEST_CASE("constants of published tables are not of a profile: what belongs to profiles is refused") {
  const TempDirectory folder;
  const std::string published = "calibrate --published -o " + (folder / "constants").string();
  refused(published + " tests/data/h100-profile.json", 2, "found a profile, which");
  refused(published + " --json", 2, "found --json");
  refused(published + " --allow-assumed", 2, "found --allow-assumed");
  CHECK_FALSE(std::filesystem::exists(folder / "constants"));
  CHECK(windtunnel(published).status == 0);
  for (const auto& file : std::filesystem::directory_iterator("configs/constants"))
    CHECK(std::filesystem::exists(folder / "constants" / file.path().filename()));
}
