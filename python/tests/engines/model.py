"""Makes a folder with a small real model, as engines want it, out of the GGUF file that 'make assets' fetches.

    python model.py SmolLM2-135M-Instruct.Q4_1.gguf FOLDER
"""

import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(gguf: pathlib.Path, folder: pathlib.Path) -> None:
    """Weights come out of their four bits as ordinary numbers, in a model that no longer knows where they came from and can be saved."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    packed = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    config = packed.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(packed.state_dict())
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    convert(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
