// Results of an interrupted bench in OUTPUT.partial (a normal profile), and whether a later bench may continue from
// them.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

class PartialProfile {
 public:
  /// `facts`: fingerprint of this bench at its start. Continues from OUTPUT.partial if its machine, software, commit,
  /// run, seed and sizes are the same, otherwise starts over; either is reported on stderr. An empty `output`: nothing
  /// is saved.
  PartialProfile(const std::filesystem::path& output, std::map<std::string, std::string> facts);

  const std::filesystem::path& file() const { return file_; }
  /// Results so far, of this bench and earlier ones.
  const Profile& profile() const { return profile_; }
  /// Replaces the kernel suite's measurements.
  void put_kernels(const Profile& kernels);
  /// Replaces the profile by one to which ranks of a suite have added rows.
  void put(Profile all);
  /// Marks a suite of several processes ("storage-4") as finished, in the file as well.
  void set_done(const std::string& suite);
  /// Whether it is finished, in this bench or an earlier one.
  bool done(const std::string& suite) const;
  void add_facts(const std::map<std::string, std::string>& facts);
  /// Returns the final profile and removes the file.
  Profile finish();

 private:
  void save() const;

  std::filesystem::path file_;
  Profile profile_;  ///< the kernel suite's measurements first
  std::size_t kernels_ = 0;
};

}  // namespace wt
