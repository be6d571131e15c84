#include "planner/job_logs/reread_log.hpp"

#include <cmath>

#include "configs/base/error.hpp"

namespace wt {
namespace {

bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a == b || (a && b && std::isnan(*a) && std::isnan(*b));
}

}  // namespace

RereadLog::Stamp RereadLog::stamp() const {
  Stamp out;
  for (const std::filesystem::path& file : files_of_log(path_)) {
    std::error_code no_size, no_time;
    const auto size = std::filesystem::file_size(file, no_size);
    const auto time = std::filesystem::last_write_time(file, no_time);
    if (!no_size && !no_time) out.emplace(file, std::pair{size, time});
  }
  return out;
}

bool RereadLog::look() {
  grew_ = false;
  const Stamp now = stamp();
  if (now.empty()) return false;
  if (now == read_) {
    if (error_) throw_usage("{}", *error_);
    return true;
  }
  read_ = now, error_ = {};
  try {
    take(read_growing_log(path_));
    read_any_ = true;
  } catch (const Error& e) {
    if (!read_any_) throw;
    error_ = e.what();
  }
  return true;
}

void RereadLog::take(JobLog log) {
  std::map<std::int64_t, const LoggedStep*> before;
  for (const LoggedStep& step : log_.steps) before.emplace(step.step, &step);
  log.places = log_.places;
  for (LoggedStep& step : log.steps) {
    const auto found = before.find(step.step);
    const bool known = found != before.end() && same(found->second->loss, step.loss);
    step.place = known ? found->second->place : ++log.places;
  }
  grew_ = log.places > log_.places;
  log_ = std::move(log);
}

}  // namespace wt
