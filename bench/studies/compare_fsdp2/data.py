"""Token samples from the MDS shards that `windtunnel data pack` writes."""

import json
from pathlib import Path

import numpy
import torch


def read_tokens(folder):
    """(samples, tokens) int64: every sample of the dataset in index order; all must be equally long."""
    samples = []
    for shard in json.loads((Path(folder) / "index.json").read_text())["shards"]:
        if shard["column_encodings"] != ["ndarray:uint16"]:
            raise ValueError(f"{folder}: columns {shard['column_encodings']}, allowed is one ndarray:uint16; pack it with windtunnel data pack")
        data = (Path(folder) / shard["raw_data"]["basename"]).read_bytes()
        count = int.from_bytes(data[:4], "little")
        begins = numpy.frombuffer(data, "<u4", count + 1, offset=4)
        for begin, end in zip(begins[:-1], begins[1:]):
            width = 1 << (data[begin + 4] & 3)  # u32 length, then a byte: dimensions << 2 | log2(bytes of a dimension)
            samples.append(numpy.frombuffer(data[begin + 5 + width : end], "<u2"))
    return torch.from_numpy(numpy.stack(samples).astype(numpy.int64))
