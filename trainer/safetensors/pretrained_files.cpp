#include "trainer/safetensors/pretrained_files.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/safetensors/narrow_floats.hpp"

namespace wt {

namespace fs = std::filesystem;
using nlohmann::json;

std::map<std::string, StoredTensor> pretrained_tensors(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json", single = folder / "model.safetensors";
  std::set<std::string> files;
  if (fs::exists(index)) {
    const json document = read_json(index);
    for (const auto& [tensor, file] : JsonReader(document, index.string()).at("weight_map").items()) {
      if (fs::path(file.string()).filename() != file.string()) file.fail(file.string(), "names of files in the folder");
      files.insert(file.string());
    }
  } else if (fs::exists(single)) {
    files.insert("model.safetensors");
  } else {
    throw_usage(
        "{}: found neither model.safetensors nor model.safetensors.index.json, needs a folder as save_pretrained "
        "writes it",
        folder.string());
  }
  std::map<std::string, StoredTensor> out;
  for (const std::string& file : files) out.merge(read_safetensors(folder / file).tensors);
  return out;
}

void widen_values(const std::string& type, const char* from, std::int64_t count, float* to) {
  if (type == "F32") {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    to[i] = type == "F16" ? float_of_half(bits) : float_of_bfloat16(bits);
  }
}

std::vector<float> widened_values(const StoredTensor& tensor, const std::string& origin) {
  if (tensor.dtype != "F32" && tensor.dtype != "F16" && tensor.dtype != "BF16")
    throw_usage("{}: found type {}, allowed F32, F16 and BF16; convert it", origin, tensor.dtype);
  std::vector<char> bytes(static_cast<std::size_t>(tensor.bytes()));
  std::vector<float> out(static_cast<std::size_t>(tensor.elements()));
  read_values(tensor, 0, tensor.elements(), bytes.data());
  widen_values(tensor.dtype, bytes.data(), tensor.elements(), out.data());
  return out;
}

}  // namespace wt
