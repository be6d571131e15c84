"""Mistakes planted in the CUDA kernels one at a time: do the tests on the executor find them? Prints CSV.

python3 bench/studies/kernel_mutants/mutants.py BUILD [FILE]    (BUILD has unit_kernels_on_executor and
unit_grouped_on_executor built; FILE: mutants of that one alone, as grouped_gemm.cu)
"""
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CUDA = "kernels/cuda/"
# Tests that run first, by file.
FIRST = {
    "norm.cu": "*rmsnorm*",
    "loss.cu": "*cross-entropy*,*rows of more packs*",
    "sort.cu": "*sorts of several*",
    "router.cu": "*routers of every*,*given choice*",
    "rows.cu": "*rows of more packs*,*between multiples*",
    "blocks.cu": "*blocks come back*,*between multiples*",
    "elementwise.cu": "swiglu*,rope*,*between multiples*",
    "grouped_gemm.cu": "*several tiles*",
}
BARRIER, WARP = "__syncthreads();", "__syncwarp();"
# file, source compiled with it, description, text to replace, which occurrence of it (from 0), replacement
MUTANTS = [
    ("common.cuh", "norm.cu", "block_reduce without its first barrier", BARRIER, 0, ""),
    ("common.cuh", "norm.cu", "block_reduce without its second barrier", BARRIER, 1, ""),
    ("common.cuh", "rows.cu", "block_reduce without its first barrier", BARRIER, 0, ""),
    ("common.cuh", "norm.cu", "column_sum without its barrier", BARRIER, 2, ""),
    ("common.cuh", "norm.cu", "column_sum adds one row less", "y < kWarp &&", 0, "y < kWarp - 1 &&"),
    ("common.cuh", "norm.cu", "warp_reduce over half of the lanes", "__shfl_xor_sync(kAllLanes", 0, "__shfl_xor_sync(0xffffu"),
    ("common.cuh", "rows.cu", "for_packs one too far", "blockDim.x < packs) ahead", 0, "blockDim.x <= packs) ahead"),
    ("common.cuh", "elementwise.cu", "for_each_row one too far", "row < rows;", 0, "row <= rows;"),
    ("common.cuh", "rows.cu", "16 bytes at a time wherever the width allows", "% 16 == 0;", 0, "% 1 == 0;"),
    ("norm.cu", "norm.cu", "forward one pack too far", "p < packs; p += kThreads", 0, "p <= packs; p += kThreads"),
    ("norm.cu", "norm.cu", "sums of the gain not cleared", "dgain[p] = {};", 0, ";"),
    ("norm.cu", "norm.cu", "less shared memory than the row", "static_cast<size_t>(row_bytes) : 0", 0,
     "static_cast<size_t>(row_bytes) - 4 : 0"),
    ("loss.cu", "loss.cu", "sum of losses without its barrier", BARRIER, 0, ""),
    ("loss.cu", "loss.cu", "losses of ignored rows not written", "if (threadIdx.x == 0) loss_T[t] = 0;", 0, ";"),
    ("loss.cu", "loss.cu", "ignored rows skipped by one warp alone", "if (target == kIgnoredTarget) {", 0,
     "if (target == kIgnoredTarget && threadIdx.x < 32) {"),
    ("sort.cu", "sort.cu", "count without the barrier after clearing", BARRIER, 0, ""),
    ("sort.cu", "sort.cu", "count without the barrier before reading", BARRIER, 1, ""),
    ("sort.cu", "sort.cu", "scan without its first barrier", BARRIER, 2, ""),
    ("sort.cu", "sort.cu", "scan without its second barrier", BARRIER, 3, ""),
    ("sort.cu", "sort.cu", "scan without its third barrier", BARRIER, 4, ""),
    ("sort.cu", "sort.cu", "scatter without the barrier after clearing", WARP, 0, ""),
    ("sort.cu", "sort.cu", "scatter without the barrier before adding", WARP, 1, ""),
    ("sort.cu", "sort.cu", "scatter without the barrier after adding", WARP, 2, ""),
    ("sort.cu", "sort.cu", "scan does not wait for the launch before", "wait_for_previous();", 0, ""),
    ("sort.cu", "sort.cu", "scatter does not wait for the launch before", "wait_for_previous();", 1, ""),
    ("sort.cu", "sort.cu", "count adds without an atomic",
     "atomicAdd(&of_slot[slot_of(index, slot_of_expert, i)], 1);", 0, "++of_slot[slot_of(index, slot_of_expert, i)];"),
    ("sort.cu", "sort.cu", "count one row too far", "i < end; i += blockDim.x", 0, "i <= end; i += blockDim.x"),
    ("sort.cu", "sort.cu", "peers of the lanes with rows alone", "__match_any_sync(kAllLanes", 0,
     "__match_any_sync(__ballot_sync(kAllLanes, i < n)"),
    ("sort.cu", "sort.cu", "shared counters for one expert less", "static_cast<size_t>(E) * sizeof(int);", 0,
     "static_cast<size_t>(E - 1) * sizeof(int);"),
    ("router.cu", "router.cu", "forward without its first barrier", BARRIER, 0, ""),
    ("router.cu", "router.cu", "forward without its second barrier", BARRIER, 1, ""),
    ("router.cu", "router.cu", "forward does not wait for the launch before", "wait_for_previous();", 0, ""),
    ("router.cu", "router.cu", "forward reads a logit before it waits", "wait_for_previous();", 0,
     "if (logits_TE[0] == 1e30f) return; wait_for_previous();"),
    ("router.cu", "router.cu", "sums do not wait for the launch before", "wait_for_previous();", 1, ""),
    ("router.cu", "router.cu", "lanes beyond the last token leave", "if (lane >= here || !inside) continue;", 0,
     "if (lane >= here) continue; if (!inside) return;"),
    ("router.cu", "router.cu", "tokens beyond the last read on", "min(begin + own, tokens - 1);", 0, "begin + own;"),
    ("router.cu", "router.cu", "one counter not cleared", "e < kLanes * kPer; e += kInBlock", 0,
     "e < kLanes * kPer - 1; e += kInBlock"),
    ("router.cu", "router.cu", "counts added without an atomic", "atomicAdd(&block_counts[chosen], 1);", 0,
     "++block_counts[chosen];"),
    ("router.cu", "router.cu", "a warp's share left out", "w < kWarps<kPer>; ++w", 0, "w < kWarps<kPer> - 1; ++w"),
    ("router.cu", "router.cu", "one row of shares too far", "w < kWarps<kPer>; ++w", 0, "w <= kWarps<kPer>; ++w"),
    ("router.cu", "router.cu", "best lane by a shuffle of its own lanes alone",
     "__shfl_xor_sync(kAllLanes, best, offset)", 0, "__shfl_xor_sync(0xffu, best, offset)"),
    ("router.cu", "router.cu", "backward: tokens beyond the last leave",
     "const int64_t t = min(from_token + own, spec.T - 1);", 0,
     "const int64_t t = from_token + own; if (t >= spec.T) return;"),
    ("blocks.cu", "blocks.cu", "blocks beyond the last not done again", "b + own < blocks ? b + own : blocks - 1;", 0,
     "b + own;"),
    ("blocks.cu", "blocks.cu", "tails read in full", "if (first + j < n) packs", 0, "if (first + j < n + 1) packs"),
    ("blocks.cu", "blocks.cu", "tails written in full", "if (first + j < n) x[", 0, "if (first + j < n + 1) x["),
    ("rows.cu", "rows.cu", "choices one too far", "if (c < here) at[c]", 0, "if (c < here + 1) at[c]"),
    ("rows.cu", "rows.cu", "dots reduced for the present choices alone",
     "const float whole = block_reduce<Sum>(dot[c]);", 0,
     "const float whole = threadIdx.x < 64 || c < 1 ? block_reduce<Sum>(dot[c]) : 0;"),
    ("rows.cu", "rows.cu", "weights of the dots written by all warps",
     "if (threadIdx.x == 0 && c < here) dweights[first + c] = whole;", 0,
     "if (c < here) dweights[first + c] = whole + static_cast<float>(threadIdx.x / 32);"),
    ("elementwise.cu", "elementwise.cu", "swiglu one pack too far", "p < packs; p += blockDim.x", 0,
     "p <= packs; p += blockDim.x"),
    ("elementwise.cu", "elementwise.cu", "rope takes a head too many",
     "head = threadIdx.y; head < heads;", 0, "head = threadIdx.y; head <= heads;"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "stages are given back while they are read", "products_wait<1>();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "sums are stored before they are there", "products_wait<0>();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "the producer waits for the other phase", "at.empty_parity()", 0, "at.full_parity()"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "consumers wait for the other phase", "at.full_parity()", 0, "at.empty_parity()"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "16 bytes too few are expected", "barrier_expect(&full[at.stage], stage_bytes(kTileN))", 0, "barrier_expect(&full[at.stage], stage_bytes(kTileN) - 16)"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "clearing without its fence", "fence_async_proxy();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "clearing without its barrier", "named_barrier<1, kConsumers * kWarpgroup>();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "products without their fence", "products_begin();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "products without a commit", "products_commit();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "barriers without the fence after their initialisation", "barrier_init_done();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "an arrival of a warp is not waited for", "kConsumers * kWarpgroup / kWarp)", 0, "kConsumers * kWarpgroup / kWarp - 1)"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "more registers than there are", "kConsumerRegisters = 232", 0, "kConsumerRegisters = 240"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "roles begin before the schedule is made", "__syncthreads();", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "a tile's last stage is not given back", "if (tile.blocks > 0) release(before);", 0, ""),
    ("grouped_gemm.cu", "grouped_gemm.cu", "another stage is given back", "before = at.stage;", 0, "before = 0;"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "all lanes give a stage back", "if (threadIdx.x % kWarp == 0) barrier_arrive", 0, "barrier_arrive"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "the ring does not begin on a pattern", "dynamic + (kPatternBytes - shared_address(dynamic) % kPatternBytes) % kPatternBytes", 0, "dynamic"),
    ("grouped_gemm.cu", "grouped_gemm.cu", "sums are not cleared", "for (float& sum : sums) sum = 0;", 0, "for (float& sum : sums) if (number < tiles / 2) sum = 0;"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "descriptors one unit too far", "((shared_address & 0x3ffff) >> 4)", 0, "(((shared_address & 0x3ffff) >> 4) + 1)"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "rows of half the stride", "= 8 * kRowBytes;", 0, "= 4 * kRowBytes;"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "slabs of another distance", "transposed ? kSlabBytes : kUnitBytes;", 0, "kUnitBytes;"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "a step of K too short", "kMmaK * kRowBytes : kMmaK * 2", 0, "kMmaK * kRowBytes : kMmaK"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "a row of the next group is not cleared", "smaller(kTileK, t.group_rows - block * kTileK)", 0, "smaller(kTileK, t.group_rows - block * kTileK + 1)"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "the ring's round does not change", "stage = 0, round ^= 1;", 0, "stage = 0;"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "the weight of the first group", "block * kTileK, t.group};", 0, "block * kTileK, 0};"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "one row beyond the group is stored", "t.m + row < output_rows", 0, "t.m + row <= output_rows"),
    ("grouped_tiles.hpp", "grouped_gemm.cu", "neighbours swap the wrong halves", "return t % 2 != 0;", 0, "return t % 2 == 0;"),
]


