#include "bench/formats/gpu_trace.hpp"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "bench/formats/nsight.hpp"
#include "bench/formats/unpacked.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"

namespace wt {
namespace {

constexpr std::uintmax_t kMostTrace = std::uintmax_t{2} << 30;
constexpr const char* kMark = "ProfilerStep#";

std::optional<std::int64_t> whole_at(const nlohmann::json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) return std::nullopt;
  return object[key].get<std::int64_t>();
}

bool is_mark(const nlohmann::json& event) {
  return text_at(event, "cat") == "user_annotation" && text_at(event, "name").starts_with(kMark);
}

/// Parses a trace and keeps its GPU work and marks, and of the rest a few numbers of the job. nlohmann's parser looks
/// through an object or list again after each object in it, so that both are kept short.
class TraceFilter {
 public:
  explicit TraceFilter(const std::filesystem::path& file) : file_(file) {}

  nlohmann::json parse(const std::string& text) {
    const auto keep = [this](int depth, At at, nlohmann::json& value) { return keeps(depth, at, value); };
    nlohmann::json document = nlohmann::json::parse(text.begin(), text.end(), keep, /*allow_exceptions=*/false);
    if (document.is_object() && document.contains("traceEvents") && document["traceEvents"].is_array())
      for (nlohmann::json& event : events_) document["traceEvents"].push_back(std::move(event));
    return document;
  }

 private:
  using At = nlohmann::json::parse_event_t;
  static constexpr int kEvent = 2;   ///< depth: the document, traceEvents, an event
  static constexpr int kMost = 100;  ///< objects in an event, objects and numbers beside the events

  bool keeps(int depth, At at, nlohmann::json& value) {
    if (at == At::key) return true;
    if (at == At::object_start && depth == kEvent) {
      in_event_ = true, inner_ = 0;
    } else if (at == At::object_start) {
      const int objects = depth < kEvent ? ++outer_ : in_event_ ? ++inner_ : 0;
      if (objects > kMost)
        throw_usage("{}: found more than {} objects in one event or beside the events, needs a trace", file_.string(),
                    kMost);
    } else if (at == At::object_end && depth == kEvent) {
      in_event_ = false;
      if (is_gpu_work(value) || is_mark(value)) events_.push_back(std::move(value));
      return false;
    }
    if (at == At::value && depth == kEvent) return ++numbers_ <= kMost;
    return in_event_ || depth < kEvent;
  }

  const std::filesystem::path& file_;
  std::vector<nlohmann::json> events_;
  bool in_event_ = false;
  int outer_ = 0, inner_ = 0, numbers_ = 0;
};

/// What it is called in the report: nothing but letters that can be printed.
std::string printable(std::string name) {
  std::erase_if(name, [](char c) { return c < ' ' || c > '~'; });
  return name.substr(0, 60);
}

/// As PyTorch names collectives: "all_gather".
bool is_word(const std::string& name) {
  constexpr std::size_t kLongest = 40;
  return !name.empty() && name.size() <= kLongest &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
}

/// Of a process group, as text or as a list; "" where there are none.
std::string ranks_in(const nlohmann::json& args) {
  const nlohmann::json ranks =
      args.is_object() ? args.value("Process Group Ranks", nlohmann::json()) : nlohmann::json();
  if (ranks.is_array() && !ranks.empty()) return ranks.dump();
  return ranks.is_string() && ranks != "[]" ? ranks.get<std::string>() : "";
}

void name_collective(GpuWork& work, const nlohmann::json& event) {
  const nlohmann::json args = event.value("args", nlohmann::json::object());
  const std::string collective = text_at(args, "Collective name"), name = text_at(args, "Process Group Name");
  std::string group = printable(text_at(args, "Process Group Description"));
  if (group.empty()) group = printable(name);
  if (is_word(collective)) group += (group.empty() ? "" : ", ") + collective;
  work.group = group.empty() ? collective_of_kernel(text_at(event, "name")) : group;
  const bool pair = collective.find("send") != std::string::npos || collective.find("recv") != std::string::npos;
  const std::string ranks = ranks_in(args);
  if (collective.empty() || name.empty() || ranks.empty() || pair) return;
  work.among = name + " " + ranks + " " + collective;
  work.number = whole_at(args, "Seq");
}

}  // namespace

std::string collective_of_kernel(const std::string& name) {
  for (const char* const what : {"AllGather", "AllReduce", "ReduceScatter", "Broadcast", "Reduce", "SendRecv"})
    if (name.find(std::string("Kernel_") + what) != std::string::npos) return what;
  return "not named";
}

GpuTrace gpu_trace(const nlohmann::json& document, const std::string& origin) {
  const KinetoTrace kernels = from_kineto(document, origin);  // what cannot be read is refused there
  GpuTrace out;
  for (const auto& event : document.at("traceEvents")) {
    const std::string name = text_at(event, "name");
    if (std::int64_t number = 0; is_mark(event)) {
      const char* const digits = name.c_str() + std::string_view(kMark).size();
      if (std::from_chars(digits, name.c_str() + name.size(), number).ec == std::errc()) out.marks.insert(number);
    }
    const auto found = kernels.kernels.find(name);
    if (text_at(event, "ph") != "X" || found == kernels.kernels.end() || !is_gpu_work(event)) continue;
    const double begin_us = event.at("ts").get<double>();
    GpuWork work{1e-6 * begin_us, 1e-6 * (begin_us + event.at("dur").get<double>()), found->second.kind};
    if (work.kind == KernelClass::collective) name_collective(work, event);
    out.work.push_back(std::move(work));
  }
  if (document.contains("distributedInfo")) {
    out.rank = whole_at(document["distributedInfo"], "rank");
    out.ranks = whole_at(document["distributedInfo"], "world_size");
  }
  return out;
}

GpuTrace read_gpu_trace(const std::filesystem::path& file) {
  if (is_sqlite(file)) return read_nsight(file);
  if (const std::string kind = file.extension().string(); kind == ".nsys-rep" || kind == ".qdrep")
    throw_usage("{}: found a report of Nsight Systems, needs its export: nsys export --type sqlite", file.string());
  const std::string text = read_unpacked(file, "a trace", kMostTrace);
  if (too_deep(text)) throw_usage("{}: found {}, needs a JSON trace", file.string(), why_discarded(text));
  const nlohmann::json document = TraceFilter(file).parse(text);
  if (document.is_discarded())
    throw_usage("{}: found text that is no JSON, or cut; needs a whole trace", file.string());
  return gpu_trace(document, file.string());
}

}  // namespace wt
