#!/usr/bin/env python3
"""torch._grouped_mm beside one dense product of the same FLOPs and transposes, in torch.

    python3 experiments/peers/grouped_gemm_torch.py --sizes out/grouped_gemm/grouped_gemm_sizes.tsv --out DIR

Reads the problems that experiments/grouped_gemm.lua wrote, so that group sizes are equal, and writes
grouped_gemm_torch.tsv and grouped_gemm_torch_samples.tsv in its columns ("-" where one does not apply).
bf16, L2 emptied by a memset of 512 MB before each call, CUDA events around the call, both contenders once
a round in shuffled order; each is checked against products in fp32, expert by expert, before it is timed.
Times of another process do not compare: its share_of_dense does, which holds both against torch_dense.

--serve takes numbers of problems (from 1) from standard input, line by line, measures each and answers
"done" or "failed". `grouped_gemm.lua --torch python3` does that, in turn with its own rounds.
"""
import argparse
import os
import random
import statistics
import sys
import time

COLUMNS = ("op experts rows distribution variant beta time_us time_us_lo time_us_hi call_us pad_us unpad_us zero_us "
           "store_us rounds tflops tflops_padded share_of_dense dram_gbps tensor_pct occupancy_pct sm_clock_mhz "
           "power_w").split()
SIZE_COLUMNS = "op experts rows distribution layout m n k sizes".split()
SAMPLE_COLUMNS = "op experts rows distribution variant beta part round time_us sm_clock_mhz".split()
DENSE, GROUPED = "torch_dense", "torch_grouped_mm"
FLUSH_BYTES = 512 << 20
WARMUP = 3
LAUNCHES, GROUPS, REPEATS = 4, 3, 6  # of call_us, as in lua/tilelab/grouped_gemm.lua