def nth_replaced(text, old, n, new):
    places = [m.start() for m in re.finditer(re.escape(old), text)]
    assert len(places) > n, f"{old!r} occurs {len(places)} times"
    return text[: places[n]] + new + text[places[n] + len(old):]


def main(build, only):
    commands = {e["file"]: e for e in json.load(open(build / "compile_commands.json"))}
    links = {}
    for test in "unit_kernels_on_executor", "unit_grouped_on_executor":
        link = subprocess.check_output(["ninja", "-C", build, "-t", "commands", test], text=True)
        links[test] = shlex.split(link.strip().splitlines()[-1].split("&&")[1])
    print("file,compiled,mistake,found,how", flush=True)
    for file, source, what, old, n, new in MUTANTS:
        if only not in (None, file, source):
            continue
        link = links["unit_grouped_on_executor" if source == "grouped_gemm.cu" else "unit_kernels_on_executor"]
        with tempfile.TemporaryDirectory() as folder:
            changed = Path(folder) / CUDA / file
            changed.parent.mkdir(parents=True)
            changed.write_text(nth_replaced((ROOT / CUDA / file).read_text(), old, n, new))
            entry = commands[str(ROOT / CUDA / source)]
            compile_ = shlex.split(entry["command"])
            target = compile_[compile_.index("-o") + 1]
            compile_[compile_.index("-o") + 1] = f"{folder}/mutant.o"
            if file == source:
                compile_[compile_.index(str(ROOT / CUDA / source))] = str(changed)
            at = next(i for i, part in enumerate(compile_) if part.startswith("-I"))
            compile_.insert(at, f"-I{folder}")
            compile_ = [part for part in compile_ if part != "-Werror"]
            subprocess.run(compile_, cwd=entry["directory"], check=True, stderr=subprocess.DEVNULL)
            linked = [f"{folder}/mutant.o" if part == target else part for part in link]
            linked[linked.index("-o") + 1] = f"{folder}/mutant"
            subprocess.run(linked, cwd=build, check=True)
            for tests in FIRST[source], "~planted*":
                run = subprocess.run([f"{folder}/mutant", "--abort", tests], cwd=ROOT, text=True, capture_output=True,
                                     errors="replace")
                if run.returncode:
                    break
        output = re.sub(r"\S*kernels/cuda/ ?", "", " ".join(run.stdout.split()))
        how = "not"
        if run.returncode:
            told = re.search(r"(?:thread \d+ \([^)]*\)[^:]*: |(?=no thread can run))(.*?)(\(addr2line|={9}|$)", output)
            how = "executor: " + told[1].strip() if told else "result"
        print(f'{file},{source},{what},{"yes" if run.returncode else "no"},"{how}"', flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else None)
