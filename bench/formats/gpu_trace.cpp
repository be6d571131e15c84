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

/// What it is called in the report: nothing but letters that can be printed.
std::string printable(std::string name) {
  std::erase_if(name, [](char c) { return c < ' ' || c > '~'; });
  return name.substr(0, 60);
}

void name_collective(GpuWork& work, const nlohmann::json& event) {
  const nlohmann::json args = event.value("args", nlohmann::json::object());
  const std::string collective = text_at(args, "Collective name"), name = text_at(args, "Process Group Name");
  std::string group = text_at(args, "Process Group Description");
  if (group.empty()) group = name;
  if (!collective.empty()) group += (group.empty() ? "" : ", ") + collective;
  work.group = group.empty() ? collective_of_kernel(text_at(event, "name")) : printable(group);
  const bool pair = collective.find("send") != std::string::npos || collective.find("recv") != std::string::npos;
  if (collective.empty() || name.empty() || pair) return;
  work.among = name + " " + text_at(args, "Process Group Ranks") + " " + collective;
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
  constexpr int kEvents = 2;  // depth: the document, traceEvents, an event
  const auto keep = [](int depth, nlohmann::json::parse_event_t at, const nlohmann::json& value) {
    return at != nlohmann::json::parse_event_t::object_end || depth != kEvents || !value.contains("ph") ||
           is_gpu_work(value) || is_mark(value);
  };
  if (too_deep(text)) throw_usage("{}: found {}, needs a JSON trace", file.string(), why_discarded(text));
  const auto document = nlohmann::json::parse(text.begin(), text.end(), keep, /*allow_exceptions=*/false);
  if (document.is_discarded())
    throw_usage("{}: found text that is no JSON, or cut; needs a whole trace", file.string());
  return gpu_trace(document, file.string());
}

}  // namespace wt
