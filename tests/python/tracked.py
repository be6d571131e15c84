"""What the tests of trackers share: a run file with loggers, lines of metrics, and the program that sends them."""

import json
import os
import subprocess

RUN = {
    "run_name": "tracked",
    "model": {"name": "m", "n_layers": 2, "d_model": 64, "n_heads": 4, "vocab_size": 99, "ffn_config": {"ffn_hidden_size": 96}},
    "max_duration": "9ba",
    "max_seq_len": 16,
    "global_train_batch_size": 4,
    "device_train_microbatch_size": 1,
}


def lines(first, last, shift=0.0):
    """Lines of metrics.jsonl: the loss of a step is 10 - step + shift."""
    return [{"step": step, "loss": 10 - step + shift, "aux_loss": 0.5, "z_loss": 0.0, "grad_norm": 1.0, "lr": 0.001, "step_s": 0.25,
             "tokens_per_s": 256.0, "exposed_communication_s": 0.125, "peak_tensor_bytes": 1e6, "resident_bytes": 2e6,
             "unix_s": 1000.0 + step, "samples": [1, 2, 3, 4]} for step in range(first, last + 1)]


def track(program, folder, loggers, rows, done=0, how="finished", end_s=60, pause_ms=0, environment=None, **changed):
    """Returns what the program said on both streams; its status must be 0. A program that does not end fails the test."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text(json.dumps({**RUN, "loggers": loggers, **changed}))
    (folder / "sent.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_") and "proxy" not in key.lower()}
    ended = subprocess.run([program, folder / "run.yaml", folder, str(done), folder / "sent.jsonl", how, str(end_s), str(pause_ms)],
                           capture_output=True, text=True, timeout=300, env={**clean, **(environment or {})})
    assert ended.returncode == 0, ended
    assert "trained on" in ended.stdout, ended
    return ended.stdout + ended.stderr
