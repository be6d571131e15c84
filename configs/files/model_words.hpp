// A model in words, so that a reader can check what was read of a file.
#pragma once
#include <string>

#include "configs/files/model.hpp"

namespace wt {

/// Parameters: "8.19B", or with experts "46.7B, 12.88B active".
std::string parameters_text(const ModelSpec& model);
/// "mixtral-8x7b: 46.7B parameters, 12.88B active", then a line for each approximation. Ends with a newline.
std::string model_lines(const ModelSpec& model);
/// The approximations in one text; "" if there are none.
std::string approximations_text(const ModelSpec& model);

}  // namespace wt
