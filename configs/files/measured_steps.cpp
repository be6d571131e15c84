#include "configs/files/measured_steps.hpp"

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

namespace wt {

std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file) {
  YamlMap root = YamlMap::from_file(file);
  const auto beside = [&](const std::string& name) {
    const std::filesystem::path path = file.parent_path() / name;
    std::error_code none;
    return std::filesystem::exists(path, none) ? path.string() : name;
  };
  std::vector<MeasuredStep> out;
  for (YamlMap& entry : root.maps("steps")) {
    MeasuredStep step{.run_file = entry.text("run"), .run = {}, .cluster = read_cluster(beside(entry.text("cluster")))};
    step.run = read_run(find_config("runs", beside(step.run_file)));
    if (entry.has("step_s") == entry.has("tokens_per_s_per_gpu"))
      entry.fail("run", "found {} of step_s and tokens_per_s_per_gpu, needs one of them",
                 entry.has("step_s") ? "both" : "none");
    if (entry.has("step_s")) {
      step.step_s = entry.number("step_s", 1e-6, 1e6);
    } else {
      const double tokens = as_double(step.run.global_batch) * as_double(step.run.seq),
                   rate = entry.number("tokens_per_s_per_gpu", 1e-3, 1e12);
      step.step_s = tokens / as_double(step.run.layout.world()) / rate;
    }
    const auto peak = [&](const char* key) -> std::optional<double> {
      if (!entry.has(key)) return {};
      const double bytes = entry.quantity_or(key, parse_bytes, 0);
      if (!(bytes >= 1e6)) entry.fail(key, "found {}, needs at least 1MB", entry.text(key));
      return bytes;
    };
    step.allocated_bytes = peak("allocated");
    step.reserved_bytes = peak("reserved");
    entry.finish();
    out.push_back(std::move(step));
  }
  if (out.empty()) root.fail("steps", "found no step, needs at least one");
  root.finish();
  return out;
}

}  // namespace wt
