#include "configs/base/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

/// A setting that belongs to a file here and is a flag elsewhere: words of it between blanks, and its keys.
struct FileSetting {
  const char *flags, *what;
  std::vector<std::string> run, study;
};

const std::string kFsdp = "fsdp_config.";
const std::vector<FileSetting> kFileSettings = {
    {" gpus gpu num-gpus n-gpus nproc nproc-per-node world-size ranks nodes nnodes num-nodes ",
     "the number of GPUs",
     {kFsdp + "data_parallel_replicate_degree", kFsdp + "data_parallel_shard_degree", kFsdp + "tensor_parallel_degree",
      kFsdp + "pipeline_parallel_degree"},
     {"gpus"}},
    {" batch batch-size global-batch global-batch-size gbs ",
     "the batch",
     {"global_train_batch_size"},
     {"global_train_batch_size"}},
    {" micro-batch micro-batch-size microbatch mbs local-batch-size ",
     "the microbatch",
     {"device_train_microbatch_size"},
     {"search.microbatch"}},
    {" seq seq-len seq-length sequence-length context-length max-seq-len ",
     "the length of sequences",
     {"max_seq_len"},
     {"max_seq_len"}},
    {" steps max-steps train-iters iterations epochs duration max-duration tokens ",
     "the length of the run",
     {"max_duration"},
     {"tokens"}},
    {" lr learning-rate ", "the learning rate", {"optimizer.lr"}, {}},
    {" seed ", "the seed", {"seed"}, {"seed"}},
    {" model ", "the model", {"model"}, {"model"}},
    {" cluster ", "the cluster", {}, {"cluster"}},
    {" stack framework ", "the stack", {}, {"stack"}},
    {" precision dtype bf16 fp16 fp8 ", "the precision", {"precision"}, {"precision"}},
    {" tp tensor-parallel tensor-parallel-size tensor-model-parallel-size ",
     "the tensor group",
     {kFsdp + "tensor_parallel_degree"},
     {"search.tensor_parallel_degree"}},
    {" pp pipeline-parallel pipeline-parallel-size pipeline-model-parallel-size stages ",
     "the number of stages",
     {kFsdp + "pipeline_parallel_degree"},
     {"search.pipeline_parallel_degree"}},
    {" ep expert-parallel expert-parallel-size expert-model-parallel-size ",
     "expert parallelism",
     {kFsdp + "expert_parallel_degree"},
     {"search.expert_degrees"}},
    {" cp context-parallel context-parallel-size ",
     "context parallelism",
     {kFsdp + "context_parallel_degree"},
     {"search.context_parallel_degree"}},
    {" dp fsdp shard data-parallel data-parallel-size ",
     "data parallelism",
     {kFsdp + "data_parallel_replicate_degree", kFsdp + "data_parallel_shard_degree"},
     {"search.shard_sizes"}},
    {" recompute activation-checkpointing recompute-granularity ",
     "recompute",
     {kFsdp + "activation_checkpointing", kFsdp + "activation_checkpointing_target"},
     {"search.recompute"}},
    {" save save-interval checkpoint-interval ", "saving", {"save_interval"}, {"checkpoint.interval"}},
    {" data data-path dataset ", "the data", {"train_loader.dataset.local"}, {"data"}},
    {" device cuda cpu ", "the device", {"device"}, {}}};

enum class File { none, run, study };

File file_of(const std::string& command) {
  if (command == "simulate" || command == "train") return File::run;
  if (command == "plan" || command == "whatif" || command == "faults compare" || command == "compare-offers")
    return File::study;
  return File::none;
}

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const CLI::App& app) {
  return mapped(subcommands(app), [](const CLI::App* sub) { return sub->get_name(); });
}

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : subcommands(app))
    if (sub->check_name(name)) return sub;
  return nullptr;
}

bool has(const CLI::App& app, const std::string& flag) { return app.get_option_no_throw(flag) != nullptr; }

/// Long flags that help shows, without help itself.
std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (!option->get_group().empty() && name != "help" && name != "help-all") out.push_back("--" + name);
  std::ranges::sort(out);
  return out;
}

/// Commands that have the flag, by their words.
void add_owners(const CLI::App& app, const std::string& path, const std::string& flag, std::vector<std::string>& out) {
  for (const CLI::App* sub : subcommands(app)) {
    const std::string name = (path.empty() ? "" : path + " ") + sub->get_name();
    if (has(*sub, flag)) out.push_back("'" + name + "'");
    add_owners(*sub, name, flag, out);
  }
}

