"""TensorBoard's own reader reads our event files; steps that a restart has done again are there once, as done last.

The argument is the program that sends lines to trackers.
"""

import sys
import tempfile
from pathlib import Path

from tracked import lines, track

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("SKIPPED: no tensorboard")
    sys.exit(77)

NAME = "loss/train/loss"


def read(folder):
    reader = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    return reader


with tempfile.TemporaryDirectory() as name:
    top = Path(name)
    loggers = {"tensorboard": {"log_dir": str(top / "logs")}}
    track(sys.argv[1], top / "run", loggers, lines(1, 5))
    reader = read(top / "logs" / "tracked")
    scalars = reader.Scalars(NAME)
    assert [s.step for s in scalars] == [1, 2, 3, 4, 5], scalars
    assert [s.value for s in scalars] == [9, 8, 7, 6, 5], scalars
    assert [s.wall_time for s in scalars] == [1001, 1002, 1003, 1004, 1005], scalars
    assert reader.Scalars("loss/train/total")[0].value == 9.5
    for tag in ["l2_norm/grad/global", "lr-AdamW/group0", "throughput/tokens_per_sec", "time/batch", "memory/peak_allocated_mem"]:
        assert len(reader.Scalars(tag)) == 5, (tag, reader.Tags())
    text = [tag for tag in reader.Tags()["tensors"] if tag.startswith("run_file")]
    assert len(text) == 1, reader.Tags()
    shown = reader.Tensors(text[0])[0].tensor_proto.string_val[0].decode()
    assert "max_duration: 9ba" in shown, shown
    assert reader.summary_metadata[text[0]].plugin_data.plugin_name == "text"

    # A restart goes back to step 3 and does steps 4 and 5 again, with other losses.
    track(sys.argv[1], top / "run", loggers, lines(4, 7, shift=0.5), done=3)
    scalars = read(top / "logs" / "tracked").Scalars(NAME)
    assert [(s.step, s.value) for s in scalars] == [(1, 9), (2, 8), (3, 7), (4, 6.5), (5, 5.5), (6, 4.5), (7, 3.5)], scalars

    # A loss that was no number stays none.
    broken = lines(8, 8)
    broken[0]["loss"] = None
    track(sys.argv[1], top / "run", loggers, broken, done=7)
    last = read(top / "logs" / "tracked").Scalars(NAME)[-1]
    assert last.step == 8 and last.value != last.value, last

    # Scores have a folder beside the run's; those of the same step are there once.
    for value in (0.5, 0.75):
        track(sys.argv[1], top / "run", loggers, [{"name": "lm_eval/arc/0-shot/acc", "value": value}], done=8, how="scores")
    scores = read(top / "logs" / "tracked_evaluation").Scalars("lm_eval/arc/0-shot/acc")
    assert [(s.step, s.value) for s in scores] == [(8, 0.75)], scores
    assert read(top / "logs" / "tracked").Scalars(NAME)[-1].step == 8

    # A folder that cannot be made: the run goes on, and hears of it.
    (top / "file").write_text("")
    said = track(sys.argv[1], top / "run", {"tensorboard": {"log_dir": str(top / "file" / "logs")}}, lines(1, 2), end_s=0.2)
    assert "2 not" in said, said
print("TensorBoard reads what was written")
