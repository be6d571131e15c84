#include "configs/files/duration.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/index_samples.hpp"
#include "configs/files/limits.hpp"

namespace wt {
namespace {

/// Rounding: 0.1 of 1,000 is 100.00000000000001 in one order of factors and 99.99999999999999 in another.
double nearly_whole(double number) {
  const double whole = std::round(number);
  return std::abs(number - whole) <= 1e-9 * std::max(1.0, std::abs(whole)) ? whole : number;
}

}  // namespace

Duration Duration::parse(const std::string& text, const std::string& where) {
  std::string digits = text;
  std::erase(digits, '_');
  std::erase(digits, ',');
  const char* const begin = digits.c_str();
  char* end = nullptr;
  Duration out;
  out.amount = std::strtod(begin, &end);
  out.unit = *end == 0 ? "ep" : end;
  if (end != begin && (out.unit == "sec" || out.unit == "iter"))
    throw_usage("{}: found '{}', which no number of batches follows from; needs batches such as 40ba", where, text);
  const bool known = out.unit == "ba" || out.unit == "ep" || out.unit == "sp" || out.unit == "tok" || out.unit == "dur";
  if (end == begin || !known || !(out.amount >= 0 && out.amount < 0x1p53))
    throw_usage(
        "{}: found '{}', needs a number of batches such as 40ba, or of epochs (1ep), samples (1sp) or tokens (1tok), "
        "or a part of the run (0.1dur)",
        where, text);
  if (out.unit != "dur" && out.amount != std::floor(out.amount))
    throw_usage("{}: found '{}', needs a whole number of {}", where, text, out.unit);
  return out;
}

double RunClock::batches(const Duration& duration, const std::string& where) const {
  if (duration.unit == "ba") return duration.amount;
  const double sequences = as_double(sizes_.global_batch);
  if (sizes_.global_batch == 0 && (duration.unit == "sp" || duration.unit == "tok"))
    throw_usage("{}: found '{}', but no batch says how many that are; needs batches such as 40ba", where,
                duration.unit);
  if (duration.unit == "tok" && sizes_.padded)
    throw_usage(
        "{}: found {} tokens of finetuning examples, whose sequences hold unequally many; needs batches such as 40ba, "
        "or epochs or samples",
        where, duration.amount);
  if (duration.unit == "sp") return duration.amount / sequences;
  if (duration.unit == "tok") return duration.amount / (sequences * as_double(sizes_.seq));
  if (duration.unit == "ep") {
    if (!sizes_.epoch)
      throw_usage("{}: found {} epochs, whose length is not known here; needs batches such as 40ba", where,
                  duration.amount);
    return duration.amount * as_double(sizes_.epoch());
  }
  if (whole_.unit == "dur")
    throw_usage("{}: found '{}dur', a part of itself; needs batches such as 40ba", where, duration.amount);
  const bool epochs = whole_.unit == "ep";
  const double length = epochs ? batches(whole_, where) : whole_.amount;
  return batches({std::floor(nearly_whole(duration.amount * length)), epochs ? "ba" : whole_.unit}, where);
}

std::int64_t RunClock::steps(const std::string& where) const {
  const double count = std::ceil(nearly_whole(batches(whole_, where)));
  if (!(count <= limits::kSteps)) throw_usage("{}: found {:g} steps, needs at most {:g}", where, count, limits::kSteps);
  return static_cast<std::int64_t>(count);
}

std::int64_t read_batches(YamlMap& map, const std::string& key, const RunClock& clock, std::int64_t fallback) {
  if (fallback >= 0 && !map.has(key)) return fallback;
  const std::string text = map.text(key);
  const double batches = nearly_whole(clock.batches(Duration::parse(text, map.where(key)), map.where(key)));
  if (!(batches <= limits::kSteps))
    map.fail(key, "found '{}', which is {:g} batches; needs at most {:g}", text, batches, limits::kSteps);
  if (batches != std::floor(batches))
    map.fail(key, "found '{}', which is {} batches; needs a whole number of them", text, batches);
  return static_cast<std::int64_t>(batches);
}

double read_duration(YamlMap& map, const std::string& key, const RunClock& clock, double fallback) {
  if (!map.has(key)) return fallback;
  return nearly_whole(clock.batches(Duration::parse(map.text(key), map.where(key)), map.where(key)));
}

std::int64_t samples_of(const std::string& folder, const std::string& where) {
  const std::filesystem::path index = std::filesystem::path(folder) / "index.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(index, ignored))
    throw_usage("{}: found epochs, but {} is not there to say their length; needs batches such as 40ba", where,
                index.string());
  std::ifstream in(index, std::ios::binary);
  const std::int64_t samples = samples_in_index(in).value_or(0);
  if (samples < 1) throw_usage("{}: {}: found no shards with samples, needs an MDS index", where, index.string());
  return samples;
}

}  // namespace wt
