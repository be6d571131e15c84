#include "configs/files/data_sheet.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <mutex>
#include <regex>
#include <string_view>

#include "configs/base/text.hpp"

namespace wt {
namespace {

struct Known {
  std::array<std::string_view, 3> words;  ///< the lower-case name must contain all of them
  DataSheet sheet;
};

// NVIDIA's data sheets: dense figures with fp32 accumulation of SXM parts, PCIe cards, and workstation and game cards.
// A bridge joins at most two or four PCIe cards, so that their link is the bus: 16 lanes, one direction. L2 sizes and
// processors come from the architecture white papers. A800 and H800 are A100 and H100 with 400 GB/s of NVLink in both
// directions together. GB200's 152 processors are from VeOmni (PR 986). How many of Blackwell Ultra's "up to 160" B300
// and GB300 have is not published: B200's 148 are assumed. B200 with 700 W is the B100 of NVIDIA's HGX data sheet, with
// B200's processors assumed. B200 with 750 W, as PyTorch benchmarks it (pytorch/ao#3566), is interpolated linearly in
// the power: 1,750 + (2,250 - 1,750) / 6. Four GH200 of a node are joined directly, each pair by six links of 25 GB/s
// (HPE Cray EX254n, Alps); a GH200 NVL32 has a switch. H100-SXM-96G is the part of torchtitan's benchmarks, which
// NVIDIA does not list: six stacks of HBM2e (6,144 bits at 3.2 Gb/s each), limited to 500 W; its FLOP/s are
// interpolated linearly in the power between NVL (400 W) and SXM (700 W): 835 + (989 - 835) / 3. TITAN RTX's rate is
// from its review at Tom's Hardware. H100-SXM-64G and A100-64G-SXM are the parts of MareNostrum 5 and Leonardo, four to
// a node and joined directly. Their memory is from the systems' pages. Leonardo's has 124 processors, its FLOP/s are an
// A100's by processor.
//
// AMD's data sheets of MI300X, MI325X, MI350X and MI355X: dense matrix figures at the highest clock; products reach a
// smaller share of them than on NVIDIA. Compute units and caches from rocm.docs.amd.com/en/latest/reference/gpu-specs.
// Each GPU has an Infinity Fabric (XGMI) link to each of seven others: 64 GB/s in one direction, on MI350 76.8.
//
// fp32 rates without tensor cores are those of the sheets (AMD: vector). For an H100-SXM-96G and a B200 with 750 W they
// are interpolated like bf16; an A10G's is assumed to be an A10's. NVFP4's dense rate over that of bf16, in PFLOP/s:
// HGX B200 9 to 2.25, GB200 NVL72 10 to 2.5, HGX B300 13.5 to 2.25, GB300 NVL72 15 to 2.5.
//
// Thermal design powers are those of the sheets: of the GPU with its memory, at the highest setting. A GH200's is
// assumed to be an H100's, because its sheet states the module with its CPU. GB200 and GB300 are one GPU's part of
// theirs. Leonardo's A100 has 440 W, and an A10G 300 W, as nvidia-smi reports them.
//
// The first matching entry counts.
constexpr double kGen4 = 32e9, kGen5 = 64e9;
const std::array<Known, 48> kSheets = {{
    {{"v100", "pci"}, {"V100-PCIe", 7, 80, 112e12, 14e12, 0.9e12, 6e6, 16e9, 250}},
    {{"v100"}, {"V100-SXM", 7, 80, 125e12, 15.7e12, 0.9e12, 6e6, 150e9, 300}},
    {{"a800", "pci"}, {"A800-PCIe", 8, 108, 312e12, 19.5e12, 1.935e12, 40e6, kGen4, 300}},
    {{"a800"}, {"A800-SXM", 8, 108, 312e12, 19.5e12, 2.039e12, 40e6, 200e9, 400}},
    {{"a100", "40g", "pci"}, {"A100-40G-PCIe", 8, 108, 312e12, 19.5e12, 1.555e12, 40e6, kGen4, 250}},
    {{"a100", "pci"}, {"A100-80G-PCIe", 8, 108, 312e12, 19.5e12, 1.935e12, 40e6, kGen4, 300}},
    {{"a100", "320g"},
     {"A100-40G-SXM", 8, 108, 312e12, 19.5e12, 1.555e12, 40e6, 300e9, 400}},  // eight of them, a DGX A100's
    {{"a100", "40g"}, {"A100-40G-SXM", 8, 108, 312e12, 19.5e12, 1.555e12, 40e6, 300e9, 400}},
    {{"a100", "64g"}, {"A100-64G-SXM", 8, 124, 358e12, 22.4e12, 1.64e12, 32e6, 300e9, 440, false, 3}},
    {{"a100"}, {"A100-80G-SXM", 8, 108, 312e12, 19.5e12, 2.039e12, 40e6, 300e9, 400}},
    {{"h100", "pci"}, {"H100-PCIe", 9, 114, 756e12, 51e12, 2.0e12, 50e6, kGen5, 350}},
    {{"h100", "nvl"}, {"H100-NVL", 9, 132, 835e12, 60e12, 3.9e12, 50e6, kGen5, 400}},
    {{"h100", "80g", "hbm2e"}, {"H100-PCIe", 9, 114, 756e12, 51e12, 2.0e12, 50e6, kGen5, 350}},
    {{"h100", "hbm2e"},
     {"H100-SXM-96G", 9, 132, 886e12, 60e12, 2.46e12, 50e6, 450e9, 500}},  // PCIe cards matched above
    {{"h100", "96g"}, {"H100-SXM-96G", 9, 132, 886e12, 60e12, 2.46e12, 50e6, 450e9, 500}},
    {{"h100", "64g"}, {"H100-SXM-64G", 9, 132, 989e12, 67e12, 1.6e12, 50e6, 450e9, 700, false, 3}},
    {{"h100"}, {"H100-SXM", 9, 132, 989e12, 67e12, 3.35e12, 50e6, 450e9, 700}},
    {{"h800", "pci"}, {"H800-PCIe", 9, 114, 756e12, 51e12, 2.0e12, 50e6, kGen5, 350}},
    {{"h800"}, {"H800-SXM", 9, 132, 989e12, 67e12, 3.35e12, 50e6, 200e9, 700}},
    {{"gh200", "144"}, {"GH200-144G", 9, 132, 989e12, 67e12, 4.9e12, 50e6, 450e9, 700, false, 3}},
    {{"gh200"}, {"GH200", 9, 132, 989e12, 67e12, 4.0e12, 50e6, 450e9, 700, false, 3}},
    {{"h200", "nvl"}, {"H200-NVL", 9, 132, 835e12, 60e12, 4.8e12, 50e6, kGen5, 600}},
    {{"h200"}, {"H200-SXM", 9, 132, 989e12, 67e12, 4.8e12, 50e6, 450e9, 700}},
    {{"h20"}, {"H20", 9, 78, 148e12, 44e12, 4.0e12, 60e6, 450e9, 400}},
    {{"gb300"}, {"GB300", 10, 148, 2500e12, 80e12, 8.0e12, 126e6, 900e9, 1400, false, 0, false, 6}},
    {{"gb200"}, {"GB200", 10, 152, 2500e12, 80e12, 8.0e12, 126e6, 900e9, 1200, false, 0, false, 4}},
    {{"b300"}, {"B300", 10, 148, 2250e12, 75e12, 8.0e12, 126e6, 900e9, 1100, false, 0, false, 6}},
    {{"b200", "700w"}, {"B200-700W", 10, 148, 1750e12, 60e12, 8.0e12, 126e6, 900e9, 700, false, 0, false, 4}},
    {{"b200", "750w"}, {"B200-750W", 10, 148, 1833e12, 62.5e12, 8.0e12, 126e6, 900e9, 750, false, 0, false, 4}},
    {{"b200"}, {"B200", 10, 148, 2250e12, 75e12, 8.0e12, 126e6, 900e9, 1000, false, 0, false, 4}},
    {{"mi300x"}, {"MI300X", 9, 304, 1307.4e12, 163.4e12, 5.3e12, 256e6, 448e9, 750, false, 7, true}},
    {{"mi325x"}, {"MI325X", 9, 304, 1307.4e12, 163.4e12, 6.0e12, 256e6, 448e9, 1000, false, 7, true}},
    {{"mi350x"}, {"MI350X", 10, 256, 2300e12, 144.2e12, 8.0e12, 256e6, 537.6e9, 1000, false, 7, true}},
    {{"mi355x"}, {"MI355X", 10, 256, 2516.6e12, 157.3e12, 8.0e12, 256e6, 537.6e9, 1400, false, 7, true}},
    {{"l40s"}, {"L40S", 8, 142, 362e12, 91.6e12, 0.864e12, 96e6, kGen4, 350, true}},
    {{"l40"}, {"L40", 8, 142, 181e12, 90.5e12, 0.864e12, 96e6, kGen4, 300, true}},
    {{"l4"}, {"L4", 8, 58, 121e12, 30.3e12, 0.3e12, 48e6, kGen4, 72, true}},
    {{"6000", "ada"}, {"RTX 6000 Ada", 8, 142, 364e12, 91.1e12, 0.96e12, 96e6, kGen4, 300, true}},
    {{"a6000"}, {"RTX A6000", 8, 84, 155e12, 38.7e12, 0.768e12, 6e6, kGen4, 300}},
    {{"4090"}, {"RTX 4090", 8, 128, 165e12, 82.6e12, 1.008e12, 72e6, kGen4, 450, true}},
    {{"3090", "ti"}, {"RTX 3090 Ti", 8, 84, 80e12, 40e12, 1.008e12, 6e6, kGen4, 450}},
    {{"3090"}, {"RTX 3090", 8, 82, 71e12, 35.6e12, 0.936e12, 6e6, kGen4, 350}},
    {{"a10g"}, {"A10G", 8, 80, 70e12, 31.2e12, 0.6e12, 6e6, kGen4, 300}},
    {{"a40"}, {"A40", 8, 84, 150e12, 37.4e12, 0.696e12, 6e6, kGen4, 300}},
    {{"a30"}, {"A30", 8, 56, 165e12, 10.3e12, 0.933e12, 24e6, kGen4, 165}},
    {{"a10"}, {"A10", 8, 72, 125e12, 31.2e12, 0.6e12, 6e6, kGen4, 150}},
    {{"t4"}, {"T4", 7, 40, 65e12, 8.1e12, 0.32e12, 4e6, 16e9, 70}},
    {{"titan rtx"}, {"TITAN RTX", 7, 72, 130.5e12, 16.3e12, 0.672e12, 6e6, 16e9, 280}},
}};

/// Whether a name has the word: not "h200" in "GH200", "h20" in "H200", "40g" in "640GB", "nvl" in "NVLink".
bool has(const std::string& name, std::string_view word) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    const auto joined = [&](const auto& kind) { return at > 0 && kind(word.front()) && kind(name[at - 1]); };
    const bool begins = !joined(letter) && !joined(digit);
    const std::size_t end = at + word.size();
    const bool ends = end == name.size() || !digit(word.back()) || !digit(name[end]);
    if (begins && ends && !(word == "nvl" && name.compare(at, 6, "nvlink") == 0)) return true;
  }
  return false;
}

}  // namespace

