#include "planner/job_logs/log_follower.hpp"

#include "configs/base/error.hpp"

namespace wt {

LogFollower::LogFollower(const std::filesystem::path& file)
    : file_(file), lines_(file, "the log of a job: a regular file"), reader_(file) {
  if (const LogFormat format = log_format(file); format != LogFormat::lines)
    throw_usage(
        "{}: found {}, which cannot be followed as it grows; needs standard output of a job, or metrics as JSON lines",
        file.string(), to_string(format));
}

std::vector<std::string> LogFollower::look() {
  std::vector<std::string> out;
  grew_ = false;
  const bool there = lines_.look([&](const std::string& line) { reader_.line(line), grew_ = true; },
                                 [&](GrowingFile::Anew how) {
                                   if (how == GrowingFile::Anew::opened) return;
                                   reader_.goes_on_in_new_file();
                                   out.emplace_back(how == GrowingFile::Anew::truncated
                                                        ? "was truncated; goes on from its beginning"
                                                        : "was replaced by another file; goes on with that one");
                                 });
  if (!there && there_) out.emplace_back("is gone; waits for a new file of that name");
  there_ = there;
  return out;
}

}  // namespace wt
