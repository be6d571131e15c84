#include "planner/job_logs/log_follower.hpp"

namespace wt {

LogFollower::LogFollower(const std::filesystem::path& file)
    : lines_(file, "the log of a job: a regular file"), reader_(file) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none) || log_format(file) != LogFormat::lines) whole_.emplace(file);
}

bool LogFollower::look_at_lines(std::vector<std::string>& said) {
  return lines_.look([&](const std::string& line) { reader_.line(line), grew_ = true; },
                     [&](GrowingFile::Anew how) {
                       if (how == GrowingFile::Anew::opened) return;
                       reader_.goes_on_in_new_file();
                       said.emplace_back(how == GrowingFile::Anew::truncated
                                             ? "was truncated; goes on from its beginning"
                                             : "was replaced by another file; goes on with that one");
                     });
}

std::vector<std::string> LogFollower::look() {
  std::vector<std::string> out;
  grew_ = false;
  bool there = true;
  if (whole_)
    there = whole_->look(), grew_ = whole_->grew();
  else
    there = look_at_lines(out);
  if (!there && there_) out.emplace_back("is gone; waits for a new file of that name");
  there_ = there;
  return out;
}

}  // namespace wt
