// Presets are found where a user looks for them: by list, and by the completion of a shell.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/fixtures/windtunnel.hpp"

using Catch::Matchers::Contains;
using namespace wt::test;

namespace {

/// What bash offers for the last of these words.
std::string completed(const std::string& words) {
  const std::string script = "source <(\"$0\" completion bash); COMP_WORDS=(windtunnel " + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _windtunnel; echo \"${COMPREPLY[@]}\"";
  std::FILE* pipe = popen(("bash -uc '" + script + "' '" WT_PROGRAM "' 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return said;
}

}  // namespace

TEST_CASE("every preset of every kind can be read, and has its fact") {
  std::istringstream kinds(windtunnel("list").said);
  int listed = 0;
  for (std::string line; std::getline(kinds, line); ++listed) {
    const Ended ended = windtunnel("list " + line.substr(0, line.find(' ')));
    INFO(line << "\n" << ended.said);
    CHECK(ended.status == 0);
    CHECK_THAT(ended.said, !Contains("cannot be read"));
  }
  CHECK(listed >= 12);
  CHECK_THAT(windtunnel("list clusters").said, Contains("hgx-h100 "));
  CHECK_THAT(windtunnel("list faults/rates").said, Contains("Meta Llama 3 405B"));
}

TEST_CASE("an unknown kind and an unknown preset name the nearest one") {
  const auto refused = [](const std::string& arguments, const std::string& why) {
    const Ended ended = windtunnel(arguments);
    INFO(arguments << ": " << ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains("did you mean '" + why + "'?"));
  };
  refused("list cluster", "clusters");
  const std::string simulate = "simulate dbrx-3072-h100 --cluster hgx-h100 ";
  refused("plan olmoe-256-h10", "olmoe-256-h100");
  refused("plan --model lama3-8b --cluster hgx-h100 --gpus 64", "llama3-8b");
  refused("plan --model llama3-8b --cluster hgx-h10 --gpus 64", "hgx-h100");
  refused("plan dbrx-3072-h100 --set failures=lama3", "llama3");
  refused("simulate tiny-mo --cluster hgx-h100", "tiny-moe");
  refused(simulate + "--stack torchtitn", "torchtitan");
  refused(simulate + "--routing dbrx-proxy-c5", "dbrx-proxy-c4");
  refused("compare-offers olmoe-256-h100 made-up-h10", "made-up-h100");
  refused("drill kil", "kill");
  refused("drill --simulate kill --recovery tiny-mo", "tiny-moe");
}

TEST_CASE("bash completes subcommands, flags and presets") {
  CHECK(completed("pl") == "plan\n");
  CHECK(completed("plan --clu") == "--cluster\n");
  CHECK(completed("gate his") == "history\n");
  CHECK(completed("gate history --mark") == "--markdown\n");
  CHECK(completed("plan --cluster torchtitan-5") == "torchtitan-512-h100\n");
  CHECK(completed("plan --cluster = torchtitan-5") == "torchtitan-512-h100\n");
  CHECK(completed("plan dbrx-3072-h100 --json --stack torchti") == "torchtitan\n");
  CHECK(completed("plan falcon") == "falcon-180b\n");
  CHECK(completed("drill --simulate kill --recovery tiny-moe-s") == "tiny-moe-safe\n");
  CHECK(completed(R"(plan --gpus "")") == "\n");  // of no kind: readline then completes files
}

TEST_CASE("the script for zsh is that of bash under bashcompinit") {
  const std::string begins = "autoload -U +X bashcompinit && bashcompinit\n";
  CHECK(windtunnel("completion zsh").said == begins + windtunnel("completion bash").said);
  CHECK_THAT(windtunnel("completion zsh").said, !Contains("echo "));  // of which zsh takes a lone dash as an option
  CHECK(windtunnel("completion zhs").status == 2);
}
