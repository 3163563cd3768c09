"""Models of transformers; see model_sizes.py."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from model_sizes import Made, Size, pictures


def token_ids(size: Size) -> torch.Tensor:
    return torch.arange(size.batch * size.length).reshape(size.batch, size.length) % 60 + 2


def text_config(kind: type, size: Size, **more: Any) -> Any:
    """A configuration with the names that most of the library shares."""
    return kind(
        **{
            "vocab_size": 64,
            "hidden_size": size.hidden,
            "num_hidden_layers": size.layers,
            "num_attention_heads": 2,
            "intermediate_size": 48,
            "max_position_embeddings": 64,
            "hidden_act": size.activation,
            "attn_implementation": size.attention,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 1,
        }
        | more
    )


def encoder(model: type, config: type, size: Size, **more: Any) -> Made:
    return model(text_config(config, size, **more)), {"input_ids": token_ids(size)}


def decoder(model: type, config: type, size: Size, **more: Any) -> Made:
    made = model(text_config(config, size, **({"num_key_value_heads": 1} | more)))
    return made, {"input_ids": token_ids(size), "use_cache": False}


def bert(size: Size) -> Made:
    return encoder(hf.BertModel, hf.BertConfig, size)


def roberta(size: Size) -> Made:
    return encoder(hf.RobertaModel, hf.RobertaConfig, size)


def electra(size: Size) -> Made:
    return encoder(hf.ElectraModel, hf.ElectraConfig, size, embedding_size=16)


def distilbert(size: Size) -> Made:
    config = hf.DistilBertConfig(vocab_size=64, dim=size.hidden, n_layers=size.layers, n_heads=2,
        hidden_dim=48, activation=size.activation, max_position_embeddings=64,
        attn_implementation=size.attention)  # fmt: skip
    return hf.DistilBertModel(config), {"input_ids": token_ids(size)}


def albert(size: Size) -> Made:
    return encoder(hf.AlbertModel, hf.AlbertConfig, size, embedding_size=16)


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


def llama(size: Size) -> Made:
    return decoder(hf.LlamaForCausalLM, hf.LlamaConfig, size)


def qwen2(size: Size) -> Made:
    return decoder(hf.Qwen2ForCausalLM, hf.Qwen2Config, size)


def qwen3(size: Size) -> Made:
    return decoder(hf.Qwen3ForCausalLM, hf.Qwen3Config, size, head_dim=16)


def mistral(size: Size) -> Made:
    return decoder(hf.MistralForCausalLM, hf.MistralConfig, size, head_dim=16)


def gemma(size: Size) -> Made:
    return decoder(hf.GemmaForCausalLM, hf.GemmaConfig, size, head_dim=16, hidden_activation=size.activation)


def gpt_neox(size: Size) -> Made:
    return decoder(hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig, size)


def phi(size: Size) -> Made:
    return decoder(hf.PhiForCausalLM, hf.PhiConfig, size, num_key_value_heads=2)


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


def picture_config(kind: type, size: Size, **more: Any) -> Any:
    return kind(
        **{
            "hidden_size": size.hidden,
            "num_hidden_layers": size.layers,
            "num_attention_heads": 2,
            "intermediate_size": 48,
            "image_size": size.pixels,
            "patch_size": 8,
            "hidden_act": size.activation,
            "attn_implementation": size.attention,
        }
        | more
    )


def vit(size: Size) -> Made:
    return hf.ViTModel(picture_config(hf.ViTConfig, size)), {"pixel_values": pictures(size)}


def clip_vision(size: Size) -> Made:
    return hf.CLIPVisionModel(picture_config(hf.CLIPVisionConfig, size)), {"pixel_values": pictures(size)}


def clip_text(size: Size) -> Made:
    return encoder(hf.CLIPTextModel, hf.CLIPTextConfig, size)


def dinov2(size: Size) -> Made:
    return hf.Dinov2Model(picture_config(hf.Dinov2Config, size)), {"pixel_values": pictures(size)}
