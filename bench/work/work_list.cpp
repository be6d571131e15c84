#include "bench/work/work_list.hpp"

#include <cctype>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const WorkItem& item) {
  out = {{"kernel", to_string(item.kernel)},
         {"pass", to_string(item.pass)},
         {"dtype", to_string(item.precision)},
         {"shape", item.shape(0)}};
}

json to_json(const WorkList& list) {
  return {{"schema", "windtunnel.work/1"}, {"study", list.study}, {"gpu", list.gpu}, {"items", list.items}};
}

WorkList read_work_list(const std::filesystem::path& file) {
  const json document = read_json(file);
  const JsonReader in(document, file.string());
  if (const std::string schema = in.at("schema").string(); schema != "windtunnel.work/1")
    in.at("schema").fail("'" + schema + "'", "'windtunnel.work/1'");
  in.allow_only({"schema", "study", "gpu", "items"});
  WorkList out{in.at("study").string(), in.at("gpu").string(), {}};
  for (const JsonReader& element : in.at("items").elements()) {
    element.allow_only({"kernel", "pass", "dtype", "shape"});
    const Kernel kernel = kernel_from_string(element.at("kernel").string());
    const std::string pass = element.at("pass").string(), dtype = element.at("dtype").string();
    if (pass != "forward" && pass != "backward") element.at("pass").fail("'" + pass + "'", "forward, backward");
    if (dtype != "fp32" && dtype != "bf16") element.at("dtype").fail("'" + dtype + "'", "fp32, bf16");
    const JsonReader shape = element.at("shape");
    const std::int64_t rows = shape.at("rows").integer();
    if (rows < 1) shape.at("rows").fail(std::to_string(rows), "an integer >= 1");
    std::array<std::int64_t, 4> dims{};
    const auto& names = dim_names(kernel);
    for (std::size_t i = 0; i < names.size(); ++i) dims[i] = shape.at(names[i]).integer();
    out.items.push_back(make_item(kernel, pass == "forward" ? Pass::forward : Pass::backward,
                                  dtype == "fp32" ? Precision::fp32 : Precision::bf16, {static_cast<double>(rows), 0},
                                  dims));
  }
  return out;
}

bool is_gpu(const std::string& device, const std::string& gpu) {
  const std::string word = gpu.substr(0, gpu.find('-'));
  if (word.empty()) return false;
  for (std::size_t at = device.find(word); at != std::string::npos; at = device.find(word, at + 1))
    if (at == 0 || !std::isalnum(static_cast<unsigned char>(device[at - 1]))) return true;
  return false;
}

}  // namespace wt
