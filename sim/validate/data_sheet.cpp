#include "sim/validate/data_sheet.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace wt {
namespace {

struct Known {
  std::array<std::string_view, 2> words;  ///< both must be in the name, in lower case
  DataSheet sheet;
};

// NVIDIA's data sheets of V100, A100, H100, H200, HGX B200 and GB200, dense figures; L2 sizes from the architecture white
// papers; H800 is H100 with 400 GB/s of NVLink in both directions together. The first entry that matches counts.
const std::array<Known, 10> kSheets = {{
    {{"v100", ""}, {"V100-SXM", 7, 80, 125e12, 0.9e12, 6e6, 150e9}},
    {{"a100", "40g"}, {"A100-40G-SXM", 8, 108, 312e12, 1.555e12, 40e6, 300e9}},
    {{"a100", ""}, {"A100-80G-SXM", 8, 108, 312e12, 2.039e12, 40e6, 300e9}},
    {{"h100", "pcie"}, {"H100-PCIe", 9, 114, 756e12, 2.0e12, 50e6, 300e9}},
    {{"h100", ""}, {"H100-SXM", 9, 132, 989e12, 3.35e12, 50e6, 450e9}},
    {{"h800", ""}, {"H800-SXM", 9, 132, 989e12, 3.35e12, 50e6, 200e9}},
    {{"h200", "nvl"}, {"H200-NVL", 9, 132, 835e12, 4.8e12, 50e6, 450e9}},
    {{"h200", ""}, {"H200-SXM", 9, 132, 989e12, 4.8e12, 50e6, 450e9}},
    {{"gb200", ""}, {"GB200", 10, 148, 2500e12, 8.0e12, 126e6, 900e9}},
    {{"b200", ""}, {"B200", 10, 148, 2250e12, 8.0e12, 126e6, 900e9}},
}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::optional<DataSheet> data_sheet(const std::string& gpu) {
  const std::string name = lower(gpu);
  if (name.find("gh200") != std::string::npos) return std::nullopt;
  for (const Known& known : kSheets)
    if (std::all_of(known.words.begin(), known.words.end(),
                    [&](std::string_view word) { return name.find(word) != std::string::npos; }))
      return known.sheet;
  return std::nullopt;
}

std::optional<double> relative_rate(const DataSheet& gpu, const std::string& dtype) {
  const std::string type = lower(dtype);
  if (type == "fp16" || (type == "bf16" && gpu.generation >= 8)) return 1;
  if (type == "tf32" && gpu.generation >= 8) return 0.5;
  if (type == "fp8" && gpu.generation >= 9) return 2;
  return std::nullopt;
}

std::optional<double> element_bytes(const std::string& dtype) {
  const std::string type = lower(dtype);
  if (type == "fp16" || type == "bf16") return 2;
  if (type == "tf32" || type == "fp32") return 4;
  if (type == "fp8") return 1;
  return std::nullopt;
}

}  // namespace wt
