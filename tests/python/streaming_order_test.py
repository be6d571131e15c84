"""The global batches of a run are those of mosaicml-streaming: random data sets, mixtures, settings, worlds and places to resume at.

streaming_order_test.py PROGRAM [CASES [SEED]]: PROGRAM is tests/e2e/streaming_order.cpp. What the package deals to one rank of one node equals
our batches id by id. What it deals to other worlds are the same batches, in another order within a batch; device_per_stream alone is compared
in its own world. A case that the package refuses must be refused, too.
"""

import json
import logging
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from streaming import Stream, StreamingDataset
from streaming.base.batching import generate_work
from streaming.base.world import World

METHODS = ["random", "stratified", "per_stream", "device_per_stream"]
SHUFFLES = ["py1e", "py1br", "py1s", "py2s", "naive"]


def write_index(folder, sizes):
    folder.mkdir(parents=True)
    shards = [{"column_encodings": ["int"], "column_names": ["x"], "column_sizes": [8], "compression": None, "format": "mds", "hashes": [],
               "raw_data": {"basename": f"shard.{i:05}.mds", "bytes": 100, "hashes": {}}, "samples": size, "size_limit": 1 << 26,
               "version": 2, "zip_data": None} for i, size in enumerate(sizes)]
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    for i in range(len(sizes)):
        (folder / f"shard.{i:05}.mds").touch()


