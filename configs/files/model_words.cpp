#include "configs/files/model_words.hpp"

#include <fmt/ranges.h>

namespace wt {
namespace {

std::string billions(std::int64_t parameters) {
  const double count = static_cast<double>(parameters);
  return count < 1e9 ? fmt::format("{:.3g}M", count / 1e6) : fmt::format("{:.4g}B", count / 1e9);
}

std::string active(const ModelSpec& model) {
  return model.experts == 0 ? "" : fmt::format(", {} active", billions(model.active_parameters()));
}

}  // namespace

std::string parameters_text(const ModelSpec& model) { return billions(model.total_parameters()) + active(model); }

std::string model_lines(const ModelSpec& model) {
  std::string out = fmt::format("{}: {} parameters{}\n", model.name, billions(model.total_parameters()), active(model));
  for (const std::string& what : model.approximations) out += fmt::format("approximated: {}\n", what);
  return out;
}

std::string approximations_text(const ModelSpec& model) {
  return fmt::format("{}", fmt::join(model.approximations, "; "));
}

}  // namespace wt
