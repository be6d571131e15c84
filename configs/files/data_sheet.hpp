// Vendors' data sheets of GPUs. Fitted constants are fractions of these figures, so that they carry over from one GPU
// to another.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

struct DataSheet {
  std::string name;             ///< "H100-SXM"
  int generation = 0;           ///< 7 Volta, 8 Ampere, 9 Hopper, 10 Blackwell; AMD's CDNA 3 is 9, CDNA 4 is 10
  std::int64_t processors = 0;  ///< streaming multiprocessors; AMD's compute units
  double flops = 0;             ///< dense bf16/fp16 FLOP/s of the tensor cores
  double fp32_flops = 0;        ///< of the CUDA cores, or AMD's vector units
  double memory_Bps = 0;
  double cache_bytes = 0;         ///< L2; on AMD the Infinity Cache, which all compute units share
  double link_Bps = 0;            ///< one direction: NVLink, PCIe on cards without a switch, the sum of all XGMI links
  double power_W = 0;             ///< thermal design power of the GPU, without its host
  bool ada = false;               ///< Ada Lovelace: Ampere's tensor cores with fp8
  std::int64_t direct_peers = 0;  ///< GPUs with a direct link, each a share of link_Bps; 0 = linked by a switch
  bool amd = false;
  double nvfp4_rate = 0;  ///< dense rate over that of bf16; 0 = not supported
  double fp8_rate = 2;    ///< likewise, where the generation has fp8

  bool nvlink() const { return !amd && link_Bps > 64e9; }  ///< 64 GB/s = 16 lanes of PCIe Gen5
};

/// The host's part of a GPU's bandwidths, which cluster files do not describe.
struct HostSheet {
  double link_Bps = 0;    ///< between GPU and host memory, one direction, as copies reach it
  double memory_Bps = 0;  ///< this GPU's share of the host memory's bandwidth
};
/// PCIe by the GPU's generation: copies reach 12.5 GB/s over 16 lanes of Gen3, 25 of Gen4, 50 of Gen5. NVLink-C2C of
/// superchips: 400 of 450 GB/s. Host memory is assumed: 200 GB/s a socket, which four GPUs share; a Grace serves one
/// GPU of GH200 and two of GB200.
HostSheet host_sheet(const DataSheet& gpu);

/// Found by the words of a free-form name: "H100 80GB HBM3", "A100-80G-SXM", "B200 750 W". A name without PCIe or NVL
/// means the SXM part; an H100 with 96 GB or HBM2e is the 500 W part; a B200 has 1,000 W unless its name says less.
/// Empty for an unknown GPU, and for several joined by +.
std::optional<DataSheet> data_sheet(const std::string& gpu);

/// The same without those of cluster files.
std::optional<DataSheet> built_in_data_sheet(const std::string& gpu);

/// From now on data_sheet() knows a GPU of a cluster file, too, by the name that this gives: the sheet's own, with a
/// number behind it where another sheet has this name.
std::string know_data_sheet(DataSheet sheet);
/// The map `gpu.data_sheet` of a cluster file: a known GPU that it is `like`, and the figures that differ. Throws
/// Error{usage} for a name whose sheet is built in, and an unknown one to be like.
DataSheet data_sheet_from_yaml(YamlMap map, const std::string& name);
/// Writes that map.
void data_sheet_to_yaml(const DataSheet& sheet, const std::string& like, YAML::Emitter& out);

/// Matrix rate in a data type over that of bf16: "fp8" 2, "tf32" 0.5; "fp32" uses the CUDA cores. Empty where the GPU
/// does not support the type.
std::optional<double> relative_rate(const DataSheet& gpu, const std::string& dtype);
/// Bytes of one element. Empty for an unknown type.
std::optional<double> element_bytes(const std::string& dtype);

}  // namespace wt
