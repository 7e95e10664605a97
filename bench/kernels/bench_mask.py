"""Checks the kernels that apply masks on a CUDA GPU, and measures them.

    python bench/kernels/bench_mask.py                      # needs PyTorch and Triton, and a GPU
    python bench/kernels/bench_mask.py --xgrammar FILE      # XGrammar's kernel from a file of its package
    python bench/kernels/bench_mask.py --tune               # other sizes of blocks, too
    python bench/kernels/bench_mask.py --masks FOLDER       # real masks, too: files *.mask of 32-bit words

How it is measured. A CUDA graph holds one launch for each of several sets of logits, together several times as large as
the L2 cache, so that nothing is read from it by luck and no launch waits for Python; a graph is replayed many times,
and the median replay is divided by the number of launches.

How bytes are counted. Device memory moves sectors of 32 bytes. A mask forces a write of each sector that holds a token
which is not allowed, and a read of the mask; nothing else. These are the *needed* bytes; a kernel that moves more looks
slower here, which is the idea. The column 'of copy' is the needed bytes per second over those of a plain copy between two
buffers which moves as many bytes (half read, half written) and is measured in the same way.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
SECTOR = 32
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def kernels():
    """The package, or its folder alone where the native library is not built."""
    try:
        from maskwright import kernels as found
    except ImportError:
        sys.path.insert(0, str(HERE.parent.parent / "python" / "maskwright"))
        import kernels as found
    return found


def xgrammar(path):
    """XGrammar's Triton kernel, if it is there."""
    if path is None:
        try:
            from xgrammar.kernels.apply_token_bitmask_inplace_triton import apply_token_bitmask_inplace_triton
        except ImportError:
            return None
        return apply_token_bitmask_inplace_triton
    spec = importlib.util.spec_from_file_location("xgrammar_triton", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.apply_token_bitmask_inplace_triton


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xgrammar", metavar="FILE", help="apply_token_bitmask_inplace_triton.py of XGrammar")
    parser.add_argument("--masks", metavar="FOLDER", type=pathlib.Path, help="real masks, *.mask")
    parser.add_argument("--tune", action="store_true", help="measure other sizes of blocks")
    parser.add_argument("--vocabulary", type=int, default=128256)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench_mask: this needs a CUDA GPU; the tests of the kernels run without one (make test)")

    bench = Bench(arguments)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {bench.triton.__version__}")
    bench.check()
    if arguments.tune:
        bench.tune()
    bench.measure()
    bench.measure_pool()
    bench.measure_calls()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(bench.rows, indent=1))


