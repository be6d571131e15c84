"""PyTorch's own reader loads our checkpoints, whatever layout wrote them, into whole tensors and into another sharding.

The argument is the program whose test case writes the checkpoints, and beside them what was in memory.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from safetensors.torch import load_file
from torch.distributed.checkpoint import HuggingFaceStorageReader
from torch.distributed.tensor import DeviceMesh, Shard, distribute_tensor

RANKS = 3  # divides none of the sizes that were written


def same_bits(found, expected):
    return found.shape == expected.shape and torch.equal(found.contiguous().view(-1).view(torch.int32), expected.contiguous().view(-1).view(torch.int32))


def check_whole(checkpoint, expected):
    metadata = HuggingFaceStorageReader(str(checkpoint)).read_metadata()
    sizes = {key: tuple(entry.size) for key, entry in metadata.state_dict_metadata.items()}
    assert sizes == {key: tuple(value.shape) for key, value in expected.items()}, checkpoint
    state = {key: torch.full(size, float("nan")) for key, size in sizes.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(str(checkpoint)), no_dist=True)
    for key, value in expected.items():
        assert same_bits(state[key], value), f"{checkpoint}: {key}"


def check_sharded(rank, folder, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    mesh = DeviceMesh("cpu", list(range(RANKS)))
    expected = load_file(folder / "expected.safetensors")
    for checkpoint in checkpoints(folder):
        for dim in (0, 1):
            wanted = {key: distribute_tensor(value, mesh, [Shard(min(dim, value.dim() - 1))]) if value.dim() else value for key, value in expected.items()}
            state = {key: torch.full_like(value, float("nan")) for key, value in wanted.items()}
            dcp.load(state, storage_reader=HuggingFaceStorageReader(str(checkpoint)))
            for key, value in wanted.items():
                local = [t.to_local() if value.dim() else t for t in (state[key], value)]
                assert same_bits(*local), f"{checkpoint}: {key} over dim {dim}, rank {rank}"
    dist.destroy_process_group()
    os._exit(0)  # as in environment_test.py


def checkpoints(folder):
    return sorted(folder.glob("*/step-*"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.argv[1], "[.reader]"], env={**os.environ, "WT_READER_FOLDER": name}, check=True, stdout=sys.stderr)
        written = checkpoints(folder)
        expected = load_file(folder / "expected.safetensors")
        assert len(written) >= 15 and len(expected) > 200, (written, len(expected))
        for checkpoint in written:
            check_whole(checkpoint, expected)
        mp.spawn(check_sharded, (folder, folder / "store"), nprocs=RANKS)
        print(f"{len(written)} checkpoints of {len(expected)} tensors: whole and over {RANKS} ranks, bit for bit")