namespace {

/// Those of cluster files, by name. A search looks them up from several threads.
struct OwnSheets {
  std::mutex mutex;
  std::map<std::string, DataSheet> by_name;
};
OwnSheets& own_sheets() {
  static OwnSheets sheets;
  return sheets;
}

/// But for the last digits, which a file does not keep.
bool alike(const DataSheet& a, const DataSheet& b) {
  const auto same = [&](double DataSheet::*figure) {
    return std::abs(a.*figure - b.*figure) <= 1e-9 * std::abs(a.*figure);
  };
  return a.generation == b.generation && a.processors == b.processors && a.amd == b.amd && a.ada == b.ada &&
         a.direct_peers == b.direct_peers && same(&DataSheet::flops) && same(&DataSheet::fp32_flops) &&
         same(&DataSheet::memory_Bps) && same(&DataSheet::cache_bytes) && same(&DataSheet::link_Bps) &&
         same(&DataSheet::power_W) && same(&DataSheet::nvfp4_rate) && same(&DataSheet::fp8_rate);
}

}  // namespace

std::string know_data_sheet(DataSheet sheet) {
  OwnSheets& own = own_sheets();
  const std::lock_guard lock(own.mutex);
  const std::string name = sheet.name;
  for (int number = 2;; ++number) {
    const auto [known, fresh] = own.by_name.try_emplace(sheet.name, sheet);
    if (fresh || alike(known->second, sheet)) return sheet.name;
    sheet.name = fmt::format("{} ({})", name, number);
  }
}