class Bench:
    def __init__(self, arguments):
        import triton

        self.triton = triton
        self.arguments = arguments
        self.kernels = kernels()
        prefix = self.kernels.__name__
        self.device = importlib.import_module(f"{prefix}.device")
        self.job = importlib.import_module(f"{prefix}.check").checked
        self.reference = importlib.import_module(f"{prefix}.reference").apply_reference
        self.compiled = importlib.import_module(f"{prefix}.reference").apply_compiled
        self.xgrammar = xgrammar(arguments.xgrammar)
        if self.xgrammar is None:
            print("XGrammar's kernel is not here (pip install xgrammar, or --xgrammar FILE); it is left out")
        self.rows = []

    # --- right?

    def check(self):
        generator = torch.Generator().manual_seed(1)
        cases = 0
        for dtype in DTYPES.values():
            for width, words in [(128256, 4008), (128256, 4007), (128000, 4008), (32001, 1001), (151936, 4748), (77, 3),
                                 (1, 1), (50257, 1571), (8192, 256), (8193, 257), (262144, 8192)]:
                for density in (0.0, 0.01, 0.5, 0.99, 1.0):
                    self._check_one(dtype, width, words, density, generator)
                    cases += 1
        print(f"right in {cases} cases: three dtypes, eleven shapes, five densities; rows chosen, rows apart, pool")

    def _check_one(self, dtype, width, words, density, generator):
        rows = 5
        mask = self._mask(rows, words * 32, density, generator)
        whole = torch.randn(2 * rows, width + 3, generator=generator).to(dtype)
        # Rows that follow each other; rows with a stride that is odd; rows that are chosen.
        chosen, of = [7, 0, 3], [4, 0, 4]
        for logits, rows_, mask_rows in [
            (whole[:rows, :width].contiguous(), None, None),
            (whole[::2, 1 : width + 1], None, None),
            (whole[:, :width].contiguous(), chosen, of),
        ]:
            expected = logits.clone()
            self.reference(self.job(expected, mask, rows_, mask_rows))
            base = whole.cuda() if logits.data_ptr() != whole.data_ptr() and not logits.is_contiguous() else None
            out = logits.cuda() if base is None else base[::2, 1 : width + 1]
            self.device.apply_device(self.job(out, mask.cuda(), rows_, mask_rows))
            assert torch.equal(out.cpu(), expected), (dtype, width, words, density, rows_)
            if base is not None:
                base[::2, 1 : width + 1] = logits.cuda()
                assert torch.equal(base.cpu(), whole), "something was written beside the rows"
        pool = self.kernels.MaskPool(tokens=words * 32, capacity=8, device="cuda")
        near = mask.clone()
        near[2:, 0] ^= 0b101
        near[3:, words - 1] ^= -8
        # Enough room for the patches of the second plan.
        for masks in (mask, near):
            logits = whole[:5, :width].contiguous()
            expected = logits.clone()
            self.reference(self.job(expected, masks, None, None))
            out = logits.cuda()
            pool.apply(out, pool.plan_masks(masks))
            assert torch.equal(out.cpu(), expected), ("pool", dtype, width, words, density)

    def _mask(self, rows, tokens, density, generator):
        if density in (0.0, 1.0):
            return torch.full((rows, tokens // 32), -int(density), dtype=torch.int32)
        return self.kernels.pack_mask(torch.rand(rows, tokens, generator=generator) < density)

    # --- fast?

    def masks(self, batch):
        """Names and masks: few allowed, most allowed, half of them, and real ones."""
        tokens, words = self.arguments.vocabulary, (self.arguments.vocabulary + 31) // 32
        generator = torch.Generator().manual_seed(2)
        few = torch.zeros(batch, words * 32, dtype=torch.bool)
        few[:, torch.randint(tokens, (8,), generator=generator)] = True
        yield "8 allowed", self.kernels.pack_mask(few)
        yield "99 % allowed", self._mask(batch, words * 32, 0.99, generator)
        yield "50 % allowed", self._mask(batch, words * 32, 0.5, generator)
        if self.arguments.masks:
            for path in sorted(self.arguments.masks.glob("*.mask")):
                one = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.int32)
                yield path.stem, one.repeat(batch, 1)

    def with_whole_sectors(self, batch, dtype):
        """The masks, and for the real ones a twin that forbids every sector with a token that is not allowed: the same sectors are written,
        and none has to be read. What that takes is what writing in those places takes."""
        for label, mask in self.masks(batch):
            yield label, mask
            if "%" not in label and "allowed" not in label:
                sectors = self.sectors(mask, dtype)
                whole = sectors.repeat_interleave(self.arguments.vocabulary // sectors.shape[1], 1)
                beyond = mask.shape[1] * 32 - self.arguments.vocabulary
                yield f"{label} sectors", self.kernels.pack_mask(torch.nn.functional.pad(whole, (0, beyond)))

    def sectors(self, mask, dtype):
        """Whether all tokens of each sector are allowed."""
        allowed = self.kernels.unpack_mask(mask, self.arguments.vocabulary)
        size = torch.empty(0, dtype=dtype).element_size()
        return allowed.reshape(mask.shape[0], -1, SECTOR // size).all(-1)

    def needed(self, mask, dtype):
        """Bytes that must move: sectors with a token that is not allowed, and the mask."""
        return int((~self.sectors(mask, dtype)).sum()) * SECTOR + mask.numel() * 4

    def ways(self, mask):
        yield "ours", lambda logits: self.device.apply_device(self.job(logits, mask, None, None))
        if self.xgrammar is not None:
            yield "xgrammar", lambda logits: self.xgrammar(logits, mask)

    def measure(self):
        print()
        print(f"{'dtype':9} {'batch':>5}  {'mask':14} {'kernel':9} {'µs':>8} {'needed MB':>9} {'GB/s':>6} {'of copy':>7}")
        for name in ("bfloat16", "float32"):
            dtype = DTYPES[name]
            for batch in self.arguments.batches:
                sets = self.sets(batch, dtype)
                for label, mask in self.with_whole_sectors(batch, dtype):
                    needed = self.needed(mask, dtype)
                    copy = self.copy_time(needed)
                    mask = mask.cuda()
                    for way, call in self.ways(mask):
                        took = self.timed(call, sets)
                        self.say(name, batch, label, way, took, needed, copy)
                del sets
        fill = self.timed(lambda logits: logits.fill_(float("-inf")), sets := self.sets(256, torch.bfloat16))
        bytes_ = sets[0].numel() * 2
        print(f"for comparison, bfloat16, 256 rows: fill_ {fill * 1e6:.1f} µs, {bytes_ / fill / 1e9:.0f} GB/s written;"
              f" a copy of 1 GB {1e9 / self.copy_time(10**9) / 1e9:.0f} GB/s")
        compiled = self.arguments.batches[-1]
        sets = self.sets(compiled, torch.bfloat16)
        label, mask = next(iter(self.masks(compiled)))
        mask = mask.cuda()
        took = self.timed(lambda logits: self.compiled(self.job(logits, mask, None, None)), sets)
        print(f"torch.compile, bfloat16, {compiled} rows, {label}: {took * 1e6:.1f} µs")

    def say(self, dtype, batch, label, way, took, needed, copy):
        share = copy / took
        self.rows.append(dict(dtype=dtype, batch=batch, mask=label, kernel=way, seconds=took, needed=needed,
                              copy_seconds=copy))
        print(f"{dtype:9} {batch:5}  {label:14} {way:9} {took * 1e6:8.2f} {needed / 1e6:9.2f} {needed / took / 1e9:6.0f}"
              f" {share:7.0%}")

    def sets(self, batch, dtype):
        """Logits in several places, together four times the cache."""
        size = batch * self.arguments.vocabulary * torch.empty(0, dtype=dtype).element_size()
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        count = min(64, max(4, -(-4 * cache // size)))
        return [torch.randn(batch, self.arguments.vocabulary, device="cuda").to(dtype) for _ in range(count)]

    def copy_time(self, needed):
        """Seconds for a plain copy that moves this many bytes, read and written."""
        half = max(needed // 2 // 16 * 16, 16)
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        count = min(64, max(4, -(-4 * cache // needed)))
        pairs = [(torch.empty(half, dtype=torch.uint8, device="cuda"), torch.randint(255, (half,), dtype=torch.uint8, device="cuda"))
                 for _ in range(count)]
        # The copy engine's way and a kernel's: whichever is quicker is the yardstick.
        words = [(to.view(torch.int32), of.view(torch.int32)) for to, of in pairs]
        return min(
            self.timed(lambda pair: pair[0].copy_(pair[1]), pairs),
            self.timed(lambda pair: torch.bitwise_not(pair[1], out=pair[0]), words),
        )

    def timed(self, call, sets, replays=40):
        """Seconds for one call, by the median replay of a graph that calls once for each set."""
        for one in sets[:2]:
            call(one)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for one in sets:
                call(one)
        # Until the clocks are up.
        begin = time.perf_counter()
        while time.perf_counter() - begin < 0.03:
            graph.replay()
            torch.cuda.synchronize()
        times = []
        for _ in range(replays):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1e3 / len(sets))
        return statistics.median(times)

    def tune(self):
        print()
        print("bytes of a block, warps, bytes of a group: µs for bfloat16 and float32, 64 rows, each mask")
        masks = [mask.cuda() for label, mask in self.masks(64) if label not in ("colon", "number")]
        for block in (2048, 4096, 8192, 16384):
            for warps in (1, 2, 4, 8):
                for group in (16, 32):
                    times = []
                    for dtype in (torch.bfloat16, torch.float32):
                        sets = self.sets(64, dtype)
                        for mask in masks:
                            sizes = (block, warps, group)
                            self._right(sets[0][:3], mask[:3], sizes)
                            times.append(self.timed(
                                lambda logits: self.device.apply_device(self.job(logits, mask, None, None), *sizes),
                                sets, 10))
                    print(f"{block:6} {warps:3} {group:3}   " + " ".join(f"{took * 1e6:7.2f}" for took in times))

    def _right(self, logits, mask, sizes):
        expected, out = logits.clone(), logits.clone()
        self.reference(self.job(expected, mask, None, None))
        self.device.apply_device(self.job(out, mask, None, None), *sizes)
        assert torch.equal(out, expected), sizes

    def measure_pool(self):
        """A step with masks that are sent, against a step with a plan that is sent."""
        print()
        batch, tokens = 256, self.arguments.vocabulary
        words = (tokens + 31) // 32
        labelled = dict(self.masks(1))
        bases = [mask[0] for mask in labelled.values()]
        mask = torch.stack([bases[row % len(bases)] for row in range(batch)])
        generator = torch.Generator().manual_seed(3)
        patches = [([int(t) for t in torch.randint(tokens, (8,), generator=generator)], []) for _ in range(batch)]
        patched = self.kernels.unpack_mask(mask, words * 32)
        for row, (allowed, _) in enumerate(patches):
            patched[row, allowed] = True
        mask = self.kernels.pack_mask(patched).pin_memory()
        pool = self.kernels.MaskPool(tokens=tokens, capacity=batch, device="cuda")
        numbers = [pool.add(base) for base in bases]
        places = [numbers[row % len(numbers)] for row in range(batch)]
        logits = torch.randn(batch, tokens, device="cuda").to(torch.bfloat16)
        before = logits.clone()

        def sent():
            self.device.apply_device(self.job(logits, mask.to("cuda", non_blocking=True), None, None))

        def planned():
            pool.apply(logits, pool.plan(places, patches))

        sent()
        expected, logits = logits, before.clone()
        planned()
        assert torch.equal(logits, expected), "a plan does not do what its masks do"
        plan = pool.plan(places, patches)
        on_device = mask.cuda()
        kernel = self.timed(lambda one: pool.apply(one, plan), self.sets(batch, torch.bfloat16))
        plain = self.timed(lambda one: self.device.apply_device(self.job(one, on_device, None, None)), self.sets(batch, torch.bfloat16))
        print(f"pool, bfloat16, {batch} rows, 8 patched tokens each: kernel {kernel * 1e6:.1f} µs"
              f" (plain {plain * 1e6:.1f}); bytes sent {plan.words.numel() * 4:,} (masks {mask.numel() * 4:,})")
        for name, step in [("masks sent", sent), ("plan made and sent", planned)]:
            print(f"  a step, {name}: {self.wall(step) * 1e6:.0f} µs from call to done")

    def measure_calls(self):
        """What a call costs in Python, which a graph hides."""
        print()
        logits = torch.randn(1, self.arguments.vocabulary, device="cuda")
        mask = torch.full((1, (self.arguments.vocabulary + 31) // 32), -1, dtype=torch.int32, device="cuda")
        for way, call in self.ways(mask):
            print(f"one call from Python, one row, nothing to do: {way} {self.wall(lambda: call(logits)) * 1e6:.1f} µs to done")
        public = self.wall(lambda: self.kernels.apply_mask_inplace(logits, mask))
        print(f"apply_mask_inplace: {public * 1e6:.1f} µs to done")

    @staticmethod
    def wall(step, times=200):
        """Median seconds from the call until the device is done."""
        took = []
        for _ in range(times):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            took.append(time.perf_counter() - begin)
        return statistics.median(took)


if __name__ == "__main__":
    main()
