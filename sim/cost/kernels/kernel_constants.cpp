#include "sim/cost/kernels/kernel_constants.hpp"

#include <nlohmann/json.hpp>

namespace wt {

/// An array without names, because the file has thousands of them.
void to_json(nlohmann::json& json, const ProductResidual& r) { json = {r.m, r.n, r.k, r.relative_rate, r.log_left}; }

void from_json(const nlohmann::json& json, ProductResidual& r) {
  r = {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WaveConstants, launch_s, ramp_s, memory_share, partial_wave, tile_share, reduce_s,
                                   blend)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryBoundConstants, launch_s, pass_s, cache_share, memory_share)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GroupedConstants, launch_s, flops, weights, rows, factors)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProductConstants, gpu, wave, residuals)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowConstants, gpu, op, constants)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LibraryRow, kind, library, gpu, origin, log_factor)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PointCount, gpu, op, points)

void to_json(nlohmann::json& json, const KernelConstants& c) {
  json = {{"products", c.products},   {"grouped", c.grouped}, {"rows", c.rows},
          {"libraries", c.libraries}, {"counts", c.counts},   {"bounds", c.bounds}};
}

void from_json(const nlohmann::json& json, KernelConstants& c) {
  json.at("products").get_to(c.products);
  json.at("grouped").get_to(c.grouped);
  json.at("rows").get_to(c.rows);
  json.at("libraries").get_to(c.libraries);
  json.at("counts").get_to(c.counts);
  json.at("bounds").get_to(c.bounds);
}

}  // namespace wt
