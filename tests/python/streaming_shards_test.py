"""Data sets that mosaicml-streaming writes are read token for token, and ours by its StreamingDataset: every compression, hash and
column, merged in subfolders, from a local folder and through a cache.

The environment variable TOKEN_FILE names the program token_file.
"""

import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from streaming import MDSWriter, StreamingDataset
from streaming.base.compression import get_compressions
from streaming.base.hashing import get_hashes
from streaming.base.util import clean_stale_shared_memory, merge_index

PROGRAM = os.environ["TOKEN_FILE"]


def token_file(*words, lines=None, fails=None):
    done = subprocess.run([PROGRAM, *map(str, words)], input=lines, capture_output=True, text=True, check=False)
    if fails is None:
        assert done.returncode == 0, done.stderr
        return [list(map(int, line.split())) for line in done.stdout.splitlines()]
    assert done.returncode != 0 and fails in done.stderr, (done.returncode, fails, done.stderr)
    return None


def samples(rng, count, dtype):
    most = min(np.iinfo(dtype).max, 60000)
    return [[rng.randrange(most + 1) if rng.random() < 0.2 else 3 for _ in range(rng.randrange(1, 400))] for _ in range(count)]


def write(folder, rows, dtype, encoding, **kwargs):
    columns = {"tokens": encoding, "id": "str", "n": "int"}
    with MDSWriter(out=str(folder), columns=columns, **kwargs) as out:
        for i, row in enumerate(rows):
            tokens = np.array(row, np.int64).tobytes() if encoding == "bytes" else np.array(row, dtype)
            out.write({"tokens": tokens, "id": "document %d" % i, "n": i})


def streamed(folder):
    clean_stale_shared_memory()
    data = StreamingDataset(local=str(folder), shuffle=False, batch_size=1)
    return [data[i]["tokens"].tolist() for i in range(len(data))]


def main():
    logging.disable(logging.WARNING)
    rng = random.Random(11)
    hashes = sorted(get_hashes())
    # A level of each family and the default.
    compressions = [None] + sorted(c for c in get_compressions() if ":" not in c) + ["zstd:1", "zstd:19", "gz:1", "br:4", "bz2:1"]
    encodings = [("ndarray:uint16", np.uint16), ("ndarray:int32", np.int32), ("ndarray", np.int64), ("bytes", np.int64)]
    with tempfile.TemporaryDirectory() as root:
        root = Path(root)
        for number, compression in enumerate(compressions):
            encoding, dtype = encodings[number % len(encodings)]
            # Hashes by threes, so that every one is met; the last ones with the last compressions.
            chosen = sorted(set(hashes[(3 * number + i) % len(hashes)] for i in range(3)))
            folder, rows = root / ("theirs%d" % number), []
            for part in range(3):
                part_rows = samples(rng, rng.randrange(5, 40), dtype)
                write(folder / str(part), part_rows, dtype, encoding, compression=compression, hashes=chosen, size_limit=rng.choice([4000, 20000]))
                rows += part_rows
            merge_index(str(folder))
            theirs = (folder / "index.json").read_bytes()
            # Downloads are compared with a hash of the index whether it is asked for or not.
            assert token_file("read", root / ("cache%d" % number), folder) == rows, compression
            for name in chosen:
                shutil.rmtree(root / ("cache%d" % number))
                assert token_file("read", root / ("cache%d" % number), folder, name) == rows, (compression, name)
            assert token_file("read", folder, "-", chosen[0]) == rows, compression
            (folder / "index.json").unlink()
            token_file("merge", folder)
            assert (folder / "index.json").read_bytes() == theirs, compression

        for number, compression in enumerate(compressions):
            folder, rows = root / ("ours%d" % number), samples(rng, 50, np.uint16)
            names = ",".join(sorted(rng.sample(hashes, 2)))
            token_file("write", folder, compression or "-", names, 5000, lines="".join(" ".join(map(str, row)) + "\n" for row in rows))
            entry = json.loads((folder / "index.json").read_text())["shards"][0]
            assert streamed(folder) == rows, compression
            # The same rows by Streaming's writer: raw files byte for byte, and so everything the index says of them.
            with MDSWriter(out=str(root / ("same%d" % number)), columns={"tokens": "ndarray:uint16"}, compression=compression,
                           hashes=names.split(","), size_limit=5000) as out:
                for row in rows:
                    out.write({"tokens": np.array(row, np.uint16)})
            same = json.loads((root / ("same%d" % number) / "index.json").read_text())["shards"][0]
            for index in (entry, same):
                if index["zip_data"]:  # libraries of other versions compress otherwise
                    index["zip_data"] = index["zip_data"]["basename"]
            assert entry == same, (entry, same)

        # What has been tampered with is refused: each with the hash that the index has.
        for name in hashes:
            folder = root / ("wrong-" + name)
            write(folder, samples(rng, 9, np.uint16), np.uint16, "ndarray:uint16", hashes=[name])
            shard = folder / "shard.00000.mds"
            shard.write_bytes(shard.read_bytes()[:-1] + b"\x77")
            token_file("read", folder, "-", name, fails="found " + name)
            token_file("read", root / ("fetched-" + name), folder, fails="found " + name)
    print("%d compressions, %d hashes" % (len(compressions) - 1, len(hashes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
