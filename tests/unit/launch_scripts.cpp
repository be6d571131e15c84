// Scripts as they are read, against bash itself; and what a script may do when bash runs it.
#include "planner/shell/shell.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "planner/shell/evaluate.hpp"
#include "planner/shell/unknown_text.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;
using namespace wt::shell;
using namespace wt::test;

namespace {

/// Each line starts a program whose words bash and we have to agree on.
constexpr const char* kScript = R"sh(
set -euo pipefail
A=(--one 1 --two "2 3" '$X'); B="--four  4"; N=3; EMPTY=""
torchrun ${A[@]} $B $EMPTY "$EMPTY" "${A[@]}" "${A[*]}"
torchrun "$B" '$B' "\$B" \$B a\ b "a"'b'c $'x\ty'
torchrun $((N * 8 + 2 ** 3 % 5)) $(( N > 2 ? N << 1 : 0 )) $((0x10 + 010)) $(((N + 1) * 2 - -1))
torchrun ${#B} ${#A[@]} ${A[1]} ${A[-1]:-none} ${B#--} ${B##* } ${B%4} ${B/4/5} ${B//-/+} ${N:-7} ${EMPTY:-8} ${EMPTY:+9} ${N:+9}
F=/data/run_12.ckpt; torchrun ${F##*/} ${F%/*} ${F%.*} ${F:1:4} ${F: -4} $(basename $F .ckpt) $(dirname $F)
U=abC; torchrun ${U^^} ${U,,} ${U^} $(echo $U | tr a-z A-Z) $(printf '%s-%d' $U 4) $(expr 2 \* 3) `echo $N`
for i in {1..3} x; do torchrun $i; done
for ((i = 0; i < 6; i += 2)); do torchrun $i; [ $i -ge 2 ] && break; done
i=0; while [ $i -lt 2 ]; do i=$((i + 1)); torchrun while $i; done
if [[ $U == ab* && $N -gt 2 ]]; then torchrun yes; elif false; then torchrun no; else torchrun else; fi
if [ "$N" = 3 -a -z "$EMPTY" ]; then torchrun and; fi
case $F in *.txt) torchrun text ;; /data/*|other) torchrun data ;; *) torchrun any ;; esac
f() { local N=5; torchrun f $N "$1" $# "$@"; return 0; }; f a "b c"; torchrun after $N
M="x
y"; torchrun $M "$M"
read -r FIRST REST <<< "p q r"; torchrun $FIRST "$REST"
T=$(cat <<END
in $N
END
); torchrun $T
declare -A MAP=([k]=v [l]="w x"); torchrun ${MAP[l]} "${MAP[k]}"
true && torchrun ok; false || torchrun or; ! false && torchrun negated
(N=9; torchrun sub $N); torchrun top $N; { N=10; }; torchrun group $N
A+=(--five); B+=" --six"; torchrun ${A[4]} $B ${A[@]:4}
CMD="torchrun eval --x \"1 2\""; eval "$CMD"; $CMD
bash -c 'torchrun inner $((1 + 1))'
)sh";

std::vector<std::vector<std::string>> torchruns(const std::vector<StartedCommand>& commands) {
  std::vector<std::vector<std::string>> out;
  for (const StartedCommand& one : commands) {
    std::vector<std::string> words;
    for (const std::string& word : one.words) words.push_back(shown(word));
    if (words.front() == "torchrun") out.push_back(words);
  }
  return out;
}

std::filesystem::path written(const TempDirectory& folder, const std::string& text) {
  const std::filesystem::path file = folder.path() / "script.sh";
  std::ofstream(file) << text;
  return file;
}

}  // namespace

TEST_CASE("a script that is read starts what bash starts") {
  const TempDirectory folder;
  const auto read = torchruns(read_script({.text = kScript, .origin = "script.sh", .variables = {}}).commands);
  std::vector<StartedCommand> started;
  const std::string refused = usage_error([&] { started = evaluate_script(written(folder, kScript), {}); });
  if (refused != "no error") {
    CHECK_THAT(refused, Contains("namespaces"));
    return;
  }
  CHECK(read == torchruns(started));
}

TEST_CASE("a script that is evaluated changes nothing, and one that is read does nothing") {
  const TempDirectory folder;
  const std::string mark = (folder.path() / "mark").string();
  const std::string text = "/bin/touch " + mark + "\necho x > " + mark + "\n/bin/rm -rf " + folder.path().string() +
                           "\n(exec 3<> /dev/tcp/127.0.0.1/22) && torchrun network\ntorchrun done $GIVEN\n";
  const std::filesystem::path script = written(folder, text);
  read_script({.text = text, .origin = script.string(), .variables = {}});
  std::vector<StartedCommand> started;
  const std::string refused = usage_error([&] { started = evaluate_script(script, {{"GIVEN", "7"}}); });
  CHECK_FALSE(std::filesystem::exists(mark));
  CHECK(std::filesystem::exists(script));
  if (refused == "no error")
    CHECK(torchruns(started) == std::vector<std::vector<std::string>>{{"torchrun", "done", "7"}});
}

TEST_CASE("what a script does not say stays as it is written, and its fallbacks are known as such") {
  const auto words = [](const std::string& line) {
    return read_script({.text = line, .origin = "script.sh", .variables = {}}).commands.back().words;
  };
  CHECK(has_unknown(words("torchrun $A").at(1)));
  CHECK(shown(words("torchrun x$(date +%s)y").at(1)) == "x$(date +%s)y");
  CHECK(shown(words("torchrun $((A + 1))").at(1)) == "$((A + 1))");
  CHECK(fallbacks_in(words("N=${NODES:-2}\ntorchrun $((N * 8))").at(1)) == std::vector<std::string>{"NODES"});
  CHECK(plain(words("N=${NODES:-2}\ntorchrun $((N * 8))").at(1)) == "16");
  CHECK(has_unknown(words("N=1\n[ -e f ] && N=2\ntorchrun $N").at(1)));
  CHECK(words("N=1\n[ -e f ] && M=2\ntorchrun $N").at(1) == "1");
}

TEST_CASE("scripts that would not end or are no scripts are refused") {
  const auto refusal = [](const std::string& text) {
    return usage_error([&] { read_script({.text = text, .origin = "script.sh", .variables = {}}); });
  };
  CHECK_THAT(refusal("f() { f; }\nf\n"), Contains("inside of itself more than"));
  CHECK_THAT(refusal("A=aaaaaaaaaa\nwhile true; do A=$A$A; done\n"), Contains("found"));
  CHECK_THAT(refusal("if true; then\n"), Contains("needs a script that bash -n accepts"));
  CHECK_THAT(refusal("case x in\n"), Contains("needs a script"));
  CHECK(refusal(std::string(100000, '(')) != "no error");
  CHECK(refusal("echo " + std::string(100000, '$') + std::string(50000, '{')) == "no error");
}
