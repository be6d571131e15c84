#include <fmt/core.h>

#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

double teraflops(YamlMap& map, const std::string& key, double otherwise) {
  constexpr double kLeast = 1, kMost = 1e6;
  return map.has(key) ? 1e12 * map.number(key, kLeast, kMost) : otherwise;
}

}  // namespace

DataSheet data_sheet_from_yaml(YamlMap map, const std::string& name) {
  if (built_in_data_sheet(name))
    map.fail("like", "found beside the GPU {}, whose data sheet is built in; give the GPU a name of its own", name);
  const std::string like = map.text("like");
  const auto known = built_in_data_sheet(like);
  if (!known) map.fail("like", "found '{}', needs a GPU whose data sheet is built in, as B200", like);
  DataSheet out = *known;
  out.name = name;
  out.flops = teraflops(map, "bf16_tflops", known->flops);
  out.fp32_flops = teraflops(map, "fp32_tflops", known->fp32_flops * out.flops / known->flops);
  out.fp8_rate = teraflops(map, "fp8_tflops", known->fp8_rate * out.flops) / out.flops;
  out.nvfp4_rate = teraflops(map, "fp4_tflops", known->nvfp4_rate * out.flops) / out.flops;
  if (map.has("fp8_tflops") && !relative_rate(*known, "fp8"))
    map.fail("fp8_tflops", "found beside like: {}, which has no fp8; needs a later GPU", like);
  if (map.has("fp4_tflops") && known->nvfp4_rate == 0)
    map.fail("fp4_tflops", "found beside like: {}, which has no NVFP4; needs a later GPU", like);
  const auto within = [&](const char* key, double (*parse)(const std::string&, const std::string&), double otherwise,
                          double least, double most) {
    const double value = map.quantity_or(key, parse, otherwise);
    if (!(value >= least && value <= most)) map.fail(key, "found {}, allowed {:g} to {:g}", map.text(key), least, most);
    return value;
  };
  out.memory_Bps = within("memory_bandwidth", parse_bytes_per_second, known->memory_Bps, 1e9, 1e15);
  out.cache_bytes = within("cache", parse_bytes, known->cache_bytes, 1, 1e12);
  out.link_Bps = within("link_bandwidth", parse_bytes_per_second, known->link_Bps, 1e8, 1e15);
  out.power_W = within("power", parse_watts, known->power_W, 1, 1e5);
  out.processors = map.has("processors") ? map.integer("processors", 1, 100'000) : known->processors;
  map.finish();
  return out;
}

void data_sheet_to_yaml(const DataSheet& sheet, const std::string& like, YAML::Emitter& out) {
  const auto put = [&](const char* key, const std::string& value) { out << YAML::Key << key << YAML::Value << value; };
  const auto teraflops = [&](const char* key, double flops) {
    if (flops >= 1e12) put(key, fmt::format("{}", flops / 1e12));
  };
  out << YAML::BeginMap;
  put("like", like);
  teraflops("bf16_tflops", sheet.flops);
  teraflops("fp32_tflops", sheet.fp32_flops);
  teraflops("fp8_tflops", sheet.fp8_rate * sheet.flops);
  teraflops("fp4_tflops", sheet.nvfp4_rate * sheet.flops);
  put("memory_bandwidth", fmt::format("{}GB/s", sheet.memory_Bps / 1e9));
  put("cache", fmt::format("{}B", sheet.cache_bytes));
  put("link_bandwidth", fmt::format("{}GB/s", sheet.link_Bps / 1e9));
  put("power", fmt::format("{}W", sheet.power_W));
  put("processors", std::to_string(sheet.processors));
  out << YAML::EndMap;
}

}  // namespace wt
