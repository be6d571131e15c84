// What a run file needs to be trained, beyond what read_run checks, and the microbatch that fits.
#pragma once
#include <filesystem>
#include <string>

#include "configs/files/run.hpp"

namespace wt {

/// What the trainer's segments and kernels take of the models that can be described. Throws Error{usage}.
void check_model(const RunSpec& run, const std::string& where);

/// The run file by path or name, checked, its microbatch found where the file leaves it open. On GPUs the ranks find
/// it, each on its own device: a process that starts them must not open one before they do. Throws Error{usage}.
RunSpec read_trainable(const std::string& run_file, const std::filesystem::path& folder);

/// Throws Error{usage} where checkpoints would be uploaded onto themselves.
void check_save_folder(const std::string& address, const std::filesystem::path& output);

}  // namespace wt
