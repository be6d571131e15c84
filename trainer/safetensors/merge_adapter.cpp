#include "trainer/safetensors/merge_adapter.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"
#include "trainer/safetensors/adapter.hpp"
#include "trainer/safetensors/pretrained_files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightOf = ".weight";
using Stored = std::map<std::string, StoredTensor>;

void check_folders(const fs::path& weights, const fs::path& to) {
  std::error_code ignored;
  if (!fs::is_regular_file(weights / "config.json", ignored))
    throw_usage("{}: found no config.json, needs a folder of weights as Hugging Face and our export write it",
                weights.string());
  if (fs::exists(fs::symlink_status(to, ignored)))
    throw_usage("{}: found something there, needs a folder that is not there yet; name another", to.string());
}

/// Every module must have a weight of its shape.
void check_base(const Adapter& adapter, const fs::path& folder, const Stored& stored, const fs::path& weights) {
  for (const auto& [module, factors] : adapter.modules) {
    const auto found = stored.find(module + std::string(kWeightOf));
    if (found == stored.end())
      throw_usage("{}: found factors of {}, which {} has not; the adapter is of another model", folder.string(), module,
                  weights.string());
    if (found->second.shape != std::vector<std::int64_t>{factors.out, factors.in})
      throw_usage(
          "{}: the factors of {} make ({}, {}), the weight in {} has another shape; the adapter is of another model",
          folder.string(), module, factors.out, factors.in, weights.string());
  }
}

MergedAdapter write_merged(const Adapter& adapter, const Stored& stored, const fs::path& weights, const fs::path& to) {
  MergedAdapter out;
  std::map<std::string, std::vector<float>> values;
  std::vector<OutgoingTensor> outgoing;
  for (const auto& [name, tensor] : stored) {
    std::vector<float>& own = values[name] = widened_values(tensor, weights.string() + ": " + name);
    const auto factors =
        adapter.modules.find(name.ends_with(kWeightOf) ? name.substr(0, name.size() - kWeightOf.size()) : "");
    if (factors != adapter.modules.end()) merge_factors(own, factors->second, adapter.spec.scale()), ++out.modules;
    outgoing.push_back({name, "F32", tensor.shape, own.data(), {}});
    ++out.tensors, out.parameters += static_cast<double>(own.size());
  }
  write_safetensors(to / "model.safetensors", outgoing);
  for (const char* name : {"generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "special_tokens_map.json", "tokenizer.model"})
    if (fs::is_regular_file(weights / name))
      write_file_atomically(to / name, read_file(weights / name, "a file of weights"));
  nlohmann::json config = read_json(weights / "config.json");
  for (const char* type : {"torch_dtype", "dtype"})  // the type that readers would round the weights to
    if (config.contains(type)) config[type] = "float32";
  write_file_atomically(to / "config.json", config.dump(2) + "\n");
  return out;
}

}  // namespace

MergedAdapter merge_adapter(const fs::path& weights, const fs::path& adapter_folder, const fs::path& to) {
  check_folders(weights, to);
  const Adapter adapter = read_adapter(adapter_folder);
  const Stored stored = pretrained_tensors(weights);
  check_base(adapter, adapter_folder, stored, weights);
  try {
    fs::create_directories(to);
    return write_merged(adapter, stored, weights, to);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw;
  }
}

}  // namespace wt