def read_problems(path):
    """The rows of a file of sizes, numbers as such; ends the program where it is not as it was written."""
    try:
        with open(path, encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
        if not rows or rows[0] != SIZE_COLUMNS:
            raise ValueError("the columns are not " + " ".join(SIZE_COLUMNS))
        return [read_problem(cells) for cells in rows[1:]]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        sys.exit(f"grouped_gemm_torch: {path}: {reason}; experiments/grouped_gemm.lua writes such a file")


def read_problem(cells):
    if len(cells) != len(SIZE_COLUMNS):
        raise ValueError(f"a row has {len(cells)} cells, not {len(SIZE_COLUMNS)}")
    p = dict(zip(SIZE_COLUMNS, cells))
    for name in ("experts", "rows", "m", "n", "k"):
        p[name] = int(p[name]) if p[name] != "-" else None
    p["sizes"] = [int(size) for size in p["sizes"].split()]
    if len(p["sizes"]) != p["experts"] or sum(p["sizes"]) != p["rows"]:
        raise ValueError(f"sizes of {title(p)} do not add up")
    return p


def title(p):
    return f"{p['op']}, {p['experts']} experts, {p['distribution']}"


def median_interval(samples):
    """The order statistics around the median that cover it with at least 95 %, or all samples."""
    ordered, n = sorted(samples), len(samples)
    # P(Binomial(n, 1/2) < low), from below: the largest low whose two tails hold at most 5 %.
    tail, term, low = 0.0, 0.5 ** n, 0
    while low < (n - 1) // 2 and 2 * (tail + term) <= 0.05:
        tail += term
        low += 1
        term *= (n - low + 1) / low
    low = max(low - 1, 0)
    return ordered[low], ordered[n - 1 - low]


class Table:
    """A result file: header at once, each row flushed."""

    def __init__(self, path, columns):
        self.columns = columns
        self.file = open(path, "w", encoding="utf-8")
        print("\t".join(columns), file=self.file, flush=True)

    def row(self, **cells):
        text = (cells.get(name, "-") for name in self.columns)
        print("\t".join(repr(c) if isinstance(c, float) else str(c) for c in text), file=self.file, flush=True)


class Bench:
    """The memory that all problems share, and what is done with each."""

    def __init__(self, torch, problems, arguments):
        self.torch, self.rounds, self.order = torch, arguments.rounds, random.Random(1)
        self.results = Table(os.path.join(arguments.out, "grouped_gemm_torch.tsv"), COLUMNS)
        self.samples = Table(os.path.join(arguments.out, "grouped_gemm_torch_samples.tsv"), SAMPLE_COLUMNS)
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

        def normal(count):
            return torch.randn(count, device="cuda", dtype=torch.bfloat16)

        forward = [p for p in problems if p["k"]]  # nobody asks for weight gradients
        self.x = normal(max((p["rows"] * p["k"] for p in forward), default=0))
        self.weights = normal(max((p["experts"] * p["n"] * p["k"] for p in forward), default=0))
        self.flush = torch.empty(FLUSH_BYTES, device="cuda", dtype=torch.uint8)

    def contenders(self, p):
        """By variant: the call, and blocks(result) that yields of each group its number, the part of the result,
        the rows before it there, and the two factors: x [rows, k] and w [experts, k, n], a transposed view where
        the layout is nt."""
        ends = self.torch.tensor(p["sizes"], device="cuda").cumsum(0).to(self.torch.int32)
        grouped_mm = getattr(self.torch, "_grouped_mm", None) or self.torch.nn.functional.grouped_mm
        torch = self.torch
        shape = (p["experts"], p["n"], p["k"]) if p["layout"] == "nt" else (p["experts"], p["k"], p["n"])
        x = self.x[:p["rows"] * p["k"]].view(p["rows"], p["k"])
        w = self.weights[:p["experts"] * p["n"] * p["k"]].view(shape)
        if p["layout"] == "nt":
            w = w.transpose(1, 2)

        def blocks(groups):
            return lambda result: ((e, result[begin:end], begin, x[begin:end], w[e]) for begin, end, e in groups)
        return {DENSE: (lambda: torch.matmul(x, w[0]), blocks([(0, p["rows"], 0)])),
                GROUPED: (lambda: grouped_mm(x, w, offs=ends), blocks(spans(p["sizes"])))}

    def wrong(self, result, blocks):
        """None, or the worst coordinate of a result that is not what fp32 gives, group by group."""
        torch, worst, where = self.torch, 0.0, None
        for expert, part, before, left, right in blocks(result):
            if left.shape[0] == 0 or left.shape[1] == 0:
                continue
            left, right = left.float(), right.float()
            scaled = 2.0 ** -20 * max(1.0, left.shape[1] / 4096)
            exact = left @ right
            bound = 2.0 ** -8 * exact.abs() + scaled * (left.abs() @ right.abs())
            excess = (part.float() - exact).abs() / bound
            excess = torch.where(torch.isfinite(excess), excess, torch.inf)
            position = int(excess.argmax())
            value = float(excess.flatten()[position])
            if value > worst:
                worst, where = value, (expert + 1, before + position // excess.shape[1] + 1,
                                       position % excess.shape[1] + 1)
        if worst <= 1:
            return None
        return "wrong: %.3g of the bound in group %d, row %d, column %d" % (worst, *where)

    def time_us(self, call):
        """Of one call with a cold L2; the memset keeps the GPU busy while the call is enqueued."""
        torch = self.torch
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.flush.zero_()
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        return 1e3 * start.elapsed_time(stop)

    def call_us(self, call):
        samples = []
        for _ in range(REPEATS):
            self.torch.cuda.synchronize()
            for _ in range(WARMUP):
                call()
            for _ in range(GROUPS):
                start = time.perf_counter()
                for _ in range(LAUNCHES):
                    call()
                samples.append(1e6 * (time.perf_counter() - start) / LAUNCHES)
        self.torch.cuda.synchronize()
        return statistics.median(samples)

    def checked(self, p):
        """Calls that give right results, by variant, and whether all do."""
        calls, good = {}, True
        for variant, (call, blocks) in self.contenders(p).items():
            try:
                problem = self.wrong(call(), blocks)
            except RuntimeError as error:
                problem = str(error).splitlines()[0]
            if problem is None:
                calls[variant] = call
            else:
                good = False
                print(f"grouped_gemm_torch: {title(p)}: {variant}: {problem}", file=sys.stderr, flush=True)
        return calls, good

    def run(self, p):
        calls, good = self.checked(p)
        times = {variant: [] for variant in calls}
        for number in range(-WARMUP, self.rounds):
            for variant in self.order.sample(list(calls), len(calls)):
                sample = self.time_us(calls[variant])
                if number >= 0:
                    times[variant].append(sample)
        for variant, call in calls.items():
            self.write(p, variant, times, self.call_us(call))
        return good

    def write(self, p, variant, times, call_us):
        key = {name: p[name] for name in ("op", "experts", "rows", "distribution")}
        mine, dense = times[variant], times.get(DENSE)
        low, high = median_interval(mine)
        median = statistics.median(mine)
        share = statistics.median(d / t for d, t in zip(dense, mine)) if dense else "-"
        self.results.row(**key, variant=variant, beta=0, time_us=median, time_us_lo=low, time_us_hi=high,
                         call_us=call_us, rounds=len(mine), share_of_dense=share,
                         tflops=2e-6 * p["rows"] * p["n"] * p["k"] / median)
        for number, sample in enumerate(mine):
            self.samples.row(**key, variant=variant, beta=0, part="gemm", round=number + 1, time_us=sample)


def spans(sizes):
    """(first row, row after the last, expert) of each group."""
    result, begin = [], 0
    for expert, size in enumerate(sizes):
        result.append((begin, begin + size, expert))
        begin += size
    return result


def serve(bench, problems):
    for line in sys.stdin:
        print("done" if bench.run(problems[int(line) - 1]) else "failed", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sizes", required=True, help="problems, as grouped_gemm.lua writes them")
    parser.add_argument("--out", default=".", help="folder for the results")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--serve", action="store_true", help="measure the problems that standard input names")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be 1 or more")
    if not os.path.isdir(arguments.out):
        parser.error(f"--out: there is no folder {arguments.out}")
    problems = read_problems(arguments.sizes)
    try:
        import torch
    except ImportError as error:
        sys.exit(f"grouped_gemm_torch: {error}; install PyTorch, or give another interpreter that has it")
    if not torch.cuda.is_available():
        sys.exit("grouped_gemm_torch: torch sees no GPU")
    bench = Bench(torch, problems, arguments)
    if arguments.serve:
        print(f"ready {torch.__version__}", flush=True)
        good = serve(bench, problems)
    else:
        good = all([bench.run(p) for p in problems])
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
