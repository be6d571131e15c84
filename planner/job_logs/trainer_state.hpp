// trainer_state.json of Hugging Face's Trainer, also by way of TRL: what it logged, in every checkpoint's folder.
//
// A logged step has no time of its own. Only with include_num_input_tokens_seen it says the seconds since the start.
#pragma once
#include <string>

#include "planner/job_logs/metric_files.hpp"

namespace wt {

/// Whether a line has the key of such a file that no other has.
bool is_trainer_state_line(const std::string& line);

/// Steps of log_history, read under the names that the Trainer gives them in TensorBoard. Throws Error{usage} for other
/// text than a whole file, and for a history without times.
PlacedSteps trainer_state_steps(const std::string& text, const std::string& origin, MetricSteps& metrics);

}  // namespace wt