def draw_case(draw, large):
    """A data set with its settings, and worlds to read it in."""
    case = {"batching_method": draw.choice(METHODS), "shuffle": draw.random() < 0.85, "shuffle_algo": draw.choice(SHUFFLES),
            "num_canonical_nodes": draw.choice([1, 1, 2, 3, 4, 8]), "shuffle_seed": draw.choice([9176, draw.randrange(1 << 40)]),
            "sampling_method": draw.choice(["balanced", "fixed"]), "sampling_granularity": draw.choice([1, 1, 2, 3, 7, 100])}
    if draw.random() < 0.8:
        case["shuffle_block_size"] = draw.choice([5, 8, 30, 100, 500, 2000])
    streams = draw.choice([1, 1, 2, 2, 3, 5, 9, 20])
    most = 15000 if large else draw.choice([6, 40, 90])
    shards = [[draw.randint(1, most) for _ in range(draw.randint(1, 2 if large else 7))] for _ in range(streams)]
    samples = sum(map(sum, shards))
    kind = draw.choice(["none", "proportion", "absolute", "size"])
    weights = [{} for _ in shards]
    if kind == "proportion":
        weights = [{"proportion": draw.choice([1, 2, 0.5, draw.uniform(0.1, 3)])} for _ in shards]
    elif kind == "absolute":
        weights = [draw.choice([{}, {"repeat": draw.uniform(0.3, 2.5)}, {"choose": draw.randint(1, 3 * sum(sizes))}]) for sizes in shards]
    if kind == "size" or kind == "proportion" and draw.random() < 0.6:
        case["epoch_size"] = draw.randint(max(1, samples // 3), 2 * samples)
    nodes, ranks, replication = draw.choice([1, 2, 3, 4]), draw.choice([1, 2, 3, 4]), draw.choice([1, 1, 1, 2])
    return case, shards, weights, (nodes, ranks, replication)


def data_set_of(case, shards, weights, folder):
    """The package's data set of these shards. Each opens 30 files of shared memory for as long as the process lives, so that
    most are made without their constructor, which finds shards and shares memory: with what it derives from the shards."""
    if folder:
        for i, sizes in enumerate(shards):
            write_index(folder / f"s{i}", sizes)
        return StreamingDataset(streams=[Stream(local=str(folder / f"s{i}"), **w) for i, w in enumerate(weights)], batch_size=1, **case)
    data = object.__new__(StreamingDataset)
    usual = {"epoch_size": None, "partition_algo": "relaxed", "initial_physical_nodes": None, "shuffle_block_size": None, "batch_size": 1}
    for key, value in {**usual, **case}.items():
        setattr(data, key, value)
    data.epoch_seed_change = data.shuffle and data.sampling_method == "balanced"
    data.streams = [Stream(local="none", **w) for w in weights]
    data.num_streams = len(shards)
    data.samples_per_stream = np.array([sum(sizes) for sizes in shards], np.int64)
    data.shards_per_stream = np.array([len(sizes) for sizes in shards], np.int64)
    data.shard_offset_per_stream = data.shards_per_stream.cumsum() - data.shards_per_stream
    data.samples_per_shard = np.concatenate([np.array(sizes, np.int64) for sizes in shards])
    data.sample_offset_per_shard = data.samples_per_shard.cumsum() - data.samples_per_shard
    data.epoch_size = Stream.apply_weights(data.streams, data.samples_per_stream, data.epoch_size, data.shuffle_seed)
    return data


def loader_text(case, shards, weights):
    streams = {f"s{i}": {"local": f"s{i}", **w} for i, w in enumerate(weights)}
    return json.dumps({"dataset": {"streams": streams, **case}})  # JSON is YAML


def batches_of(work, global_batch):
    """In training order; those that -1 fills up are no batches."""
    rows = work.transpose(3, 2, 0, 1, 4).reshape(-1, global_batch)
    whole = [row.tolist() for row in rows if row.min(initial=0) >= 0]
    assert all(row.min(initial=0) < 0 for row in rows[len(whole):]), "a whole batch after one that is not"
    return whole


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def batches(self, loader, shards, global_batch, world, epoch, sample, case):
        state = {"epoch": epoch, "sample_in_epoch": sample, "num_canonical_nodes": case["num_canonical_nodes"],
                 "shuffle_seed": case["shuffle_seed"], "initial_physical_nodes": 1}
        asked = {"loader": loader, "shards": shards, "global_batch": global_batch, "nodes": world[0], "ranks_per_node": world[1], "state": state}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer.get("batches"), answer.get("error")


def theirs(dataset, case, global_batch, world, epoch, sample):
    """(batches, None), or (None, why the package refuses)."""
    ranks = world.num_ranks
    dataset.batch_size = global_batch // ranks
    try:
        return batches_of(generate_work(case["batching_method"], dataset, world, epoch, sample), global_batch), None
    except (ValueError, IndexError, ZeroDivisionError) as e:
        return None, str(e)


def few_samples(dataset, case):
    """The package repeats samples round and round where there are fewer than canonical nodes; we refuse."""
    chosen = [int(s.choose) for s in dataset.streams]
    parts = [sum(chosen)] if case["batching_method"] == "random" else chosen
    return min(parts) < case["num_canonical_nodes"]


def has_free_order(dataset, case, global_batch):
    """Stratified batches give what rounding leaves over to the largest remainders. Which of equal ones comes first, NumPy leaves to its
    sort, which is stable up to 16 numbers and beyond depends on the processor."""
    if case["batching_method"] != "stratified" or len(dataset.streams) <= 16:
        return False
    exact = global_batch * np.array([s.proportion for s in dataset.streams])
    return len(set((exact - exact.astype(np.int64)).tolist())) < len(exact)


def compare(found, expected, what, exact):
    if exact:
        assert found == expected, f"{what}: found {found[:3]}, expected {expected[:3]}"
        return
    # A world of many ranks may fill one more batch with repeats.
    assert len(found) <= len(expected) <= len(found) + 1, f"{what}: {len(found)} batches, {len(expected)} expected"
    for i, (a, b) in enumerate(zip(found, expected)):
        assert Counter(a) == Counter(b), f"{what}: batch {i}: found {sorted(a)}, expected {sorted(b)}"


def check_case(number, draw, ours, folder, counts):
    case, shards, weights, (nodes, ranks, replication) = draw_case(draw, number % 10 == 9)
    method, canonical = case["batching_method"], case["num_canonical_nodes"]
    own_world = method == "device_per_stream"
    if own_world and canonical % nodes:
        nodes = 1
    dataset = data_set_of(case, shards, weights, folder / str(number) if number % 16 == 0 else None)
    per_rank = draw.choice([1, 2, 3, 5] if not own_world else [1, 2, 4])
    factor = max(1, len(shards) if method == "stratified" else 1)
    global_batch = nodes * ranks * per_rank * (draw.choice([1, 2, 3]) * factor if not own_world else 1)
    if has_free_order(dataset, case, global_batch):
        counts["left out: order of ties"] += 1
        return
    loader = loader_text(case, shards, weights)
    one = World(1, 1, 1, 0)
    dealt = World(nodes, ranks * replication, draw.choice([1, 2, 3]), 0).replicate(replication) if replication > 1 else World(
        nodes, ranks, draw.choice([1, 2, 3]), 0)
    ours_world = (dealt.num_nodes, dealt.ranks_per_node) if own_world else (nodes, ranks)
    dataset._set_shuffle_block_size(one)
    divides = max(canonical, dealt.num_nodes) % min(canonical, dealt.num_nodes) == 0
    for epoch in range(3):
        samples = [0]
        if epoch == 1:
            samples.append(global_batch * draw.randint(1, 4))
            samples.append(draw.randrange(1, global_batch + 1))
        for sample in samples:
            what = f"case {number}: {loader} {shards} batch {global_batch} world {dealt} epoch {epoch} from {sample}"
            expected, refused = theirs(dataset, case, global_batch, dealt if own_world else one, epoch, sample)
            found, error = ours.batches(loader, shards, global_batch, ours_world, epoch, sample, case)
            if error or refused:
                counts["refused"] += 1
                good = bool(error) and (bool(refused) or few_samples(dataset, case) or not expected)
                if "sample_in_epoch" in (error or "") and sample > 0:
                    good = True
                assert good, f"{what}: found {error or found[:3]}, expected {refused or expected[:3]}"
                continue
            counts[method] += 1
            compare(found, expected, what, True)
            if own_world or not divides or sample % global_batch:
                continue
            other, refused = theirs(dataset, case, global_batch, dealt, epoch, sample)
            if refused or method == "per_stream" and len(other) != len(found):  # one repeated batch changes the order of the streams
                continue
            counts["other worlds"] += 1
            compare(found, other, what, False)


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    program, cases = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 240
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 23
    ours, counts = Ours(program), Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(cases):
            check_case(number, random.Random(seed * 1_000_003 + number), ours, Path(scratch), counts)
    print(f"NumPy {np.__version__}: {cases} data sets; epochs and resumes compared: {dict(sorted(counts.items()))}")
    least = cases // 20
    assert all(counts[m] > least for m in [*METHODS, "other worlds"]), "too few cases of a kind were compared"


if __name__ == "__main__":
    main()
