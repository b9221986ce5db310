#!/usr/bin/env python3
"""What PyTorch itself makes of a dense shape on an NVIDIA GPU: a yardstick for `motet bench --device cuda`.

Random weights, a static cache, each layer compiled, the whole step replayed as one CUDA graph. In 4 bits torch's own
kernel multiplies (groups of 64). Prints tokens/s by number of sequences, of a prompt, and what the card itself reaches.

usage: bench/anchor.py [--shape qwen3-8b,qwen3-0.6b] [--bits 16,4] [--batch 1,8,32] [--depth 512] [--prompt 8192]
"""

import argparse
import time

import torch
import torch.nn.functional as F

SHAPES = {  # hidden, inter, layers, heads, key heads, head, vocabulary
    'qwen3-0.6b': (1024, 3072, 28, 16, 8, 128, 151936),
    'qwen3-8b': (4096, 12288, 36, 32, 8, 128, 151936),
}
GROUP = 64


class Linear(torch.nn.Module):
    """y = W x with random W, in bf16 or as torch packs 4 bits."""

    def __init__(self, k, n, bits):
        super().__init__()
        self.bits, self.n = bits, n
        if bits == 4:
            codes = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device='cuda')
            self.register_buffer('w', torch.ops.aten._convert_weight_to_int4pack(codes, 8))
            self.register_buffer('scales', torch.full((k // GROUP, n, 2), 0.002, dtype=torch.bfloat16, device='cuda'))
        else:
            self.register_buffer('w', torch.randn(n, k, dtype=torch.bfloat16, device='cuda') * k**-0.5)

    def forward(self, x):
        if self.bits == 4:
            rows = x.reshape(-1, x.shape[-1])
            return torch.ops.aten._weight_int4pack_mm(rows, self.w, GROUP, self.scales).reshape(*x.shape[:-1], self.n)
        return F.linear(x, self.w)


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(torch.nn.Module):
    def __init__(self, shape, bits, batch, context):
        super().__init__()
        hidden, inter, _, self.heads, self.key_heads, self.head, _ = shape
        self.qkv = Linear(hidden, (self.heads + 2 * self.key_heads) * self.head, bits)
        self.out = Linear(self.heads * self.head, hidden, bits)
        self.gate_up = Linear(hidden, 2 * inter, bits)
        self.down = Linear(inter, hidden, bits)
        room = (batch, self.key_heads, context, self.head)
        self.register_buffer('keys', torch.zeros(room, dtype=torch.bfloat16, device='cuda'))
        self.register_buffer('values', torch.zeros(room, dtype=torch.bfloat16, device='cuda'))

    def forward(self, x, at, cos, sin, mask):
        b, t, _ = x.shape
        parts = self.qkv(F.rms_norm(x, x.shape[-1:])).view(b, t, -1, self.head).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.key_heads, self.key_heads), 1)
        q = turned(F.rms_norm(q, q.shape[-1:]), cos, sin)
        k = turned(F.rms_norm(k, k.shape[-1:]), cos, sin)
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        if t > 1:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            o = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask, enable_gqa=True)
        x = x + self.out(o.transpose(1, 2).reshape(b, t, -1))
        gate, up = self.gate_up(F.rms_norm(x, x.shape[-1:])).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def seconds(work, least=0.5):
    """Of one run, in the mean."""
    work()
    torch.cuda.synchronize()
    runs, start = 0, time.perf_counter()
    while time.perf_counter() - start < least:
        work()
        runs += 1
        if runs % 4 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / runs


def rope(at, head):
    angles = at[:, None].float() * (1e6 ** (-torch.arange(0, head, 2, device='cuda') / head))
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def decode(shape, bits, batch, depth):
    """Tokens/s of a batch of answers, each behind `depth` tokens."""
    context = depth + 128
    layers = [Layer(shape, bits, batch, context) for _ in range(shape[2])]
    table = torch.randn(shape[6], shape[0], dtype=torch.bfloat16, device='cuda')
    top = Linear(shape[0], shape[6], bits)
    tokens = torch.zeros(batch, 1, dtype=torch.long, device='cuda')
    at = torch.tensor([depth], device='cuda')
    mask = (torch.arange(context, device='cuda') <= depth)[None, None, None]
    layer = torch.compile(Layer.forward, fullgraph=True, dynamic=False)

    def step():
        x = table[tokens]
        cos, sin = rope(at, shape[5])
        for one in layers:
            x = layer(one, x, at, cos, sin, mask)
        tokens.copy_(top(F.rms_norm(x, x.shape[-1:])).argmax(-1))

    with torch.no_grad():
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return batch / seconds(graph.replay)


def prompt(shape, bits, tokens):
    """Tokens/s of one prompt."""
    layers = [Layer(shape, bits, 1, tokens) for _ in range(shape[2])]
    table = torch.randn(shape[6], shape[0], dtype=torch.bfloat16, device='cuda')
    at = torch.arange(tokens, device='cuda')
    layer = torch.compile(Layer.forward, fullgraph=True, dynamic=False)
    with torch.no_grad():
        cos, sin = rope(at, shape[5])

        def step():
            x = table[torch.zeros(1, tokens, dtype=torch.long, device='cuda')]
            for one in layers:
                x = layer(one, x, at, cos, sin, None)

        step()
        return tokens / seconds(step)


def card():
    """Bytes/s of a copy (read and written), operations/s of a product in bf16."""
    a = torch.empty(1 << 30, dtype=torch.uint8, device='cuda')
    b = torch.empty_like(a)
    copy = 2 * a.numel() / seconds(lambda: b.copy_(a))
    x = torch.randn(8192, 8192, dtype=torch.bfloat16, device='cuda')
    return copy, 2 * 8192**3 / seconds(lambda: x @ x)


def numbers(text):
    return [int(n) for n in text.split(',') if n]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--shape', default='qwen3-8b,qwen3-0.6b')
    parser.add_argument('--bits', type=numbers, default=[16, 4])
    parser.add_argument('--batch', type=numbers, default=[1, 8, 32])
    parser.add_argument('--depth', type=int, default=512)
    parser.add_argument('--prompt', type=numbers, default=[8192])
    options = parser.parse_args()
    copy, product = card()
    print(f'{torch.cuda.get_device_name()}: copies {copy / 1e12:.2f} TB/s, multiplies bf16 {product / 1e12:.0f} TFLOP/s')
    for name in options.shape.split(','):
        for bits in options.bits:
            torch._dynamo.reset()
            for batch in options.batch:
                rate = decode(SHAPES[name], bits, batch, options.depth)
                print(f'{name} {bits} bits, {batch} at depth {options.depth}: {rate:.0f} tokens/s', flush=True)
            for tokens in options.prompt if bits == 16 else []:
                print(f'{name} {bits} bits, prompt of {tokens}: {prompt(SHAPES[name], bits, tokens):.0f} tokens/s', flush=True)


if __name__ == '__main__':
    main()