std::optional<DataSheet> data_sheet(const std::string& gpu) {
  {
    OwnSheets& own = own_sheets();
    const std::lock_guard lock(own.mutex);
    if (const auto known = own.by_name.find(gpu); known != own.by_name.end()) return known->second;
  }
  return built_in_data_sheet(gpu);
}

std::optional<DataSheet> built_in_data_sheet(const std::string& gpu) {
  static const std::regex spaced(R"((\d) (?=(?:gb?|w)\b))");    // "40 GB", "750 W"
  if (gpu.size() > 200) return std::nullopt;                    // std::regex recurses by character
  if (gpu.find('+') != std::string::npos) return std::nullopt;  // several GPUs: "2 RTX-3090+2 Titan-RTX"
  const std::string name = std::regex_replace(lower(gpu), spaced, "$1");
  for (const Known& known : kSheets)
    if (std::ranges::all_of(known.words, [&](std::string_view word) { return word.empty() || has(name, word); }))
      return known.sheet;
  return std::nullopt;
}

HostSheet host_sheet(const DataSheet& gpu) {
  constexpr double kSocketBps = 200e9;
  if (gpu.name.starts_with("GH")) return {400e9, kSocketBps};
  if (gpu.name.starts_with("GB")) return {400e9, kSocketBps / 2};
  // Cards of Ada Lovelace and Ampere have Gen4, those of Volta and Turing Gen3.
  const double link_Bps = gpu.generation >= 9 ? 50e9 : gpu.generation == 8 ? 25e9 : 12.5e9;
  return {link_Bps, kSocketBps / 4};
}

std::optional<double> relative_rate(const DataSheet& gpu, const std::string& dtype) {
  const std::string type = lower(dtype);
  if (type == "fp16" || (type == "bf16" && gpu.generation >= 8)) return 1;
  if (type == "tf32" && gpu.generation >= 8 && !(gpu.amd && gpu.generation > 9)) return 0.5;  // CDNA 4 emulates it
  if (type == "fp8" && (gpu.generation >= 9 || gpu.ada)) return gpu.fp8_rate;
  if (type == "fp8_blockwise" && !gpu.amd && gpu.generation >= 9) return gpu.fp8_rate;  // on Blackwell run as mxfp8
  if (type == "mxfp8" && gpu.generation >= 10) return gpu.fp8_rate;
  if (type == "nvfp4" && gpu.nvfp4_rate > 0) return gpu.nvfp4_rate;
  if (type == "fp32") return gpu.fp32_flops / gpu.flops;
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
