#include "planner/job_logs/step_lines.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <regex>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

constexpr double kGB_bytes = 1e9;
/// std::regex recurses by character. No trainer's step line is longer.
constexpr std::size_t kLongestLine = 4000;

const std::string kNumber = R"(([-+\d.,eE]+|[-+]?(?:nan|inf|NaN|Infinity)))";

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text;
}

/// The parts between `|`, as name and value at the last colon: " lm loss: 2.5E+00 ".
std::map<std::string, std::string> piped_fields(const std::string& line) {
  std::map<std::string, std::string> out;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    const std::string part = line.substr(at, end - at);
    if (const std::size_t colon = part.rfind(':'); colon != std::string::npos)
      out[trimmed(part.substr(0, colon))] = trimmed(part.substr(colon + 1));
    at = end + 1;
  }
  return out;
}

std::optional<double> field(const std::map<std::string, std::string>& fields, const std::string& name,
                            const std::string& where) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::nullopt : std::optional(number_or_nan_of_log(found->second, where, name));
}

/// NaN and what is not above 0 say nothing.
std::optional<double> positive(std::optional<double> value) { return value && *value > 0 ? value : std::nullopt; }

/// Seconds of "2026-01-02 03:04:05,678" in the line, by a clock without a time zone.
std::optional<double> time_in(const std::string& line) {
  static const std::regex kTime(R"((\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?)");
  std::smatch m;
  if (!std::regex_search(line, m, kTime)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(std::stoi(m[1])),
                                         std::chrono::month(static_cast<unsigned>(std::stoi(m[2]))),
                                         std::chrono::day(static_cast<unsigned>(std::stoi(m[3])))};
  if (!date.ok()) return std::nullopt;
  const double days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  return 86400 * days + 3600 * std::stod(m[4]) + 60 * std::stod(m[5]) + std::stod(m[6]) +
         (m[7].matched ? std::stod("0." + m[7].str()) : 0);
}

std::optional<std::int64_t> batch_in(const std::map<std::string, std::string>& fields, const std::string& name,
                                     const std::string& where) {
  const auto batch = positive(field(fields, name, where));
  return batch && *batch < 1e12 ? std::optional(static_cast<std::int64_t>(*batch)) : std::nullopt;
}

}  // namespace

double number_of_log(const std::string& text, const std::string& where, const std::string& name) {
  static const std::regex kThousands(R"([-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?)");
  std::string digits = text;
  if (text.size() < 40 && std::regex_match(text, kThousands)) std::erase(digits, ',');
  if (digits.starts_with('+')) digits.erase(0, 1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value)) return value;
  const bool shown = text.size() < 40 && text.find_first_not_of("0123456789.,+-eE") == std::string::npos;
  throw_usage("{}: found {} {}, needs digits with a point before decimals, and commas between thousands at most", where,
              name, shown ? "'" + text + "'" : "with other letters than those of a number");
}

double number_or_nan_of_log(const std::string& text, const std::string& where, const std::string& name) {
  const std::string word = lower(text);
  if (word == "nan" || word == "-nan" || word == "inf" || word == "-inf" || word == "infinity" || word == "-infinity")
    return std::numeric_limits<double>::quiet_NaN();
  return number_of_log(text, where, name);
}

std::int64_t step_of_log(const std::string& digits, const std::string& where) {
  constexpr std::size_t kMostDigits = 15;
  if (digits.empty() || digits.size() > kMostDigits || digits.find_first_not_of("0123456789") != std::string::npos)
    throw_usage("{}: found a step that is no number of at most {} digits", where, kMostDigits);
  return std::stoll(digits);
}

std::string bare_line(const std::string& line) {
  static const std::regex kColour("\x1b\\[[0-9;]*[A-Za-z]");
  static const std::regex kPrefix(
      R"(\[[\w-]*\d+\]:|\d+: |\[\d+,\d+\]<std(?:out|err)>:|\[pod/[^\]]*\] |\d{4}-\d\d-\d\dT[\d:.]+Z )");
  std::string out = line.substr(0, kLongestLine);
  if (out.find('\x1b') != std::string::npos) out = std::regex_replace(out, kColour, "");
  for (std::smatch m; std::regex_search(out, m, kPrefix, std::regex_constants::match_continuous);)
    out.erase(0, static_cast<std::size_t>(m.length()));
  return out;
}

