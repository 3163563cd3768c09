"""Models of transformers; see model_sizes.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import transformers as hf
from model_sizes import Made, Size, pictures


def token_ids(size: Size) -> torch.Tensor:
    return torch.arange(size.batch * size.length).reshape(size.batch, size.length) % 60 + 2


def text_config(name: str, size: Size, **more: Any) -> Any:
    """A configuration with the names that most of the library shares."""
    usual = {
        "vocab_size": 64, "hidden_size": size.hidden, "num_hidden_layers": size.layers,
        "num_attention_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64,
        "hidden_act": size.activation, "attn_implementation": size.attention, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 1,
    }  # fmt: skip
    return getattr(hf, f"{name}Config")(**usual | more)


def encoder(name: str, size: Size, **more: Any) -> Made:
    model = getattr(hf, f"{name}Model")
    return model(text_config(name, size, **more)), {"input_ids": token_ids(size)}


def decoder(name: str, size: Size, **more: Any) -> Made:
    model = getattr(hf, f"{name}ForCausalLM")
    made = model(text_config(name, size, **({"num_key_value_heads": 1} | more)))
    return made, {"input_ids": token_ids(size), "use_cache": False}


bert = partial(encoder, "Bert")
roberta = partial(encoder, "Roberta")
electra = partial(encoder, "Electra", embedding_size=16)
albert = partial(encoder, "Albert", embedding_size=16)
clip_text = partial(encoder, "CLIPText")
llama = partial(decoder, "Llama")
qwen2 = partial(decoder, "Qwen2")
qwen3 = partial(decoder, "Qwen3", head_dim=16)
mistral = partial(decoder, "Mistral", head_dim=16)
gpt_neox = partial(decoder, "GPTNeoX")
phi = partial(decoder, "Phi", num_key_value_heads=2)


def distilbert(size: Size) -> Made:
    config = hf.DistilBertConfig(vocab_size=64, dim=size.hidden, n_layers=size.layers, n_heads=2,
        hidden_dim=48, activation=size.activation, max_position_embeddings=64,
        attn_implementation=size.attention)  # fmt: skip
    return hf.DistilBertModel(config), {"input_ids": token_ids(size)}


def gpt2(size: Size) -> Made:
    config = hf.GPT2Config(vocab_size=64, n_embd=size.hidden, n_layer=size.layers, n_head=2, n_positions=64,
        activation_function=size.activation, attn_implementation=size.attention, bos_token_id=1,
        eos_token_id=1)  # fmt: skip
    return hf.GPT2LMHeadModel(config), {"input_ids": token_ids(size), "use_cache": False}


def opt(size: Size) -> Made:
    config = hf.OPTConfig(vocab_size=64, hidden_size=size.hidden, word_embed_proj_dim=size.hidden,
        num_hidden_layers=size.layers, num_attention_heads=2, ffn_dim=48, max_position_embeddings=64,
        activation_function=size.activation, attn_implementation=size.attention)  # fmt: skip
    return hf.OPTForCausalLM(config), {"input_ids": token_ids(size), "use_cache": False}


def gemma(size: Size) -> Made:
    return decoder("Gemma", size, head_dim=16, hidden_activation=size.activation)


def mamba(size: Size) -> Made:
    config = hf.MambaConfig(
        vocab_size=64, hidden_size=size.hidden, state_size=4, num_hidden_layers=size.layers, use_mambapy=False
    )
    return hf.MambaForCausalLM(config), {"input_ids": token_ids(size), "use_cache": False}


def t5(size: Size) -> Made:
    config = hf.T5Config(vocab_size=64, d_model=size.hidden, d_kv=16, d_ff=48, num_layers=size.layers,
        num_heads=2, feed_forward_proj=size.activation, decoder_start_token_id=0)  # fmt: skip
    ids = token_ids(size)
    return hf.T5Model(config), {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}


def bart(size: Size) -> Made:
    config = hf.BartConfig(vocab_size=64, d_model=size.hidden, encoder_layers=size.layers,
        decoder_layers=size.layers, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48,
        decoder_ffn_dim=48, max_position_embeddings=64, activation_function=size.activation,
        attn_implementation=size.attention)  # fmt: skip
    ids = token_ids(size)
    return hf.BartModel(config), {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}


def whisper(size: Size) -> Made:
    config = hf.WhisperConfig(vocab_size=64, d_model=size.hidden, num_mel_bins=8, encoder_layers=size.layers,
        decoder_layers=size.layers, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48,
        decoder_ffn_dim=48, max_source_positions=16, max_target_positions=16,
        activation_function=size.activation, attn_implementation=size.attention, pad_token_id=0,
        bos_token_id=1, eos_token_id=1, decoder_start_token_id=1)  # fmt: skip
    features = torch.randn(size.batch, 8, 32)
    inputs = {"input_features": features, "decoder_input_ids": token_ids(size), "use_cache": False}
    return hf.WhisperModel(config), inputs


def of_pictures(name: str, size: Size) -> Made:
    config = getattr(hf, f"{name}Config")(hidden_size=size.hidden, num_hidden_layers=size.layers,
        num_attention_heads=2, intermediate_size=48, image_size=size.pixels, patch_size=8,
        hidden_act=size.activation, attn_implementation=size.attention)  # fmt: skip
    return getattr(hf, f"{name}Model")(config), {"pixel_values": pictures(size)}


vit = partial(of_pictures, "ViT")
clip_vision = partial(of_pictures, "CLIPVision")
dinov2 = partial(of_pictures, "Dinov2")
