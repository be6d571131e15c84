// When the ops of a step were issued and done, and how long the compute lane stood still for collectives.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "sim/program/timeline.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/device/step_clock.hpp"

namespace wt {

class StepMarks {
 public:
  /// The clock outlives this.
  explicit StepMarks(StepClock& clock) : clock_(clock) {}
  StepMarks(const StepMarks&) = delete;
  StepMarks& operator=(const StepMarks&) = delete;

  /// Forgets the step before; this one has so many ops.
  void begin(std::size_t ops);
  /// The next op of the timeline, at that place of the program; `work`: its collective, none where it is computation.
  void add(std::size_t index, StepClock::Mark issued, StepClock::Mark done, Pending work);
  /// Until the collective of that op is over, if one is under way. `waiting` is called before.
  void wait_for(std::size_t index, const std::function<void()>& waiting);
  /// The timeline's times, when the device has passed all marks.
  void read(StepClock::Mark end, StepTimeline& timeline) const;

 private:
  struct OpMarks {
    StepClock::Mark issued, done;
  };
  /// The compute lane stood still for the collective of that record.
  struct Waited {
    std::size_t record;
    StepClock::Mark begin, end;
  };
  /// A collective between issue and wait.
  struct InFlight {
    Pending work;
    std::size_t record;
    bool timed = false;  ///< when it was done is known
  };

  StepClock& clock_;
  std::vector<OpMarks> marks_;                        ///< by op of the timeline
  std::vector<std::unique_ptr<InFlight>> in_flight_;  ///< by op of the program
  std::vector<Waited> waits_;
};

}  // namespace wt