std::vector<std::string> steps_of_line(const std::string& bare) {
  static const std::regex kBegin(R"(step:\s*\d+\s+loss:|iteration\s+\d+/)");
  std::vector<std::size_t> begins;
  if (StepLines::looks_like_step(bare))
    for (auto m = std::sregex_iterator(bare.begin(), bare.end(), kBegin); m != std::sregex_iterator(); ++m)
      begins.push_back(static_cast<std::size_t>(m->position()));
  if (begins.size() < 2) return {bare};
  std::vector<std::string> out{bare.substr(0, begins[1])};
  for (std::size_t i = 1; i < begins.size(); ++i)
    out.push_back(bare.substr(begins[i], i + 1 < begins.size() ? begins[i + 1] - begins[i] : std::string::npos));
  return out;
}

void StepLines::of(JobTrainer trainer, const std::string& where) {
  if (trainer_ && *trainer_ != trainer)
    throw_usage("{}: found a step of {} after steps of {}; needs the log of one job", where, to_string(trainer),
                to_string(*trainer_));
  trainer_ = trainer;
}

std::optional<LoggedStep> StepLines::torchtitan(const std::string& line, const std::string& where) {
  static const std::regex kLine(R"(step:\s*(\d+)\s+loss:\s*)" + kNumber + R"((?:\s+grad_norm:\s*)" + kNumber +
                                R"()?\s+memory:\s*)" + kNumber + R"(GiB\([^)]*\)\s+tps:\s*)" + kNumber +
                                R"(\s+tflops:\s*)" + kNumber + R"((?:\s+mfu:\s*([\d.,]+%|N/A))?)");
  static const std::regex kPeak(R"(Peak FLOPS used for computing MFU:\s*)" + kNumber);
  std::smatch m;
  if (line.find("Peak FLOPS") != std::string::npos && std::regex_search(line, m, kPeak))
    peak_flops_ = number_of_log(m[1], where, "peak FLOPS");
  if (line.find("tps:") == std::string::npos || !std::regex_search(line, m, kLine)) return std::nullopt;
  of(JobTrainer::torchtitan, where);
  LoggedStep out{.step = step_of_log(m[1], where)};
  out.loss = number_or_nan_of_log(m[2], where, "loss");
  if (m[3].matched) out.grad_norm = number_or_nan_of_log(m[3], where, "grad_norm");
  out.memory_bytes = positive(number_or_nan_of_log(m[4], where, "memory") * kGiB_bytes);
  out.tokens_per_s_per_gpu = positive(number_or_nan_of_log(m[5], where, "tps"));
  out.flops_per_gpu = positive(number_or_nan_of_log(m[6], where, "tflops") * 1e12);
  out.clock_s = time_in(line);
  if (m[7].matched && m[7] != "N/A") {
    const std::string percent = m[7];
    out.mfu = number_of_log(percent.substr(0, percent.size() - 1), where, "mfu") / 100;
  }
  return out;
}

std::optional<LoggedStep> StepLines::megatron(const std::string& line, const std::string& where) {
  static const std::regex kBridge(R"(Step Time\s*:\s*)" + kNumber + R"(s\s+GPU utilization:\s*)" + kNumber +
                                  R"(\s*MODEL_TFLOP/s/GPU)");
  static const std::regex kLine(R"(iteration\s+(\d+)/\s*\d+\s*\|(.*)\|\s*$)");
  std::smatch m;
  if (line.find("Step Time") != std::string::npos && std::regex_search(line, m, kBridge)) {
    flops_of_next_ = positive(number_of_log(m[2], where, "MODEL_TFLOP/s/GPU") * 1e12);
    return std::nullopt;
  }
  if (line.find("elapsed time per iteration (ms)") == std::string::npos || !std::regex_search(line, m, kLine))
    return std::nullopt;
  of(JobTrainer::megatron, where);
  const auto fields = piped_fields(m[2]);
  LoggedStep out{.step = step_of_log(m[1], where)};
  const auto elapsed = positive(field(fields, "elapsed time per iteration (ms)", where));
  if (elapsed) out.step_s = *elapsed / 1e3;
  out.global_batch = batch_in(fields, "global batch size", where);
  out.loss = field(fields, "lm loss", where);
  if (out.loss) had_lm_loss_ = true;
  if (!out.loss && had_lm_loss_)  // a loss that is not a number makes the field vanish
    out.loss = std::numeric_limits<double>::quiet_NaN();
  out.grad_norm = field(fields, "grad norm", where);
  out.clock_s = time_in(line);
  if (const auto rate = positive(field(fields, "throughput per GPU (TFLOP/s/GPU)", where)))
    out.flops_per_gpu = *rate * 1e12;
  else
    out.flops_per_gpu = std::exchange(flops_of_next_, std::nullopt);
  return out;
}

