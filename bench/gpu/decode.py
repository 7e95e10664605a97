#!/usr/bin/env python3
"""A step of a language model on a GPU, free and constrained by each engine that is installed.

    pip install torch numpy tokenizers target/wheels/*.whl llguidance xgrammar
    python bench/gpu/decode.py --data DIR --tokenizer tokenizer.json --models 1B,8B --rows 1,64,256

The model has the shape of Llama 3 and random weights, and its step is a captured CUDA graph: embedding, layers with keys and values of --context tokens, logits, the best token. Each
row follows a document of a schema of its own. In a constrained step the graph is launched, every row accepts its token and fills its next mask on the CPU while the GPU computes, the masks are
copied on a stream of their own, and a kernel (the same for all engines) forbids tokens before the best one is taken. A free step is the same without masks. A step ends when the best
tokens are on the CPU. Free and constrained steps take turns; the ratio is the median over steps of constrained : free.

Without a GPU it says so, and ends with status 3.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from cadence import options, prepared, summary

NO_GPU = 3


@dataclass
class Shape:
    """How large a model is."""

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int


SHAPES = {
    "1B": Shape(layers=16, width=2048, inner=8192, heads=32, kv_heads=8),
    "8B": Shape(layers=32, width=4096, inner=14336, heads=32, kv_heads=8),
}


class Model:
    """One step for a number of rows, as a graph."""

    def __init__(self, torch, shape: Shape, rows: int, vocabulary: int, context: int):
        self.torch, self.shape, self.rows = torch, shape, rows
        head = shape.width // shape.heads

        def weight(*size):
            return torch.randn(size, dtype=torch.bfloat16, device="cuda") * size[-1] ** -0.5

        keys = head * shape.kv_heads
        self.layers = [
            (
                weight(shape.width + 2 * keys, shape.width),
                weight(shape.width, shape.width),
                weight(2 * shape.inner, shape.width),
                weight(shape.width, shape.inner),
            )
            for _ in range(shape.layers)
        ]
        self.embedding, self.unembedding = weight(vocabulary, shape.width), weight(vocabulary, shape.width)
        # All layers read the same keys and values: what is read counts, not what it says.
        self.keys, self.values = (weight(rows, shape.kv_heads, context, head) for _ in range(2))
        self.tokens = torch.zeros(rows, dtype=torch.long, device="cuda")
        self.best = torch.zeros(rows, dtype=torch.long, device="cuda")
        self.logits = torch.zeros(rows, vocabulary, dtype=torch.bfloat16, device="cuda")
        self.forward, self.take_best = self.captured(self.compute), self.captured(self.choose)

    def captured(self, call):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph

    def compute(self):
        functional, shape = self.torch.nn.functional, self.shape
        head = shape.width // shape.heads
        x = self.embedding[self.tokens]
        for projections, out, up, down in self.layers:
            y = functional.rms_norm(x, (shape.width,)) @ projections.T
            # The heads that share keys are the positions of one query.
            query = y[:, : shape.width].reshape(self.rows, shape.kv_heads, -1, head)
            seen = functional.scaled_dot_product_attention(query, self.keys, self.values)
            x = x + seen.reshape(self.rows, shape.width) @ out.T
            gate, value = (functional.rms_norm(x, (shape.width,)) @ up.T).chunk(2, dim=-1)
            x = x + (functional.silu(gate) * value) @ down.T
        self.torch.mm(functional.rms_norm(x, (shape.width,)), self.unembedding.T, out=self.logits)

    def choose(self):
        self.torch.argmax(self.logits, dim=-1, out=self.best)


class Loop:
    """Steps of one model, with masks of one engine or without."""

    def __init__(self, torch, apply, model: Model, engine):
        self.torch, self.apply, self.model, self.engine = torch, apply, model, engine
        self.side = torch.cuda.Stream()
        self.given = torch.zeros(model.rows, dtype=torch.long, pin_memory=True)
        self.best = torch.zeros(model.rows, dtype=torch.long, pin_memory=True)
        self.times: list[int] = []
        if engine is not None:
            self.words = torch.empty(tuple(engine.mask.shape), dtype=torch.int32, pin_memory=True)
            self.words.copy_(torch.as_tensor(engine.mask))
            engine.mask = self.words if isinstance(engine.mask, torch.Tensor) else self.words.numpy()
            self.device_words = self.words.cuda()

    def step(self, tokens):
        torch, model = self.torch, self.model
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        self.given.copy_(torch.tensor(tokens))
        model.tokens.copy_(self.given, non_blocking=True)
        model.forward.replay()
        if self.engine is not None:
            if not self.engine.step(tokens):
                raise SystemExit(f"{self.engine.name} refuses a token")
            with torch.cuda.stream(self.side):
                self.device_words.copy_(self.words, non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.side)
            self.apply(model.logits, self.device_words)
        model.take_best.replay()
        self.best.copy_(model.best, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        self.times.append(time.perf_counter_ns() - began)
        if self.engine is not None:
            self.check()

    def check(self):
        """The best token of every row is one that its mask allows."""
        rows = self.torch.arange(self.model.rows)
        bits = self.words[rows, self.best >> 5] >> (self.best & 31).to(self.torch.int32) & 1
        # A row whose text has ended allows nothing.
        if not bool((bits.bool() | (self.words == 0).all(dim=1)).all()):
            raise SystemExit(f"{self.engine.name}: a token was chosen that the mask forbids")


def main() -> int:
    parser = options(__doc__, rows="1,64,256")
    parser.add_argument("--models", default="1B,8B", help="shapes: " + ", ".join(SHAPES))
    parser.add_argument("--context", type=int, default=512, help="tokens whose keys and values each row has")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("there is no PyTorch here; this benchmark needs it, and a GPU")
        return NO_GPU
    if not torch.cuda.is_available():
        print("there is no GPU here that PyTorch knows; nothing is measured")
        return NO_GPU
    from maskwright.torch import apply_token_bitmask_inplace as apply

    torch.manual_seed(arguments.seed)
    tokenizer, engines, counts, documents = prepared(arguments)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {arguments.steps} steps, {len(tokenizer.tokens)} tokens")
    print(f"{'model':<6}{'rows':>6}  {'engine':<18}{'avg':>9}{'p50':>9}{'p95':>9}{'p99':>9}   ms a step   constrained : free")
    with torch.inference_mode():
        for name in arguments.models.split(","):
            for count in counts:
                model = Model(torch, SHAPES[name], count, len(tokenizer.tokens), arguments.context)
                measure(torch, apply, model, engines, documents[:count], arguments.steps, f"{name:<6}{count:>6}")
                del model
                torch.cuda.empty_cache()
    return 0


def measure(torch, apply, model, engines, documents, steps, title):
    for engine in engines:
        engine.start([schema for schema, _ in documents])
    loops = [Loop(torch, apply, model, engine) for engine in [None, *engines]]
    at = [0] * len(documents)
    for step in range(steps + 3):
        if step == 3:
            # The first ones compile kernels.
            for loop in loops:
                loop.times.clear()
        tokens = [document[place] for (_, document), place in zip(documents, at)]
        for turn in range(len(loops)):
            loops[(step + turn) % len(loops)].step(tokens)
        for row, (_, document) in enumerate(documents):
            at[row] += 1
            if at[row] == len(document):
                at[row] = 0
                for engine in engines:
                    engine.restart(row)
    free = loops[0].times
    for loop in loops:
        shares = "".join(f"{nanos / 1e6:9.3f}" for nanos in summary(loop.times))
        ratio = statistics.median(ours / theirs for ours, theirs in zip(loop.times, free))
        name = loop.engine.name if loop.engine else "free"
        print(f"{title}  {name:<18}{shares}               {ratio:8.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
