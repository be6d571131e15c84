"""A run whose data, checkpoints, weights and export are in a bucket (moto's server): its machine is gone after some steps, another one
goes on, and every loss is that of a run on local folders, bit for bit."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from storage_server import MotoServer

TRAIN, WINDTUNNEL = os.environ["WINDTUNNEL_TRAIN"], os.environ["WINDTUNNEL"]
BUCKET, STEPS, SAVED_EVERY = "wt-training", 12, 4
RUN = """run_name: bucket
max_duration: {steps}ba
max_seq_len: 32
global_train_batch_size: 8
device_train_microbatch_size: 2
precision: fp32
model:
  name: bucket
  n_layers: 2
  d_model: 32
  n_heads: 4
  vocab_size: 257
  attn_config: {{kv_n_heads: 2}}
  ffn_config: {{ffn_hidden_size: 48, moe_num_experts: 4, moe_top_k: 2}}
fsdp_config: {{data_parallel_shard_degree: 2, expert_parallel_degree: 2}}
optimizer: {{name: adamw, lr: 0.002}}
scheduler: {{name: cosine_with_warmup, t_warmup: 0ba, alpha_f: 1}}
train_loader: {{dataset: {{{data}}}}}
save_interval: {saved_every}ba
{more}
"""


def run_file(path, data, more="", steps=STEPS):
    path.write_text(RUN.format(steps=steps, saved_every=SAVED_EVERY, data=data, more=more))
    return path


def train(run, folder, environment, expected=0):
    done = subprocess.run([TRAIN, "train", run, "-o", folder], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def losses(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1)), lines
    return [(line["loss"], line["samples"]) for line in lines]


def names(s3, prefix):
    found = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return sorted(entry["Key"][len(prefix):] for page in found for entry in page.get("Contents", []))


def main():
    with tempfile.TemporaryDirectory() as scratch, MotoServer(enforced=True) as server:
        scratch = Path(scratch)
        key, secret = server.make_user(BUCKET)
        s3 = server.client("s3", key, secret)
        environment = dict(os.environ, S3_ENDPOINT_URL=server.url, AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret,
                           AWS_EC2_METADATA_DISABLED="true", HOME=str(scratch))
        data = scratch / "data"
        subprocess.run([WINDTUNNEL, "data", "pack", "--text", "LICENSE", "-o", data, "--seq-len", "32"], check=True, capture_output=True)
        for file in data.rglob("*"):
            if file.is_file():
                s3.upload_file(str(file), BUCKET, f"text/{file.relative_to(data)}")

        local = scratch / "local"
        train(run_file(scratch / "local.yaml", f"local: {data}"), local, environment)

        remote = f"remote: s3://{BUCKET}/text, local: {{cache}}"
        more = f"save_folder: s3://{BUCKET}/run\nsave_num_checkpoints_to_keep: 1\n" \
               f"callbacks: {{hf_checkpointer: {{save_folder: s3://{BUCKET}/export}}}}\n"
        first, second = scratch / "first", scratch / "second"
        # The first machine has done 8 of 12 steps when it is taken away.
        said = train(run_file(scratch / "first.yaml", remote.format(cache=scratch / "cache-1"), more, steps=8), first, environment)
        assert losses(first) == losses(local)[:8], "samples from a bucket are those of a folder"
        assert names(s3, "run/") == ["latest", *(f"results/{n}" for n in sorted(
            ["checkpoints.jsonl", "generations.jsonl", "metrics.jsonl", "profile.json", "run.yaml", "summary.json"])),
            *(f"step-00000008/{n}" for n in sorted(p.name for p in (first / "checkpoints" / "step-00000008").iterdir()))], names(s3, "run/")
        assert any(n.endswith("model.safetensors") or n.endswith("tokenizer.json") or n == "config.json" for n in names(s3, "export/"))
        shutil.rmtree(first)
        shutil.rmtree(scratch / "cache-1")
        # Another one, with nothing.
        again = run_file(scratch / "second.yaml", remote.format(cache=scratch / "cache-2"), more)
        said += train(again, second, environment)
        assert "fetched step-00000008 from s3://" in said, said
        assert losses(second) == losses(local), "losses of both machines together"
        assert names(s3, "run/step-")[0].startswith("00000012/") and len({n.split("/")[0] for n in names(s3, "run/step-")}) == 1
        assert (second / "checkpoints").is_dir()
        assert (json.loads((second / "checkpoints/step-00000012/manifest.json").read_text())["step"]) == STEPS

        # What an upload failed to bring there, the same command brings.
        s3.delete_object(Bucket=BUCKET, Key="run/step-00000012/manifest.json")
        said += train(again, second, environment)
        assert "nothing to do" in said and "step-00000012/manifest.json" in names(s3, "run/"), said

        # What is damaged here comes from there.
        damaged = next((second / "checkpoints/step-00000012").glob("*.safetensors"))
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
        told = train(again, second, environment)
        said += told
        assert "fetched step-00000012 from s3://" in told and "continuing after step 12" in told, told
        assert (second / "checkpoints/step-00000012.unreadable").is_dir()

        # A run that starts from the export.
        third = run_file(scratch / "third.yaml", f"local: {data}", f"load_path: s3://{BUCKET}/export\n", steps=2)
        train(third, scratch / "third", environment)
        assert losses(scratch / "third")[0][0] < losses(local)[0][0], "it goes on from trained weights"

        # A checkpoint with a hole is none; the run goes on from what is whole, or says why it cannot.
        shard = next(n for n in names(s3, "run/") if n.endswith(".safetensors"))
        s3.delete_object(Bucket=BUCKET, Key="run/" + shard)
        said = train(again, scratch / "fourth", environment, expected=2)
        assert "none that is whole" in said and f"s3://{BUCKET}/run" in said, said

        # Nothing that may not be there: secrets in what was said or written.
        written = "".join(p.read_text(errors="replace") for p in scratch.rglob("*") if p.is_file() and p.suffix in (".json", ".jsonl", ".yaml"))
        assert secret not in said + written and key not in written


if __name__ == "__main__":
    main()
