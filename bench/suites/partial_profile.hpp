// What an interrupted bench has measured, in OUTPUT.partial (a profile like any other), and whether a later one may go
// on from there.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

class PartialProfile {
 public:
  /// `facts`: fingerprint of this bench as it starts. Takes what OUTPUT.partial has where its machine, software,
  /// commit, run, seed and sizes are the same; else starts anew. Both are said on stderr. An empty `output`: nothing is
  /// kept.
  PartialProfile(const std::filesystem::path& output, std::map<std::string, std::string> facts);

  const std::filesystem::path& file() const { return file_; }
  /// What was measured so far, here or before.
  const Profile& profile() const { return profile_; }
  /// The kernel suite's measurements so far, in place of what there was of them.
  void put_kernels(const Profile& kernels);
  /// All rows, to which the ranks of a suite have added.
  void put(Profile all);
  /// Every row of this suite of several processes, "storage-4", was measured: the file says so.
  void set_done(const std::string& suite);
  /// Here, or in the bench before.
  bool done(const std::string& suite) const;
  void add_facts(const std::map<std::string, std::string>& facts);
  /// The profile as it is to be written; the file is removed.
  Profile finish();

 private:
  void save() const;

  std::filesystem::path file_;
  Profile profile_;  ///< kernels first
  std::size_t kernels_ = 0;
};

}  // namespace wt