/// The command's flag that was probably meant: one that is near, or that begins so.
std::string near_flag(const std::string& flag, const std::vector<std::string>& flags) {
  const auto bare = mapped(flags, [](const std::string& each) { return each.substr(2); });
  const std::string word = flag.substr(flag.find_first_not_of('-'));
  if (const std::string near = nearest(word, bare); !near.empty()) return "--" + near;
  const auto begins =
      std::ranges::find_if(bare, [&](const std::string& each) { return each.starts_with(lower(word)); });
  return word.size() < 3 || begins == bare.end() ? "" : "--" + *begins;
}

/// "for the number of GPUs set gpus in the study, or --set gpus=...".
std::string said_in_file(const CLI::App& command, const std::string& path, const std::string& flag) {
  const File file = file_of(path);
  std::string word = lower(flag.substr(flag.find_first_not_of('-')));
  std::ranges::replace(word, '_', '-');
  for (const FileSetting& setting : kFileSettings) {
    const std::vector<std::string>& keys = file == File::run ? setting.run : setting.study;
    if (file == File::none || keys.empty() || std::string(setting.flags).find(" " + word + " ") == std::string::npos)
      continue;
    const bool product = keys.size() > 2;  // of GPUs
    std::string text = fmt::format("; {} {} {} in the {}", setting.what, product ? "is the product of" : "is set by",
                                   fmt::join(keys, product ? " x " : ", "), file == File::run ? "run file" : "study");
    if (file == File::study && has(command, "--set")) text += fmt::format(", or by --set {}=VALUE", keys.front());
    return text;
  }
  return "";
}

[[noreturn]] void refuse(const CLI::App& app, const CLI::App& command, const std::string& path,
                         const std::string& flag) {
  const std::vector<std::string> flags = flags_of(command);
  const std::string name = path.empty() ? "the program" : path, near = near_flag(flag, flags);
  std::string text = fmt::format("{}unknown flag {}", path.empty() ? "" : path + ": ", flag);
  text += near.empty() ? "" : fmt::format("; nearest: {}", near);
  const std::string instead = said_in_file(command, path, flag);
  text += instead;
  std::vector<std::string> owners;
  add_owners(app, "", flag, owners);
  if (has(app, flag)) owners.push_back("'windtunnel' itself");
  if (!owners.empty()) text += fmt::format("; {} {} it", fmt::join(owners, ", "), owners.size() == 1 ? "has" : "have");
  if (near.empty() || !instead.empty())
    text += flags.empty() ? fmt::format("; {} has no flags", name)
                          : fmt::format("; {} has {}", name, fmt::join(flags, ", "));
  throw Error(Code::usage, text);
}

/// How many of the words after an option belong to it.
std::size_t values_after(const CLI::Option& option) {
  return static_cast<std::size_t>(std::max(0, option.get_items_expected_min()));
}

}  // namespace

void refuse_unknown_flags(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string path;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (command->get_allow_extras() || command->get_prefix_command()) return;
    const std::string& word = arguments[i];
    if (word == "--") return;
    if (word.size() < 2 || word[0] != '-' || std::isdigit(static_cast<unsigned char>(word[1])) != 0) {
      if (const CLI::App* sub = subcommand(*command, word)) {
        command = sub;
        path += (path.empty() ? "" : " ") + sub->get_name();
      }
      continue;
    }
    const bool is_long = word[1] == '-';
    const std::size_t equals = word.find('=');
    const std::string flag = is_long ? word.substr(0, equals) : word.substr(0, 2);
    const CLI::Option* option = command->get_option_no_throw(flag);
    if (option == nullptr) refuse(app, *command, path, is_long ? flag : word.substr(0, equals));
    if (equals == std::string::npos && (is_long || word.size() == 2)) i += values_after(*option);
  }
}

std::vector<std::string> with_help(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "help") return arguments;
  const CLI::App* command = &app;
  std::vector<std::string> out;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& topic = arguments[i];
    if (topic == "--help" || topic == "-h" || (i == 1 && topic == "help")) continue;
    const CLI::App* sub = subcommand(*command, topic);
    if (sub == nullptr) {
      const std::vector<std::string> known = names_of(*command);
      throw_usage("help: found no topic '{}'{}; {}", fmt::join(arguments.begin() + 1, arguments.end(), " "),
                  did_you_mean(topic, known),
                  known.empty() ? fmt::format("'{}' has no topics of its own", fmt::join(out, " "))
                                : fmt::format("topics: {}", fmt::join(known, ", ")));
    }
    out.push_back(topic);
    command = sub;
  }
  out.emplace_back("--help");
  return out;
}

std::vector<std::string> keys_of_flags(bool study) {
  std::vector<std::string> out;
  for (const FileSetting& setting : kFileSettings)
    for (const std::string& key : study ? setting.study : setting.run) out.push_back(key);
  return out;
}

}  // namespace wt
