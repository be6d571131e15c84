#include "planner/shell/evaluate.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/process.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"
#include "planner/shell/unknown_text.hpp"

namespace wt::shell {
namespace {

constexpr double kLongest_s = 20;
constexpr std::size_t kLargestRecord = 4 << 20;  // ulimit -f below counts KiB

/// Text tools that scripts compute with. They can write nothing where every file system is read-only.
const std::vector<std::string> kTools{"bash",     "sh",    "cat",  "sed",  "awk",   "gawk",     "mawk",     "grep",
                                      "egrep",    "cut",   "tr",   "seq",  "expr",  "bc",       "basename", "dirname",
                                      "head",     "tail",  "sort", "uniq", "wc",    "date",     "env",      "realpath",
                                      "readlink", "xargs", "tee",  "true", "false", "printenv", "rev",      "paste"};
/// They say how they were called. A shell among their words runs what it would run.
const std::vector<std::string> kLaunchers{"torchrun", "srun",       "sbatch",      "mpirun",    "mpiexec",     "python",
                                          "python3",  "accelerate", "deepspeed",   "uv",        "ft_launcher", "nsys",
                                          "numactl",  "docker",     "singularity", "apptainer", "enroot",      "ray",
                                          "nohup",    "stdbuf",     "time"};
/// They succeed, and do nothing.
const std::vector<std::string> kNothing{"mkdir",  "rm",   "cp",   "mv",  "ln",   "chmod", "touch", "sleep", "module",
                                        "ulimit", "kill", "sync", "pip", "pip3", "git",   "wget",  "curl"};

constexpr const char* kMark = "\x1e";

constexpr const char* kStub = R"sh(#!/bin/bash
{ printf '%s\0' $'\x1e' "${0##*/}" "$@"; } >&9
case ${0##*/} in
  sbatch) for word in "$@"; do case $word in -*) ;; *) exec bash "$word" ;; esac; done ;;
  srun | mpirun | mpiexec | nohup | numactl | stdbuf | docker | singularity | apptainer | enroot | nsys | time)
    for ((i = 1; i <= $#; i++)); do
      case ${!i##*/} in bash | sh | torchrun | python | python3) exec "${!i##*/}" "${@:i+1}" ;; esac
    done ;;
esac
exit 0
)sh";

/// Inside the namespaces: every mount becomes read-only with the options it has, or nothing runs. Devices and sockets
/// of services can be written there all the same, and are hidden.
constexpr const char* kSetup = R"sh(set -e
mount --make-rprivate /
mount --bind /dev/null "$1/null"
while read -r _ _ _ _ place options _; do
  place=$(printf '%b' "$place")
  kept=ro,bind,remount
  for one in nosuid nodev noexec noatime nodiratime relatime; do case ,$options, in *,$one,*) kept=$kept,$one ;; esac; done
  mount -o "$kept" "$place"
done <<< "$(< /proc/self/mountinfo)"
mount -t tmpfs -o size=1m tmpfs /dev
: > /dev/null && mount --bind "$1/null" /dev/null
[ -L /run ] || mount -t tmpfs -o size=1m tmpfs /run  # sockets of services
mount -t tmpfs -o size=16m tmpfs "$1/home"
cd "$1/home"
ulimit -t 20 -f 4096 -v 4194304
script=$2; shift 2
exec setpriv --no-new-privs env -i PATH="$STUBS" HOME="$PWD" "$@" bash "$script" > /dev/null 2>&1 < /dev/null
)sh";

void write_program(const std::filesystem::path& file, const char* text) {
  std::ofstream(file) << text;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

void make_path(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const std::string& name : kTools)
    for (const char* place : {"/usr/bin/", "/bin/"})
      if (std::error_code none; std::filesystem::exists(place + name, none)) {
        std::filesystem::create_symlink(place + name, folder / name);
        break;
      }
  for (const std::string& name : kLaunchers) write_program(folder / name, kStub);
  for (const std::string& name : kNothing) write_program(folder / name, "#!/bin/bash\nexit 0\n");
  for (const auto& [name, says] : {std::pair{"hostname", "localhost"}, {"whoami", "user"}, {"nproc", "8"}})
    write_program(folder / name, fmt::format("#!/bin/bash\necho {}\n", says).c_str());
}

std::vector<StartedCommand> commands_of(const std::string& record) {
  std::vector<StartedCommand> out;
  for (std::size_t at = 0; at < record.size();) {
    const std::size_t end = std::min(record.find('\0', at), record.size());
    const std::string word = record.substr(at, end - at);
    at = end + 1;
    if (word == kMark)
      out.push_back({.words = {}, .line = 0, .condition = "", .input = ""});
    else if (!out.empty())
      out.back().words.push_back(without_marks(word));
  }
  return out;
}

}  // namespace

std::vector<StartedCommand> evaluate_script(const std::filesystem::path& script,
                                            const std::map<std::string, std::string>& variables) {
  if (!std::filesystem::is_regular_file(script))
    throw_usage("{}: found no file, needs a script for --evaluate", script.string());
  const ScratchFolder scratch("windtunnel-evaluate");
  const std::filesystem::path record = scratch.path() / "record", stubs = scratch.path() / "bin";
  std::filesystem::create_directories(scratch.path() / "home");
  std::ofstream(scratch.path() / "null").flush();
  make_path(stubs);
  const int file = ::open(record.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) throw_usage("{}: cannot be written", record.string());
  const int kept = ::dup2(file, 9);
  ProcessStart start;
  start.words = {"unshare",
                 "--user",
                 "--map-root-user",
                 "--mount",
                 "--net",
                 "--pid",
                 "--ipc",
                 "--uts",
                 "--fork",
                 "--kill-child",
                 "--mount-proc",
                 "/bin/bash",
                 "-c",
                 kSetup,
                 "bash",
                 scratch.path().string(),
                 std::filesystem::absolute(script).string()};
  for (const auto& [name, value] : variables) start.words.push_back(name + "=" + value);
  start.environment = std::vector<std::string>{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "STUBS=" + stubs.string()};
  start.input = kNoFile, start.error = kNoFile, start.own_group = true, start.kept = kept;
  const ProcessOutput done = in_path("unshare") ? run_for_output(start, kLongest_s) : ProcessOutput{};
  ::close(kept), ::close(file);
  const std::string text = read_file(record, "what the script started");
  if (!done.status && in_path("unshare"))
    throw_usage("{}: found a script that takes longer than {} seconds, needs one that starts its job and ends",
                script.string(), kLongest_s);
  if (text.empty() && done.status != 0)
    throw_usage(
        "{}: --evaluate: found status {} and no program that was started, needs a script that starts one, and a "
        "machine whose users may make namespaces (unshare); read it without --evaluate",
        script.string(), done.status.value_or(1));
  return commands_of(text.substr(0, kLargestRecord));
}

}  // namespace wt::shell