std::optional<LoggedStep> StepLines::nemo(const std::string& line, const std::string& where) {
  static const std::regex kLine(R"(Training epoch (\d+), iteration (\d+)(?:/\d+)?\s*\|(.*))");
  std::smatch m;
  if (line.find("Training epoch") == std::string::npos || !std::regex_search(line, m, kLine)) return std::nullopt;
  of(JobTrainer::megatron, where);
  const auto fields = piped_fields(m[3]);
  LoggedStep out{.step = step_of_log(m[2], where) + 1};
  out.step_s = positive(field(fields, "train_step_timing in s", where));
  out.loss = field(fields, "reduced_train_loss", where);
  out.grad_norm = field(fields, "grad_norm", where);
  out.global_batch = batch_in(fields, "global_batch_size", where);
  if (const auto rate = positive(field(fields, "TFLOPS_per_GPU", where))) out.flops_per_gpu = *rate * 1e12;
  return out;
}

std::optional<LoggedStep> StepLines::automodel(const std::string& line, const std::string& where) {
  static const std::regex kLine(R"(step (\d+) \| epoch \d+ \| loss )" + kNumber + R"((?: \| grad_norm )" + kNumber +
                                R"()? \|.* \| mem )" + kNumber + R"( GiB \| tps )" + kNumber + R"(\()" + kNumber +
                                R"(/gpu\))");
  std::smatch m;
  if (line.find("/gpu)") == std::string::npos || !std::regex_search(line, m, kLine)) return std::nullopt;
  of(JobTrainer::automodel, where);
  LoggedStep out{.step = step_of_log(m[1], where)};
  out.loss = number_or_nan_of_log(m[2], where, "loss");
  if (m[3].matched) out.grad_norm = number_or_nan_of_log(m[3], where, "grad_norm");
  out.memory_bytes = positive(number_or_nan_of_log(m[4], where, "mem") * kGiB_bytes);
  // What it calls a GPU's rate leaves tensor and pipeline ranks out.
  out.tokens_per_s = positive(number_or_nan_of_log(m[5], where, "tps"));
  out.clock_s = time_in(line);
  return out;
}

