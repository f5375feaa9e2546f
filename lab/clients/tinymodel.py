"""Makes a tiny model for vLLM: a Llama of two layers without weights.

The tokenizer is trained on the spot on a few sentences. vLLM fills in random
weights (--load-format dummy): the answers are nonsense, but the engine, its
traces and its metrics are the real ones.
"""

import json
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = """
A flight recorder keeps what happened, so that afterwards it can be asked.
The model answers, the service answers, and someone has to find out why not.
Tokens go in and tokens come out; both are counted, by the client and the server.
"""

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

SPECIAL = ["<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
    "rope_theta": 10000.0,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def make(folder):
    """Writes config.json and the tokenizer's files into folder."""
    os.makedirs(folder, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        TEXT.splitlines(),
        trainers.BpeTrainer(
            vocab_size=512,
            special_tokens=SPECIAL,
            # All bytes, so that any text can be encoded.
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    write(folder, "config.json", {**CONFIG, "vocab_size": tokenizer.get_vocab_size()})
    write(
        folder,
        "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": "<pad>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "model_max_length": CONFIG["max_position_embeddings"],
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def write(folder, name, value):
    """Writes a value as JSON."""
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)


if __name__ == "__main__":
    make(sys.argv[1])
