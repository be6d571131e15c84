// What vendors' data sheets say of a GPU: the scale on which fitted constants are fractions, so that they carry over
// from one GPU to another.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace wt {

struct DataSheet {
  std::string name;             ///< "H100-SXM"
  int generation = 0;           ///< 7 Volta, 8 Ampere, 9 Hopper, 10 Blackwell; AMD's CDNA 3 is 9, CDNA 4 is 10
  std::int64_t processors = 0;  ///< streaming multiprocessors; AMD's compute units
  double flops = 0;             ///< dense bf16/fp16 FLOP/s of the tensor cores
  double fp32_flops = 0;        ///< of the CUDA cores, or AMD's vector units
  double memory_Bps = 0;
  double cache_bytes = 0;  ///< L2; of AMD the Infinity Cache, which all compute units share
  double link_Bps = 0;     ///< NVLink or, on cards without a switch, PCIe; one direction. Of XGMI all links together
  bool ada = false;        ///< Ada Lovelace: Ampere's tensor cores with fp8
  std::int64_t direct_peers = 0;  ///< GPUs that it has a link of its own to, each a share of link_Bps; 0 = a switch
  bool amd = false;
  double nvfp4_rate = 0;  ///< dense, over that of bf16; 0 = has none

  bool nvlink() const { return !amd && link_Bps > 64e9; }  ///< 16 lanes of PCIe Gen5 have that
};

/// What a GPU's host does for it, for which a cluster file has no key.
struct HostSheet {
  double link_Bps = 0;    ///< between a GPU and its host's memory, one direction, as copies reach it
  double memory_Bps = 0;  ///< of the host's memory, the GPU's share
};
/// PCIe by the GPU's generation: 16 lanes reach 12.5 GB/s of Gen3, 25 of Gen4, 50 of Gen5. NVLink-C2C of superchips:
/// 400 of 450 GB/s. Memory is assumed: 200 GB/s a socket, for four GPUs; a Grace for one GPU of GH200, for two of
/// GB200.
HostSheet host_sheet(const DataSheet& gpu);

/// By the words in a free-form name: "H100 80GB HBM3", "A100-80G-SXM", "B200 750 W". A part is the SXM one unless its
/// name says PCIe or NVL, an H100 with 96 GB or HBM2e the 500 W one, and a B200 has 1,000 W unless its name says less.
/// Empty where none is known, and where several are named with a + between.
std::optional<DataSheet> data_sheet(const std::string& gpu);

/// Rate of products in a data type over that of bf16 ("fp8" 2, "tf32" 0.5; "fp32" that of the CUDA cores). Empty where
/// this GPU has none.
std::optional<double> relative_rate(const DataSheet& gpu, const std::string& dtype);
/// Bytes of one element. Empty for a type it does not know.
std::optional<double> element_bytes(const std::string& dtype);

}  // namespace wt
