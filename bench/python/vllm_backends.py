"""What structured output costs in vLLM: the same requests without a structure, with ours, and with vLLM's own backends.

    python bench/python/vllm_backends.py serve MODEL_FOLDER [--rounds 5] [--requests 16] [--tokens 64] [--gpu [--graphs]]
    python bench/python/vllm_backends.py manager TOKENIZER_FOLDER_OR_FILE [--rows 16 64] [--steps 200]
    python bench/python/vllm_backends.py restart TOKENIZER_FOLDER_OR_FILE [--rounds 5]

``serve`` starts a server for each backend and asks them in turn, round by round, so that what else the machine does hits all of them alike; the servers that are not asked are stopped meanwhile. In a round each server gets the requests
at once without a structure, with a schema that it has seen (*warm*), and each with a schema of its own that nobody has seen (*cold*); another of the three comes first each time. All texts have the same number of tokens: schemas ask for more than there is room for, and free text does not stop. A number is the
median of the rounds; what is compared with free text is compared within a round and a server. Beside the clock there is the time that the processes of the server had on processors, which Linux tells: it does not depend on who else wants them.

``manager`` runs vLLM's ``StructuredOutputManager``, without a model, along documents that are valid: the time that a step of a batch waits for its masks and for its tokens to be taken.

``restart`` needs no vLLM: processes that share a folder as ``MASKWRIGHT_CACHE`` ask for the same schemas, one process after the other. The first one compiles them; for the others the time to a first mask is that of what was seen before.

"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

BACKENDS = ("maskwright", "xgrammar", "guidance")


def schema(tag: str) -> dict:
    """A record as people write it, with names of its own."""
    address = {
        "type": "object",
        "properties": {
            f"street_{tag}": {"type": "string", "maxLength": 40},
            "number": {"type": "integer", "minimum": 1, "maximum": 9999},
            "country": {"enum": ["Norway", "Sweden", "Denmark", "Finland", "Iceland"]},
        },
        "required": [f"street_{tag}", "number", "country"],
        "additionalProperties": False,
    }
    person = {
        "type": "object",
        "properties": {
            f"name_{tag}": {"type": "string", "minLength": 3, "maxLength": 30},
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            "score": {"type": "number"},
            "active": {"type": "boolean"},
            "nickname": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "address": {"$ref": "#/$defs/address"},
        },
        "required": [f"name_{tag}", "id", "score", "active", "nickname", "address"],
        "additionalProperties": False,
    }
    return {
        "$defs": {"address": address, "person": person},
        "type": "object",
        "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/person"}, "minItems": 8}},
        "required": ["people"],
        "additionalProperties": False,
    }


def document(tag: str, count: int) -> str:
    """A text that the schema allows."""
    people = [
        {
            f"name_{tag}": f"Person {at} of {count}", "id": f"AB-{1000 + at}", "score": 0.5 + at, "active": at % 2 == 0, "nickname": None if at % 3 else "Pip",
            "address": {f"street_{tag}": f"Long Street {at}", "number": at + 1, "country": ["Norway", "Iceland"][at % 2]},
        }
        for at in range(count)
    ]
    return json.dumps({"people": people})


# ---------------------------------------------------------------------------------------------------------------------------------------------- serve


class Server:
    """A server of vLLM with one backend."""

    def __init__(self, backend: str, port: int, asked: argparse.Namespace) -> None:
        self.backend, self.port = backend, port
        environment = {**os.environ, "MASKWRIGHT_VLLM": "1" if backend == "maskwright" else "0", "HF_HUB_OFFLINE": "1"}
        if not asked.gpu:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        environment.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
        environment.setdefault("VLLM_NO_USAGE_STATS", "1")
        options = {"backend": backend if backend != "maskwright" else "xgrammar"}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", asked.model, "--served-model-name", "small", "--port", str(port),
             "--max-model-len", "1024", "--max-num-seqs", str(asked.requests), "--dtype", asked.dtype or ("bfloat16" if asked.gpu else "float32"),
             "--gpu-memory-utilization", "0.2", *(["--kv-cache-memory-bytes", str(1 << 32)] if asked.gpu else []),
             *(["--compilation-config", '{"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}'] if asked.graphs else ["--enforce-eager"]),
             "--structured-outputs-config", json.dumps(options)],
            env=environment, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
        )

    def signal(self, number: int) -> None:
        """To all processes of the server, if it is still there."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def wait(self) -> None:
        until = time.monotonic() + 1800
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(2)
        self.log.seek(0)
        sys.exit(f"the server of {self.backend} did not start:\n{self.log.read()[-3000:]}")

    def processor_time(self) -> float:
        """Seconds that all processes of the server have had on processors."""
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                # The name of a program may have blanks and brackets in it.
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[3]) == self.process.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, number: int, tokens: int, wanted: dict | None, begun: float) -> tuple[float, float, int, str]:
        """One request: seconds to its first token and to its last, how many tokens came, and the text."""
        body = {
            "model": "small", "messages": [{"role": "user", "content": f"Tell me about {number} people who live in the north, one after the other."}],
            "max_tokens": tokens, "temperature": 0.7, "seed": number, "stream": True, "stream_options": {"include_usage": True},
        }
        if wanted is None:
            body["ignore_eos"] = True
        else:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "people", "schema": wanted}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{self.backend}: status {answer.status}: {answer.read()[:400]!r}")
        first, count, text = None, 0, ""
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            piece = json.loads(line[6:])
            if "error" in piece:
                raise RuntimeError(f"{self.backend}: {piece['error']}")
            if piece.get("usage"):
                count = piece["usage"]["completion_tokens"]
            for choice in piece.get("choices", []):
                if choice["delta"].get("content"):
                    first = first or time.perf_counter() - begun
                    text += choice["delta"]["content"]
        return first or float("nan"), time.perf_counter() - begun, count, text

    def batch(self, requests: int, tokens: int, wanted: list[dict | None]) -> tuple[float, float, float]:
        """All requests at once: tokens a second, the seconds to a first token, in the median, and seconds on processors."""
        used = self.processor_time()
        begun = time.perf_counter()
        with ThreadPoolExecutor(requests) as threads:
            answers = list(threads.map(lambda at: self.ask(at, tokens, wanted[at], begun), range(requests)))
        for (_, _, count, text), one in zip(answers, wanted):
            if count != tokens:
                raise RuntimeError(f"{self.backend}: {count} tokens came instead of {tokens}: {text[-200:]!r}")
            if one is not None and not text.lstrip().startswith("{"):
                raise RuntimeError(f"{self.backend}: this is no JSON: {text[:80]!r}")
        return requests * tokens / max(seconds for _, seconds, _, _ in answers), statistics.median(first for first, _, _, _ in answers), self.processor_time() - used


