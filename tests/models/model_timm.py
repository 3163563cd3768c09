"""Models of timm; see model_sizes.py. What they are called with is x."""

from __future__ import annotations

import timm.layers
import timm.models as tm
import torch
from model_sizes import Made, Size, pictures


def act_layer(size: Size) -> type[torch.nn.Module]:
    return timm.layers.get_act_layer(size.activation)


def timm_resnet(size: Size) -> Made:
    model = tm.resnet.ResNet(tm.resnet.BasicBlock, [size.layers, 1, 1, 1], channels=(8, 8, 16, 16),
        num_classes=4, act_layer=act_layer(size), stem_width=8)  # fmt: skip
    return model, {"x": pictures(size)}


def timm_convnext(size: Size) -> Made:
    model = tm.convnext.ConvNeXt(
        depths=(size.layers, 1, 1, 1), dims=(8, 8, 16, 16), num_classes=4, act_layer=act_layer(size)
    )
    return model, {"x": pictures(size)}


def timm_vit(size: Size) -> Made:
    model = tm.vision_transformer.VisionTransformer(img_size=size.pixels, patch_size=8,
        embed_dim=size.hidden, depth=size.layers, num_heads=2, num_classes=4, act_layer=act_layer(size))  # fmt: skip
    return model, {"x": pictures(size)}


def timm_mixer(size: Size) -> Made:
    model = tm.mlp_mixer.MlpMixer(img_size=size.pixels, patch_size=8, num_blocks=size.layers,
        embed_dim=size.hidden, num_classes=4, act_layer=act_layer(size))  # fmt: skip
    return model, {"x": pictures(size)}


def timm_swin(size: Size) -> Made:
    model = tm.swin_transformer.SwinTransformer(img_size=size.pixels, patch_size=4, embed_dim=16,
        depths=(size.layers, 1), num_heads=(2, 2), window_size=4, num_classes=4)  # fmt: skip
    return model, {"x": pictures(size)}


def timm_efficientnet(size: Size) -> Made:
    model = timm.create_model("mobilenetv3_small_050", num_classes=4, act_layer=act_layer(size))
    return model, {"x": pictures(size)}


def timm_poolformer(size: Size) -> Made:
    model = tm.metaformer.MetaFormer(
        depths=(size.layers, 1), dims=(16, 32), num_classes=4, token_mixers=tm.metaformer.Pooling
    )
    return model, {"x": pictures(size)}
