"""Plain layers, in inference and in training, in other layouts and precisions."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.programs.registry import conv_model, mlp_model, program


@program
def mlp() -> None:
    compiled = torch.compile(mlp_model())
    with torch.no_grad():
        compiled(torch.randn(4, 8))


@program
def inference_mode() -> None:
    compiled = torch.compile(mlp_model())
    with torch.inference_mode():
        compiled(torch.randn(4, 8))


@program
def training() -> None:
    compiled = torch.compile(mlp_model())
    compiled(torch.randn(4, 8)).sum().backward()
    with torch.no_grad():
        compiled(torch.randn(4, 8))


@program
def forward_alone() -> None:
    """The backward graph is never compiled, so AOTAutograd's entry is never stored: the second lookup misses, too."""
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(mlp_model())(torch.randn(4, 8))


@program
def convolution() -> None:
    compiled = torch.compile(conv_model())
    compiled(torch.randn(2, 3, 8, 8)).sum().backward()


@program
def channels_last() -> None:
    model = conv_model().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    torch.compile(model)(x).sum().backward()


@program
def pooling() -> None:
    """The second convolution's backward gives a tensor of other strides than the backward of the pool takes a view of."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU())
    torch.compile(model)(torch.randn(4, 3, 18, 18)).square().sum().backward()


@program
def dropout() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 4))
    torch.compile(model)(torch.randn(4, 8)).sum().backward()


@program
def gru_cell() -> None:
    compiled = torch.compile(nn.GRUCell(8, 8))
    compiled(torch.randn(4, 8), torch.randn(4, 8)).sum().backward()


@program
def embedding() -> None:
    model = nn.Sequential(nn.Embedding(16, 8), nn.LayerNorm(8), nn.Linear(8, 16))
    tokens = torch.arange(8).reshape(2, 4)
    loss = nn.functional.cross_entropy(torch.compile(model)(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()


@program
def attention() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    torch.compile(layer)(torch.randn(2, 8, 32)).sum().backward()


@program
def causal_attention() -> None:
    @torch.compile
    def attend(q: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    attend(torch.randn(2, 2, 8, 16, requires_grad=True)).sum().backward()


@program
def flex_attention() -> None:
    from torch.nn.attention.flex_attention import flex_attention as attention

    compiled = torch.compile(attention)
    q, k, v = (torch.randn(1, 2, 32, 16) for _ in range(3))
    with torch.no_grad():
        compiled(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j))


@program
def flex_attention_with_mask() -> None:
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.attention.flex_attention import flex_attention as attention

    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cpu")
    q, k, v = (torch.randn(1, 2, 128, 16) for _ in range(3))
    with torch.no_grad():
        torch.compile(attention)(q, k, v, block_mask=mask)


@program
def autocast() -> None:
    compiled = torch.compile(mlp_model())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = compiled(torch.randn(4, 8)).float().sum()
    loss.backward()


@program
def autocast_within() -> None:
    layer = nn.Linear(8, 8)

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x).relu()

    forward(torch.randn(4, 8)).float().sum().backward()


@program
def half_precision() -> None:
    torch.compile(mlp_model().bfloat16())(torch.randn(4, 8).bfloat16()).sum().backward()


@program
def checkpointed() -> None:
    first, second = nn.Linear(8, 8), nn.Linear(8, 8)

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        hidden = checkpoint(lambda t: first(t).sin().cos(), x, use_reentrant=False)
        return second(hidden)

    forward(torch.randn(4, 8, requires_grad=True)).sum().backward()


@program
def mutated_buffer() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x + self.count

    compiled = torch.compile(Counter())
    with torch.no_grad():
        compiled(torch.randn(3))
        compiled(torch.randn(3))


class Tied(nn.Module):
    """A language model in small: its first and its last layer share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(32))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.block(self.embedding(tokens) * self.scale)
        return self.head(hidden)  # type: ignore[no-any-return]


@program
def converted() -> None:
    model = Tied().to(torch.bfloat16)
    adam = torch.optim.AdamW(model.parameters())
    compiled = torch.compile(model)
    for _ in range(2):
        logits = compiled(torch.randint(50, (2, 8)))
        torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), torch.randint(50, (16,))).backward()
        adam.step()
        adam.zero_grad()
