"""Makes the logs of Composer (LLM Foundry's trainer) under tests/data/job_logs/composer: a small Llama on the CPU, random tokens.

  composer_log.py FOLDER    writes stderr.log, events/ and versions.json there

Needs mosaicml, torchmetrics and coolname, in the versions of tests/data/job_logs/composer/versions.json, beside the environment of
cmake/python-environment.sh."""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

from absent_packages import AbsentPackages

AbsentPackages("mcli", "gql", "wandb", "mlflow", "comet_ml", "neptune", "datasets", "einops", "megablocks", "deepspeed", "flash_attn",
               "transformer_engine", "slack_sdk", "oci", "databricks", "bs4")

import composer
import tensorboard
import torch
import transformers
from composer.callbacks import SpeedMonitor
from composer.core import DataSpec
from composer.loggers import ConsoleLogger, TensorboardLogger
from transformers import LlamaConfig, LlamaForCausalLM

SEQ, BATCH, STEPS = 128, 8, 30
MODEL = dict(vocab_size=1024, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, intermediate_size=688,
             max_position_embeddings=SEQ, tie_word_embeddings=False)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, i):
        return torch.randint(0, MODEL["vocab_size"], (SEQ,), generator=torch.Generator().manual_seed(i))


class Llama(composer.ComposerModel):
    def __init__(self):
        super().__init__()
        self.model = LlamaForCausalLM(LlamaConfig(**MODEL))

    def forward(self, batch):
        return self.model(input_ids=batch, labels=batch)

    def loss(self, outputs, batch):
        return outputs.loss


def train(folder):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # they name folders of this machine
    data = DataSpec(torch.utils.data.DataLoader(Tokens(), batch_size=BATCH), get_num_tokens_in_batch=lambda batch: batch.numel(),
                    get_num_samples_in_batch=lambda batch: batch.shape[0])
    with open(folder / "stderr.log", "w") as log, contextlib.redirect_stderr(log):
        trainer = composer.Trainer(model=Llama(), train_dataloader=data, max_duration=f"{STEPS}ba", device="cpu", progress_bar=False,
                                   log_to_console=False, callbacks=[SpeedMonitor(window_size=5)], auto_log_hparams=False, run_name="run",
                                   loggers=[ConsoleLogger(log_interval="1ba", stream=log), TensorboardLogger(log_dir="events", flush_interval=10)])
        trainer.fit()
        trainer.close()


def main():
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        train(folder)
        (folder / "events").mkdir(exist_ok=True)
        for i, events in enumerate(sorted(Path("events").rglob("events.out.tfevents.*"))):  # a new one with every flush
            shutil.copy(events, folder / "events" / f"events.out.tfevents.{i}")
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "mosaicml": composer.__version__,
                "tensorboard": tensorboard.__version__}
    (folder / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


main()
