"""Makes tests/data/job_logs/run.wandb: an offline run of Weights & Biases with torchtitan's names, without what the host is.

  pip install wandb==0.31.0; wandb_log.py FILE"""

import shutil
import sys
import tempfile
from pathlib import Path

import wandb

with tempfile.TemporaryDirectory() as folder:
    settings = wandb.Settings(mode="offline", console="off", disable_git=True, disable_code=True, disable_job_creation=True, save_code=False,
                              x_disable_meta=True, x_disable_stats=True, x_disable_machine_info=True, host="host", username="user",
                              program="train.py", root_dir=folder, run_id="run", silent=True)
    run = wandb.init(project="project", dir=folder, settings=settings)
    for i in range(1, 21):
        run.log({"loss_metrics/global_avg_loss": 7 - i / 16, "throughput(tps)": 6000 + 10 * i, "mfu(%)": 32.5, "time_metrics/data_loading(%)": 0.5,
                 "memory/max_reserved(GiB)": 61.25, "note": "x" * 900, "nested": {"value": i}, "never": float("nan")}, step=10 * i)
    run.finish()
    wandb.teardown()  # waits until everything is written
    [file] = Path(folder).rglob("run-*.wandb")
    shutil.copy(file, sys.argv[1])