namespace {

/// At least 1, and small enough to be multiplied with another one.
std::int64_t count_of_log(const std::string& digits, const std::string& where) {
  const std::int64_t count = step_of_log(digits, where);
  if (count < 1 || count > 1'000'000'000) throw_usage("{}: found an epoch or a number of batches out of range", where);
  return count;
}

}  // namespace

std::optional<LoggedStep> StepLines::composer(const std::string& line, const std::string& where, std::int64_t place) {
  static const std::regex kHead(R"(^\s*(?:\[epoch=(\d+)(?:/\d+)?\])?\[(batch|token)=(\d+)(?:/(\d+))?\]:)");
  static const std::regex kMetric(R"(^\s*Train ([\w/-]+): )" + kNumber + R"(\s*$)");
  std::smatch m;
  if (line.find("]:") != std::string::npos && std::regex_search(line, m, kHead)) {
    of(JobTrainer::composer, where);
    LoggedStep next{.step = step_of_log(m[3], where), .place = place};
    if (m[1].matched && m[4].matched)  // batches of an epoch
      next.step += (count_of_log(m[1], where) - 1) * count_of_log(m[4], where);
    counts_tokens_ = m[2] == "token";
    return std::exchange(block_, next);
  }
  if (!block_ || line.find("Train ") == std::string::npos || !std::regex_search(line, m, kMetric)) return std::nullopt;
  const std::string name = m[1];
  const double value = number_or_nan_of_log(m[2], where, name);
  block_->place = place;
  if (name == "loss/train/total") block_->loss = value;
  if (name == "l2_norm/grad/global") block_->grad_norm = value;  // of its OptimizerMonitor
  if (name == "throughput/device/tokens_per_sec") block_->tokens_per_s_per_gpu = positive(value);
  if (name == "throughput/device/mfu") block_->mfu = positive(value);
  if (name == "throughput/device/flops_per_sec") block_->flops_per_gpu = positive(value);
  if (name == "memory/peak_reserved_mem") block_->memory_bytes = positive(value * kGB_bytes);
  return std::nullopt;
}

void StepLines::hugging_face(const std::string& line, const std::string& where, std::int64_t place) {
  // tqdm's, without a description: " 12%|###   | 12/100 [00:41<05:03,  3.45s/it]"
  static const std::regex kBar(R"(^\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[(?:(\d{1,6}):)?(\d{1,6}):(\d\d)<)");
  if (line.find("{'loss':") != std::string::npos || line.find("_runtime':") != std::string::npos)
    printed_dict(line, where, place);
  std::smatch m;
  if (line.find("%|") == std::string::npos || !std::regex_search(line, m, kBar)) return;
  const auto part = [&](int i) { return m[i].matched ? std::stod(m[i]) : 0.0; };
  const Progress now{step_of_log(m[1], where), 3600 * part(3) + 60 * part(4) + part(5), place};
  const std::int64_t all = step_of_log(m[2], where);
  std::vector<Progress>& bar = bars_[all];
  if (now.elapsed_s > longest_s_) longest_s_ = now.elapsed_s, training_ = all;
  if (all == training_ && !bar.empty() && bar.back().step != now.step) last_sign_ = place;
  // A bar that is drawn again says nothing, unless a loss was printed meanwhile.
  const bool again = !bar.empty() && bar.back().step == now.step && bar.back().elapsed_s == now.elapsed_s &&
                     (losses_.empty() || losses_.back().place < bar.back().place);
  if (!again) bar.push_back(now);
}

void StepLines::printed_dict(const std::string& line, const std::string& where, std::int64_t place) {
  // The repr of a dict; values are quoted since release 5.
  static const std::regex kEntry(R"('(\w{1,64})': '?([-+]?(?:nan|inf)|[-+\d.eE]+))");
  static const std::regex kEvaluation("eval_(?:\\w+_)?runtime");
  const auto number = [&](const std::smatch& m) { return number_or_nan_of_log(m[2], where, m[1]); };
  LoggedStep step{.place = place};
  std::optional<double> since_start_s;
  for (std::sregex_iterator m(line.begin(), line.end(), kEntry); m != std::sregex_iterator(); ++m) {
    const std::string key = (*m)[1];
    if (key == "loss") step.loss = number(*m);
    if (key == "grad_norm") step.grad_norm = number(*m);
    if (key == "num_input_tokens_seen") step.tokens = positive(number(*m));
    if (key == "train_runtime") since_start_s = positive(number(*m));
    if (std::regex_match(key, kEvaluation)) evaluated_s_ += positive(number(*m)).value_or(0);
  }
  if (since_start_s) step.clock_s = *since_start_s - evaluated_s_;
  if (step.loss) losses_.push_back(step), last_sign_ = place;
}

/// Bars of evaluation and of downloads have other totals. The bar of the training goes on while they come and go.
const std::vector<StepLines::Progress>* StepLines::training_bar() const {
  return bars_.empty() ? nullptr : &bars_.at(training_);
}

namespace {

constexpr double kWindow_s = 30;  // a bar's elapsed time has whole seconds

}  // namespace

std::vector<LoggedStep> StepLines::half_minutes(const std::vector<Progress>& bar) {
  std::vector<LoggedStep> out;
  Progress begin = bar.front();
  for (const Progress& now : bar) {
    if (now.step < begin.step || now.elapsed_s < begin.elapsed_s) begin = now;  // started again
    if (now.step == begin.step || now.elapsed_s - begin.elapsed_s < kWindow_s) continue;
    LoggedStep& step = out.emplace_back(LoggedStep{.step = now.step});
    step.step_s = (now.elapsed_s - begin.elapsed_s) / static_cast<double>(now.step - begin.step);
    step.place = now.place;
    begin = now;
  }
  return out;
}

/// Of each place of the bar: seconds a step over the last half minute.
std::vector<std::optional<double>> StepLines::paces(const std::vector<Progress>& bar) {
  std::vector<std::optional<double>> out(bar.size());
  for (std::size_t i = 1, begin = 0; i < bar.size(); ++i) {
    if (bar[i].step < bar[i - 1].step || bar[i].elapsed_s < bar[i - 1].elapsed_s) begin = i;  // started again
    while (begin + 1 < i && bar[i].elapsed_s - bar[begin + 1].elapsed_s >= kWindow_s) ++begin;
    const double window_s = bar[i].elapsed_s - bar[begin].elapsed_s;
    if (window_s >= kWindow_s && bar[i].step > bar[begin].step)
      out[i] = window_s / static_cast<double>(bar[i].step - bar[begin].step);
  }
  return out;
}

/// A loss is printed over the bar, which is drawn again behind it, at the same step; until then the loss waits. Losses
/// that stand together without a bar between them came late: their steps are not known, and they count as 1, 2, 3.
/// Those behind the end of the bar are left out, unless all are.
std::vector<LoggedStep> StepLines::losses(const std::vector<Progress>* bar) {
  std::vector<LoggedStep> out = losses_;
  const auto pace = bar ? paces(*bar) : std::vector<std::optional<double>>();
  std::ptrdiff_t last = -1;
  counts_losses_ = bar == nullptr;
  for (std::size_t i = 0; i < out.size() && !counts_losses_; ++i) {
    const auto now = std::ranges::upper_bound(*bar, out[i].place, {}, &Progress::place);
    if (now == bar->end() && i > 0 && last < std::ssize(*bar)) {
      out.resize(i);
      break;
    }
    counts_losses_ = now - bar->begin() == last;
    last = now - bar->begin();
    if (now == bar->end()) continue;
    out[i].step = now->step;
    if (!out[i].clock_s) out[i].step_s = pace[static_cast<std::size_t>(last)];
  }
  if (!counts_losses_ && last == std::ssize(*bar)) out.pop_back();
  for (std::size_t i = 0; i < out.size() && counts_losses_; ++i)
    out[i].step = static_cast<std::int64_t>(i) + 1, out[i].step_s.reset(), out[i].clock_s.reset();
  return out;
}

std::vector<LoggedStep> StepLines::end(bool cut, bool losses) {
  std::vector<LoggedStep> out;
  if (const auto block = std::exchange(block_, std::nullopt); block && !cut) out.push_back(*block);
  if (trainer_ || losses_.empty()) return out;
  const std::vector<Progress>* bar = training_bar();
  if (!losses && !bar) return out;
  trainer_ = JobTrainer::hugging_face;
  out = this->losses(bar);
  if (!losses) std::erase_if(out, [](const LoggedStep& step) { return !step.clock_s; });
  return losses || !out.empty() ? out : half_minutes(*bar);
}

std::optional<LoggedStep> StepLines::read(const std::string& bare, const std::string& where, std::int64_t place) {
  using Reader = std::optional<LoggedStep> (StepLines::*)(const std::string&, const std::string&);
  for (const Reader reader : {&StepLines::torchtitan, &StepLines::megatron, &StepLines::nemo, &StepLines::automodel})
    if (auto step = (this->*reader)(bare, where)) return step;
  auto step = composer(bare, where, place);
  if (!trainer_) hugging_face(bare, where, place);
  return step;
}

bool StepLines::starts(const std::string& bare) {
  for (const char* words : {"Training starts at step", "oading checkpoint from", "Resuming training from checkpoint",
                            "training ...", "Starting training", "***** Running training *****"})
    if (bare.find(words) != std::string::npos) return true;
  return false;
}

bool StepLines::ends(const std::string& bare) {
  // torchtitan; Megatron; Lightning, under NeMo; Hugging Face's Trainer
  for (const char* words :
       {"Training completed", "[after training is done]", "`Trainer.fit` stopped:", "{'train_runtime':"})
    if (bare.find(words) != std::string::npos) return true;
  return false;
}

bool StepLines::looks_like_step(const std::string& bare) {
  const auto all = [&](std::initializer_list<const char*> words) {
    return std::ranges::all_of(words, [&](const char* word) { return bare.find(word) != std::string::npos; });
  };
  return all({"step:", "loss:", "memory:"}) || all({"iteration ", "elapsed time per iteration"}) ||
         all({"step ", "| loss ", "| tps "});
}

}  // namespace wt
