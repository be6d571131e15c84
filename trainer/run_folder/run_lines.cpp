#include "trainer/run_folder/run_lines.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/run_folder/files.hpp"

namespace wt {

using nlohmann::json;

json to_json(const StartLine& s) {
  json line = {{"generation", s.generation},
               {"connected_unix_s", s.connected_unix_s},
               {"loaded_unix_s", s.loaded_unix_s},
               {"resumed_after", s.resumed_after}};
  if (!s.level.empty()) line["level"] = s.level;
  return line;
}

StartLine start_line(const JsonReader& r) {
  StartLine out;
  out.connected_unix_s = r.at("connected_unix_s").non_negative();
  out.loaded_unix_s = r.at("loaded_unix_s").non_negative();
  out.resumed_after = step_count(r.at("resumed_after"));
  if (r.has("level")) out.level = r.at("level").string();
  return out;
}

json to_json(const SaveLine& s) {
  return {{"step", s.step}, {"blocking_s", s.blocking_s}, {"total_s", s.total_s}, {"bytes", s.bytes}};
}

SaveLine save_line(const JsonReader& r) {
  return {step_count(r.at("step")), r.at("blocking_s").non_negative(), r.at("total_s").non_negative(),
          r.at("bytes").non_negative()};
}

json to_json(const EvaluationLine& e) {
  return {{"step", e.step},       {"label", e.label},     {"loss", e.loss},      {"perplexity", std::exp(e.loss)},
          {"targets", e.targets}, {"samples", e.samples}, {"seconds", e.seconds}};
}

EvaluationLine evaluation_line(const JsonReader& r) {
  EvaluationLine out{step_count(r.at("step")), r.at("label").string()};
  if (!r.at("loss").value().is_null()) out.loss = r.at("loss").finite();
  return out;
}

json to_json(const DivergedStep& s) { return {{"step", s.step}, {"times", s.times}, {"unix_s", s.unix_s}}; }

std::optional<DivergedStep> read_diverged(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kDivergedFile;
  if (!std::filesystem::exists(file)) return {};
  const json document = read_json(file);
  const JsonReader r(document, file.string());
  return DivergedStep{step_count(r.at("step")), r.at("times").integer(), r.at("unix_s").non_negative()};
}

std::int64_t step_count(const JsonReader& r) {
  const std::int64_t steps = r.integer();
  if (steps < 0) r.fail(std::to_string(steps), "a number of steps");
  return steps;
}

std::vector<json> read_lines(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) out.push_back(parse_json(line, file.string()));
  return out;
}

std::pair<json, json> first_and_last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string first, last;
  std::getline(in, first);
  last = first;
  for (std::string line; std::getline(in, line);) last = line;
  return {parse_json(first, file.string()), parse_json(last, file.string())};
}

}  // namespace wt
