// TensorBoard's event files, events.out.tfevents.*: scalars that trainers log, by tag and step. Their format stands in
// trainer/trackers/event_records.hpp.
#pragma once
#include <string_view>

#include "planner/job_logs/metric_files.hpp"

namespace wt {

/// Whether a file that begins with these bytes, 12 at least, is one: a length with the right checksum.
bool is_event_file(std::string_view begin);

/// Scalars as simple values and as tensors of one float. Events of one step in sequence are one row. Throws
/// Error{usage} for bytes with another checksum than theirs.
MetricRecords event_file_steps(std::string_view bytes, const std::string& origin, MetricSteps& metrics);

}  // namespace wt
