"""Models of torchvision; see model_sizes.py. What they are called with is x."""

from __future__ import annotations

import torch
import torchvision.models as tv
from model_sizes import Made, Size, pictures
from torchvision.models.detection.retinanet import RetinaNetHead


def tv_resnet(size: Size) -> Made:
    model = tv.ResNet(tv.resnet.BasicBlock, [size.layers, 1, 1, 1], num_classes=4)
    return model, {"x": pictures(size)}


def tv_densenet(size: Size) -> Made:
    model = tv.DenseNet(growth_rate=4, block_config=(size.layers, 2), num_init_features=8, num_classes=4)
    return model, {"x": pictures(size)}


def tv_mobilenet(size: Size) -> Made:
    return tv.mobilenet_v3_small(width_mult=0.25, num_classes=4), {"x": pictures(size)}


def tv_vit(size: Size) -> Made:
    model = tv.VisionTransformer(image_size=size.pixels, patch_size=8, num_layers=size.layers, num_heads=2,
        hidden_dim=size.hidden, mlp_dim=48, num_classes=4)  # fmt: skip
    return model, {"x": pictures(size)}


def tv_swin(size: Size) -> Made:
    model = tv.SwinTransformer(patch_size=[4, 4], embed_dim=16, depths=[size.layers, 1], num_heads=[2, 2],
        window_size=[2, 2], num_classes=4)  # fmt: skip
    return model, {"x": pictures(size)}


def tv_squeezenet(size: Size) -> Made:
    return tv.squeezenet1_1(num_classes=4), {"x": pictures(size)}


def tv_retinanet_head(size: Size) -> Made:
    head = RetinaNetHead(in_channels=32, num_anchors=2, num_classes=3)
    levels = [torch.randn(size.batch, 32, side, side) for side in (8, 4)]
    return head, {"x": levels}
