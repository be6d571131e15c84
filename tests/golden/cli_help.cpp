// The command line stays what its pages say: every long flag of every --help stands in a table row of docs/<name>.md
// and in flags.txt, and the other way round; every help opens with an example.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fixtures/golden.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt::test;

namespace {

using Flags = std::set<std::string>;
const char* const kFile = "tests/golden/flags.txt";

std::string output_of(const std::string& arguments) {
  const Ended ended = windtunnel(arguments);
  INFO(arguments << ": " << ended.said);
  REQUIRE(ended.status == 0);
  return ended.said;
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  INFO(file);
  REQUIRE(in);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void add_flags(const std::string& line, Flags& flags) {
  static const std::regex flag("--[a-z][a-z-]*");
  for (std::sregex_iterator it(line.begin(), line.end(), flag), end; it != end; ++it)
    if (it->str() != "--help" && it->str() != "--help-all") flags.insert(it->str());
}

/// What CLI11 prints: a line of two blanks and a name for each option or subcommand, descriptions from column 30 on.
struct Help {
  Flags flags;
  std::vector<std::string> subcommands;
  std::string text;
};

Help help_of(const std::string& command) {
  Help help;
  help.text = output_of(command + " --help");
  std::istringstream lines(help.text);
  std::string part;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(":") && line.front() != ' ') part = line;
    if (!line.starts_with("  ") || line[2] == ' ') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (part == "Options:") add_flags(name, help.flags);
    if (part == "Subcommands:") help.subcommands.push_back(name);
  }
  return help;
}

/// Long flags of each command that has help of its own: "gate", "gate selftest".
void collect(const std::string& command, std::map<std::string, Flags>& found) {
  const Help help = help_of(command);
  found[command] = help.flags;
  if (help.subcommands.empty()) {
    INFO(command << " --help:\n" << help.text);
    CHECK(help.text.find("Example: windtunnel " + command) != std::string::npos);
  }
  for (const std::string& name : help.subcommands) collect(command + " " + name, found);
}

/// train and bench are answered by windtunnel-train, which is built only where LibTorch is.
bool answers(const std::string& command) {
  const bool trainer = std::filesystem::exists(std::filesystem::path(WT_PROGRAM).parent_path() / "windtunnel-train");
  return trainer || (command != "train" && command != "bench");
}

std::map<std::string, Flags> all_flags() {
  static const std::map<std::string, Flags> flags = [] {
    std::map<std::string, Flags> found;
    for (const std::string& name : help_of("").subcommands)
      if (answers(name)) collect(name, found);
    return found;
  }();
  return flags;
}

}  // namespace

TEST_CASE("every flag stands in the page of its subcommand, and every flag of a page exists") {
  std::map<std::string, Flags> by_page;
  for (const auto& [command, flags] : all_flags())
    by_page[command.substr(0, command.find(' '))].insert(flags.begin(), flags.end());
  for (const auto& [name, flags] : by_page) {
    Flags documented;
    std::istringstream lines(text_of("docs/" + name + ".md"));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("| `-")) add_flags(line.substr(0, line.find('|', 1)), documented);
    INFO("docs/" << name << ".md");
    CHECK(documented == flags);
  }
}

TEST_CASE("a new flag is a decision: the list of flags is frozen") {
  if (updates_golden()) REQUIRE(answers("train"));  // else the trainer's flags would go
  std::string found;
  for (const auto& [command, flags] : all_flags()) {
    found += command + ":";
    for (const std::string& flag : flags) found += " " + flag;
    found += "\n";
  }
  std::string expected;
  std::istringstream lines(golden(kFile, found));
  for (std::string line; std::getline(lines, line);)
    if (answers(line.substr(0, line.find(':')))) expected += line + "\n";
  CHECK(found == expected);
}

TEST_CASE("--version says version, commit and how this program was built") {
  const std::regex wanted(R"(windtunnel \d+\.\d+\.\d+\ncommit (not known|[0-9a-f]{7,40}(-dirty)?)\n)"
                          R"(build \w+, (gcc|clang) \S.*, with(out)? trainer, with(out)? CUDA\n)");
  const std::string said = output_of("--version");
  INFO(said);
  CHECK(std::regex_match(said, wanted));
}

TEST_CASE("an unknown subcommand names the nearest one") {
  const Ended ended = windtunnel("simulat");
  CHECK(ended.status == 2);
  CHECK(ended.said.find("did you mean 'simulate'?") != std::string::npos);
}

TEST_CASE("help is the same as --help, of the program and of each command") {
  CHECK(output_of("help") == output_of("--help"));
  CHECK(output_of("help plan") == output_of("plan --help"));
  CHECK(output_of("help gate run") == output_of("gate run --help"));
  if (answers("train")) CHECK(output_of("help train") == output_of("train --help"));
  CHECK_THAT(output_of("--help"), Catch::Contains("windtunnel help plan"));
}

TEST_CASE("an unknown topic of help names the nearest one") {
  const auto refused = [](const std::string& arguments, const std::string& why) {
    const Ended ended = windtunnel(arguments);
    INFO(arguments << ": " << ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Catch::Contains(why));
  };
  refused("help simulat", "found no topic 'simulat'; did you mean 'simulate'?");
  refused("help gate rnu", "found no topic 'gate rnu'; did you mean 'run'?");
  refused("help zzz", "topics: demo,");
  refused("help plan gpus", "'plan' has no topics of its own");
}

TEST_CASE("an unknown flag names the nearest one, who has it, and where the setting is said") {
  const auto refused = [](const std::string& arguments, const std::vector<std::string>& why) {
    const Ended ended = windtunnel(arguments);
    INFO(arguments << ": " << ended.said);
    CHECK(ended.status == 2);
    for (const std::string& part : why) CHECK_THAT(ended.said, Catch::Contains(part));
  };
  // Not in the words of the message's line breaks: parts within a word or two.
  refused("simulate tiny-moe --cluster hgx-h100 --gpus 64",
          {"unknown flag --gpus", "'plan'", "run file", "fsdp_config.data_parallel_shard_degree", "--cluster"});
  refused("simulate --gpus 64", {"unknown flag --gpus"});  // not taken for the run 64
  refused("simulate tiny-moe --gpus=64", {"unknown flag --gpus;"});
  refused("plan dbrx-3072-h100 --seq-len 8192", {"unknown flag --seq-len", "--set max_seq_len=VALUE"});
  refused("plan dbrx-3072-h100 --clutser hgx-h100", {"unknown flag --clutser; nearest: --cluster"});
  refused("plan dbrx-3072-h100 --out x", {"unknown flag --out; nearest: --output"});
  refused("gate run --bsae main", {"gate run: unknown flag --bsae; nearest: --base"});
  refused("whatif dbrx-3072-h100 --version", {"'windtunnel' itself has it"});
  refused("data pack x -q", {"unknown flag -q"});
  refused("--jsn", {"windtunnel: unknown flag --jsn; the program has --version"});
  if (answers("train")) {
    refused("train tiny-moe --gpus 4 -o out/x", {"unknown flag --gpus", "run file"});
    refused("bench kernels --quikc", {"unknown flag --quikc; nearest: --quick"});
  }
}

TEST_CASE("what belongs to a flag or follows -- is no unknown flag") {
  CHECK_THAT(windtunnel("plan no-such --set --x").said, !Catch::Contains("unknown flag"));
  CHECK_THAT(windtunnel("simulate no-such --cluster -x").said, !Catch::Contains("unknown flag"));
  CHECK_THAT(windtunnel("report -- --no-such").said, !Catch::Contains("unknown flag"));
}
