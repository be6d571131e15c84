"""Makes the logs of Hugging Face's Trainer under tests/data/job_logs/hugging_face: a small Llama on the CPU, one thread, random tokens.

  hugging_face_log.py FOLDER    writes trainer_state.json, stdout.log, events.out.tfevents.0 and versions.json there

tests/data/job_logs/hugging_face was made by it in the environment of cmake/python-environment.sh."""

import contextlib
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import tensorboard
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

SEQ, BATCH, STEPS = 256, 8, 40
MODEL = dict(vocab_size=1024, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, intermediate_size=688,
             max_position_embeddings=SEQ, tie_word_embeddings=False)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, i):
        tokens = torch.randint(0, MODEL["vocab_size"], (SEQ,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": tokens, "labels": tokens}


def train(folder):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    args = TrainingArguments(output_dir="out", logging_dir="events", per_device_train_batch_size=BATCH, max_steps=STEPS, logging_steps=1,
                             eval_strategy="steps", eval_steps=10, per_device_eval_batch_size=BATCH, save_strategy="no",
                             include_num_input_tokens_seen="all", report_to=["tensorboard"], use_cpu=True, dataloader_num_workers=0)
    tokens = Tokens()
    trainer = Trainer(LlamaForCausalLM(LlamaConfig(**MODEL)), args, train_dataset=tokens,
                      eval_dataset=torch.utils.data.Subset(tokens, range(2 * BATCH)))
    with open(folder / "stdout.log", "w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        trainer.train()
    trainer.save_state()


def main():
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        train(folder)
        shutil.copy("out/trainer_state.json", folder)
        [events] = Path("events").glob("events.out.tfevents.*")
        shutil.copy(events, folder / "events.out.tfevents.0")
    versions = {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__,
                "tensorboard": tensorboard.__version__}
    (folder / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


main()
