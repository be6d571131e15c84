// What vendors' data sheets say of a GPU: the scale on which fitted constants are fractions, so that they carry over
// from one GPU to another.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace wt {

struct DataSheet {
  std::string name;             ///< "H100-SXM"
  int generation = 0;           ///< 7 Volta, 8 Ampere, 9 Hopper, 10 Blackwell
  std::int64_t processors = 0;  ///< streaming multiprocessors
  double flops = 0;             ///< dense bf16/fp16 FLOP/s of the tensor cores
  double memory_Bps = 0;
  double cache_bytes = 0;  ///< L2
  double link_Bps = 0;     ///< NVLink or, on cards without a switch, PCIe; one direction
  bool ada = false;        ///< Ada Lovelace: Ampere's tensor cores with fp8

  bool nvlink() const { return link_Bps > 64e9; }  ///< 16 lanes of PCIe Gen5 have that
};

/// By the words in a free-form name: "H100 80GB HBM3", "A100-80G-SXM". A part is the SXM one unless its name says PCIe
/// or NVL, and an H100 with 96 GB or HBM2e the 500 W one. Empty where none is known.
std::optional<DataSheet> data_sheet(const std::string& gpu);

/// Tensor-core rate of a data type over that of bf16 ("fp8" 2, "tf32" 0.5). Empty where this GPU has none.
std::optional<double> relative_rate(const DataSheet& gpu, const std::string& dtype);
/// Bytes of one element. Empty for a type it does not know.
std::optional<double> element_bytes(const std::string& dtype);

}  // namespace wt