def serve(options: argparse.Namespace) -> None:
    servers = [Server(backend, options.port + at, options) for at, backend in enumerate(BACKENDS)]
    kinds = ("free", "warm", "cold")
    # What a batch gives, for each backend and kind, round by round.
    measured: dict[tuple[str, str], list[tuple[float, float, float]]] = {(backend, kind): [] for backend in BACKENDS for kind in kinds}
    try:
        for server in servers:
            server.wait()
        for server in servers:
            server.signal(signal.SIGSTOP)
        n, tokens = options.requests, options.tokens
        for number in range(-1, options.rounds):
            for server in servers if number % 2 else reversed(servers):
                server.signal(signal.SIGCONT)
                first_kind = number % len(kinds)
                for kind in kinds[first_kind:] + kinds[:first_kind]:
                    tag = {"free": None, "warm": "warm", "cold": f"r{number + 1}"}[kind]
                    wanted = [None if tag is None else schema(tag if kind == "warm" else f"{tag}_{at}") for at in range(n)]
                    got = server.batch(n, tokens, wanted)
                    if number >= 0:
                        measured[server.backend, kind].append(got)
                        print(f"round {number + 1} {server.backend:11} {kind:5} {got[0]:7.1f} tokens/s, first {1000 * got[1]:7.0f} ms, {got[2]:6.2f} s on processors", file=sys.stderr, flush=True)
                server.signal(signal.SIGSTOP)
    finally:
        for server in servers:
            server.stop()
    print(f"{options.requests} requests at once, {options.tokens} tokens each; medians of {options.rounds} rounds")
    print("| | tokens/s | of free text in the same round, with quartiles | first token | beyond that of free text | on processors | beyond that of free text |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    free = [one for backend in BACKENDS for one in measured[backend, "free"]]
    speed, first, used = (statistics.median(column) for column in zip(*free))
    print(f"| free text, all servers | {speed:.1f} | | {1000 * first:.0f} ms | | {used:.2f} s | |")
    for kind in ("warm", "cold"):
        for backend in BACKENDS:
            speed, first, used = (statistics.median(column) for column in zip(*measured[backend, kind]))
            pairs = list(zip(measured[backend, kind], measured[backend, "free"]))
            shares = [100 * mine[0] / its[0] for mine, its in pairs]
            low, share, high = statistics.quantiles(shares, n=4) if len(shares) > 1 else shares * 3
            later, more = (statistics.median(mine[at] - its[at] for mine, its in pairs) for at in (1, 2))
            print(f"| {backend}, {kind} schema | {speed:.1f} | {share:.1f} % ({low:.1f} to {high:.1f}) | {1000 * first:.0f} ms | {1000 * later:+.0f} ms | {used:.2f} s | {more:+.2f} s |")


# -------------------------------------------------------------------------------------------------------------------------------------------- manager


def manager(options: argparse.Namespace) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["MASKWRIGHT_VLLM"] = "0"
    import transformers
    import vllm.v1.structured_output as structured
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams
    from vllm.v1.structured_output.request import StructuredOutputRequest

    path = pathlib.Path(options.tokenizer)
    if path.is_file():
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
        tokenizer.eos_token = next(text for text in ("<|eot_id|>", "<|im_end|>", "</s>") if text in tokenizer.get_vocab())
    else:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path))
    width = len(tokenizer)
    structured.cached_tokenizer_from_config = lambda model_config: tokenizer
    originals = {name: getattr(structured.StructuredOutputManager, name) for name in ("grammar_init", "_create_grammar", "grammar_bitmask", "validate_tokens")}
    validate = SamplingParams._validate_structured_outputs

    def made(backend: str, rows: int) -> structured.StructuredOutputManager:
        for name, original in originals.items():
            setattr(structured.StructuredOutputManager, name, original)
        structured.StructuredOutputManager._maskwright_is_installed = False
        SamplingParams._validate_structured_outputs = validate
        if backend == "maskwright":
            import maskwright.vllm

            maskwright.vllm.install()
        config = SimpleNamespace(
            backend=backend, disable_any_whitespace=False, disable_additional_properties=False, reasoning_parser="", reasoning_parser_plugin="", enable_in_reasoning=False,
        )
        return structured.StructuredOutputManager(
            SimpleNamespace(
                parallel_config=SimpleNamespace(distributed_executor_backend=None),
                scheduler_config=SimpleNamespace(max_num_seqs=rows, async_scheduling=False),
                speculative_config=None, num_speculative_tokens=0, structured_outputs_config=config,
                model_config=SimpleNamespace(skip_tokenizer_init=False, get_vocab_size=lambda: width, is_diffusion=False, hf_config=SimpleNamespace(model_type="llama")),
            )
        )

    def request(backend: str, name: str, wanted: dict) -> SimpleNamespace:
        params = StructuredOutputsParams(json=wanted)
        params._backend = backend
        sampling = SamplingParams(structured_outputs=params, max_tokens=10_000, stop_token_ids=[tokenizer.eos_token_id])
        return SimpleNamespace(
            request_id=name, sampling_params=sampling, structured_output_request=StructuredOutputRequest.from_sampling_params(sampling),
            use_structured_output=True, num_output_tokens=0, prompt_token_ids=[1], all_token_ids=[1],
        )

    def ready(one: SimpleNamespace) -> None:
        while not one.structured_output_request.is_grammar_ready:
            time.sleep(0.0001)
        if isinstance(one.structured_output_request.grammar, BaseException):
            raise one.structured_output_request.grammar

    print(f"{path.name}, {width} tokens; microseconds, medians of {options.rounds} rounds of {options.steps} steps")
    print("| rows | backend | masks of a step, median | mean | worst | tokens of a step taken, mean | ready, cold schema |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for rows in options.rows:
        measured: dict[str, list[tuple[float, ...]]] = {backend: [] for backend in BACKENDS}
        for number in range(options.rounds):
            for backend in BACKENDS if number % 2 else reversed(BACKENDS):
                m = made(backend, rows)
                # The first request of an engine makes the backend, and reads the vocabulary.
                m.grammar_init(warmup := request(backend, "warmup", {"type": "integer"}))
                ready(warmup)
                begun = time.perf_counter()
                m.grammar_init(cold := request(backend, "cold", schema(f"x{number}")))
                ready(cold)
                m.grammar_bitmask({"cold": cold}, ["cold"], {})
                compile_time = time.perf_counter() - begun
                tokens = tokenizer.encode(document("warm", 60), add_special_tokens=False)
                requests = {f"r{at}": request(backend, f"r{at}", schema("warm")) for at in range(rows)}
                for one in requests.values():
                    m.grammar_init(one)
                for one in requests.values():
                    ready(one)
                # Rows stand at different places.
                places = {name: at * 7 for at, name in enumerate(requests)}
                for name, one in requests.items():
                    if places[name] and not one.structured_output_request.grammar.accept_tokens(name, tokens[: places[name]]):
                        raise SystemExit(f"{backend} refuses the document")
                fills, takes = [], []
                for _ in range(options.steps):
                    begun = time.perf_counter()
                    masks = m.grammar_bitmask(requests, list(requests), {})
                    filled = time.perf_counter()
                    for name, one in requests.items():
                        if not one.structured_output_request.grammar.accept_tokens(name, [tokens[places[name]]]):
                            raise SystemExit(f"{backend} refuses token {places[name]} of the document")
                        places[name] += 1
                    takes.append(time.perf_counter() - filled)
                    fills.append(filled - begun)
                    assert masks.shape[0] == rows
                measured[backend].append((statistics.median(fills), statistics.fmean(fills), max(fills), statistics.fmean(takes), compile_time))
        for backend in BACKENDS:
            numbers = [1e6 * statistics.statistics.median(column) for column in zip(*measured[backend])]
            print(f"| {rows} | {backend} | " + " | ".join(f"{number:,.0f}" for number in numbers) + " |", flush=True)


# -------------------------------------------------------------------------------------------------------------------------------------------- restart


def restart(options: argparse.Namespace) -> None:
    if os.environ.get("MASKWRIGHT_CACHE"):
        print(json.dumps(first_masks(options.tokenizer)))
        return
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds + 1):
            done = subprocess.run([sys.executable, __file__, "restart", options.tokenizer], env={**os.environ, "MASKWRIGHT_CACHE": folder}, check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
    print("| | vocabulary | file | first request of the process | the others, median | worst |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, some in (("nothing was seen before", runs[:1]), (f"after a restart, medians of {options.rounds}", runs[1:])):
        vocabulary, file, first, *others = ([run[at] for run in some] for at in range(len(runs[0])))
        cells = [f"{1000 * statistics.median(vocabulary):.0f} ms", f"{1000 * statistics.median(file):.0f} ms", f"{1e6 * statistics.median(first):.0f} us"]
        cells += [f"{1e6 * statistics.median(pick(run[3:]) for run in some):.0f} us" for pick in (statistics.median, max)]
        print(f"| {name} | " + " | ".join(cells) + " |")


def first_masks(tokenizer: str) -> list[float]:
    """Seconds to read the vocabulary and the file, and then for each schema from asking for it to its first mask."""
    import numpy

    import maskwright as mw
    from maskwright._cache import opened

    begun = time.perf_counter()
    vocabulary = mw.Vocabulary.load(tokenizer)
    seconds = [time.perf_counter() - begun]
    compiler = mw.Compiler(vocabulary)
    begun = time.perf_counter()
    file = opened(compiler)
    seconds.append(time.perf_counter() - begun)
    mask = numpy.full((1, vocabulary.words), -1, dtype=numpy.int32)
    wanted = [mw.json_schema(schema(f"s{at}"), whitespace="tidy") for at in range(16)] + [mw.regex("[A-Z]{2}-[0-9]{4}"), mw.json_object(whitespace="tidy"), mw.choice(["red", "green"])]
    for one in wanted:
        begun = time.perf_counter()
        compiler.compile(one).matcher().fill_mask(mask)
        seconds.append(time.perf_counter() - begun)
    assert file is not None
    file.save()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("serve")
    one.add_argument("model")
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--requests", type=int, default=16)
    one.add_argument("--tokens", type=int, default=64)
    one.add_argument("--port", type=int, default=8140)
    one.add_argument("--dtype", help="what the model computes in (default: bfloat16 on a GPU; float32 on a processor, because bfloat16 is slow on those that do not have it)")
    one.add_argument("--gpu", action="store_true", help="on a GPU, which all servers share; otherwise on the processor, also where there is a GPU")
    one.add_argument("--graphs", action="store_true", help="steps of the model as CUDA graphs, with which they take the least time; otherwise one operation at a time")
    one.set_defaults(run=serve)
    two = commands.add_parser("manager")
    two.add_argument("tokenizer")
    two.add_argument("--rows", type=int, nargs="+", default=[16, 64])
    two.add_argument("--steps", type=int, default=200)
    two.add_argument("--rounds", type=int, default=5)
    two.set_defaults(run=manager)
    three = commands.add_parser("restart")
    three.add_argument("tokenizer")
    three.add_argument("--rounds", type=int, default=5)
    three.set_defaults(run=restart)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
