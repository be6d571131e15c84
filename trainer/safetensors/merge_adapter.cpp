#include "trainer/safetensors/merge_adapter.hpp"

#include <map>

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/text.hpp"
#include "trainer/safetensors/adapter.hpp"
#include "trainer/safetensors/pretrained_files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeight = ".weight";

}  // namespace

void merge_adapter(const fs::path& weights, const fs::path& adapter_folder, const fs::path& to) {
  const Adapter adapter = read_adapter(adapter_folder);
  std::map<std::string, StoredTensor> stored = pretrained_tensors(weights);
  for (const auto& [module, factors] : adapter.modules) {
    const auto found = stored.find(module + std::string(kWeight));
    if (found == stored.end())
      throw_error(Code::usage, "{}: found factors of {}, which {} has not; the adapter is of another model",
                  adapter_folder.string(), module, weights.string());
    if (found->second.shape != std::vector<std::int64_t>{factors.out, factors.in})
      throw_error(
          Code::usage,
          "{}: the factors of {} make ({}, {}), the weight in {} has another shape; the adapter is of another model",
          adapter_folder.string(), module, factors.out, factors.in, weights.string());
  }
  std::map<std::string, std::vector<float>> values;
  std::vector<OutgoingTensor> outgoing;
  for (const auto& [name, tensor] : stored) {
    std::vector<float>& own = values[name] = widened_values(tensor, weights.string() + ": " + name);
    const auto factors =
        adapter.modules.find(name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "");
    if (factors != adapter.modules.end()) merge_factors(own, factors->second, adapter.spec.scale());
    outgoing.push_back({name, "F32", tensor.shape, own.data(), {}});
  }
  fs::create_directories(to);
  write_safetensors(to / "model.safetensors", outgoing);
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "special_tokens_map.json", "tokenizer.model"})
    if (fs::is_regular_file(weights / name))
      write_file_atomically(to / name, read_file(weights / name, "a file of weights"));
}

}  // namespace wt
