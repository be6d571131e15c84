// How many rows the embedding of a job has. Megatron-LM asks its tokenizer, and pads (_vocab_size_with_padding of
// megatron/training/tokenizer/tokenizer.py).
#include <algorithm>

#include "configs/base/text.hpp"
#include "configs/files/hub_models.hpp"
#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

struct KnownTokenizer {
  const char* part;  ///< of a repository's or a folder's name, in lower case
  std::int64_t size;
};
/// len(tokenizer) of repositories on Hugging Face, the first part that a name has; config.json often says more.
const std::vector<KnownTokenizer> kTokenizers{
    {"llama-4", 201135},      {"llama-3", 128256},     {"llama3", 128256},         {"llama-2", 32000},
    {"llama2", 32000},        {"mixtral-8x7b", 32000}, {"mistral-7b-v0.1", 32000}, {"mistral-7b-v0.3", 32768},
    {"mixtral-8x22b", 32768}, {"qwen3", 151669},       {"qwen2.5", 151665},        {"deepseek-v3", 128815},
    {"gpt-oss", 200019},      {"gpt2", 50257},         {"gpt-neo", 50257},         {"olmoe", 50280},
    {"olmo-2", 100278},       {"dbrx", 100280}};

/// 0: not known by name.
std::int64_t known_tokenizer(const std::string& type, const std::string& model) {
  if (type == "GPT2BPETokenizer") return 50257;
  if (type == "Llama2Tokenizer") return 32000;
  const std::string name = lower(model);
  for (const KnownTokenizer& one : kTokenizers)
    if (name.find(one.part) != std::string::npos) return one.size;
  return 0;
}

}  // namespace

std::int64_t megatron_vocabulary(RecipeReading& reading, MegatronKeys keys) {
  if (keys.has("padded_vocab_size")) {
    keys.value("vocab_size"), keys.value("make_vocab_size_divisible_by");
    return keys.integer("padded_vocab_size", 0, 2);
  }
  // pretrain_gpt.py's args_defaults: with a --vocab-file it is GPT-2's.
  const bool files = keys.flags() && keys.has("vocab_file") && !keys.has("vocab_size");
  const std::string type = keys.text("tokenizer_type", files ? "GPT2BPETokenizer" : ""),
                    model = keys.text("tokenizer_model", "");
  const std::int64_t said = keys.integer("vocab_size", 0, 2), known = known_tokenizer(type, model);
  std::int64_t size = 0;
  if (type == "NullTokenizer" || type == "NullMultimodalTokenizer") {
    size = said > 0 ? said + 1 : 0;  // one more ends a document
  } else if (known > 0 && said == 0) {
    size = known;
    reading.assume("{}: found none, taken as the {} entries of {}", keys.key("vocab_size"), known,
                   model.empty() ? type : model);
  } else {
    size = said;  // what others of Megatron-LM's tokenizers ignore is what their user believes
  }
  if (reading.vocab > 0) {
    if (size > 0 && said > 0 && said != reading.vocab)
      keys.fail("vocab_size", "found {}, and {} by --vocab; needs one number", said, reading.vocab);
    size = reading.vocab;
  }
  if (size == 0 && !model.empty())
    if (const std::string preset = hub_repository(model); !preset.empty()) {
      size = read_model(preset).vocab;
      reading.assume("{}: found none, taken as the {} rows of {}'s config.json; its tokenizer may have fewer entries",
                     keys.key("vocab_size"), size, model);
    }
  if (size == 0)
    keys.fail("vocab_size", "found none, needs the vocabulary's size, which {} says; give --vocab N",
              type.empty()    ? "the tokenizer"
              : model.empty() ? type
                              : model);
  const std::int64_t multiple =
      keys.integer("make_vocab_size_divisible_by", 128, 1) * keys.integer("tensor_model_parallel_size", 1, 1);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (multiple > kMost || size > kMost) keys.fail("vocab_size", "found {}, needs fewer rows", size);
  return (size + multiple - 1) / multiple * multiple;
}

}  // namespace wt
