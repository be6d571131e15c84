#include "trainer/executor/step_marks.hpp"

#include "trainer/pch.hpp"

namespace wt {

void StepMarks::begin(std::size_t ops) {
  in_flight_.clear();
  in_flight_.resize(ops);
  marks_.clear(), waits_.clear();
}

void StepMarks::add(std::size_t index, StepClock::Mark issued, StepClock::Mark done, Pending work) {
  const auto on_lane = work ? work->marks() : std::nullopt;
  marks_.push_back(on_lane ? OpMarks{on_lane->begin, on_lane->end} : OpMarks{issued, done});
  if (work)
    in_flight_[index] = std::make_unique<InFlight>(InFlight{std::move(work), marks_.size() - 1, on_lane.has_value()});
  for (auto& flight : in_flight_)  // when a collective was over, as closely as op boundaries tell
    if (flight && !flight->timed && flight->work->done()) {
      flight->timed = true;
      marks_[flight->record].done = clock_.mark();
    }
}

void StepMarks::wait_for(std::size_t index, const std::function<void()>& waiting) {
  InFlight* flight = in_flight_[index].get();
  if (!flight) return;
  Waited waited{flight->record, clock_.mark(), 0};
  waiting();
  flight->work->wait();
  waited.end = clock_.mark();
  waits_.push_back(waited);
  if (!flight->timed) marks_[flight->record].done = waited.end;
  in_flight_[index].reset();
}

void StepMarks::read(StepClock::Mark end, StepTimeline& t) const {
  t.step_s = clock_.seconds(end);
  for (std::size_t i = 0; i < t.ops.size(); ++i)
    t.ops[i].issued_s = clock_.seconds(marks_[i].issued), t.ops[i].done_s = clock_.seconds(marks_[i].done);
  for (const Waited& waited : waits_) {
    const double seconds = clock_.seconds(waited.end) - clock_.seconds(waited.begin);
    t.ops[waited.record].waited_s += seconds;
    t.exposed_s += seconds;
  }
}

}  // namespace wt
