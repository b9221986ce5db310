"""The network: text layers, vision tower and drafting head, with the names of the published checkpoints, so that a
state_dict is a checkpoint. Sequences are packed: several conversations lie in a row, `Packing` keeps them apart."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

from delta import CHUNK, delta_rule
from quantise import rounded, straight_through


@dataclasses.dataclass
class Packing:
    """positions [3, batch, tokens]; start marks the first token of each conversation; same[j] tells where the token
    j + 1 before is of the same one; mask is added to attention scores."""

    positions: torch.Tensor
    start: torch.Tensor
    same: torch.Tensor
    mask: torch.Tensor

    @staticmethod
    def of(positions, document, dtype):
        """document [batch, tokens] counts conversations; -1 is padding."""
        same = torch.stack([F.pad(document[:, j:] == document[:, :-j], (j, 0)) for j in (1, 2, 3)])
        t = document.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool, device=document.device).tril()
        seen = (document[:, :, None] == document[:, None, :]) & causal
        mask = torch.zeros(seen.shape, dtype=dtype, device=document.device).masked_fill_(~seen, float("-inf"))
        return Packing(positions, ~same[0], same, mask[:, None])


class Linear(nn.Linear):
    """`bits` is set while training for a quantised export."""

    bits = 0

    def forward(self, x):
        w = straight_through(self.weight, self.bits) if self.bits else self.weight
        return F.linear(x, w, self.bias)


class Norm(nn.Module):
    """RMS norm that stores its weight less one."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(size)), eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * (1 + self.weight.float())).to(x.dtype)


class GatedNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x, gate):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps) * self.weight
        return (y * F.silu(gate.float())).to(gate.dtype)


class Conv(nn.Module):
    """Depthwise, causal, over the last tokens of the same conversation."""

    def __init__(self, channels, kernel):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, kernel).uniform_(-0.5, 0.5))

    def forward(self, x, same):
        w, t = self.weight[:, 0].to(x.dtype), x.shape[1]
        y = x * w[:, -1]
        for j in range(1, w.shape[1]):
            y = y + F.pad(x, (0, 0, j, 0))[:, :t] * same[j - 1][..., None] * w[:, -1 - j]
        return F.silu(y)


class DeltaNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.dim = s.delta_heads, s.delta_dim
        width = self.heads * self.dim
        self.in_proj_qkv = Linear(s.hidden, 3 * width, bias=False)
        self.in_proj_z = Linear(s.hidden, width, bias=False)
        self.in_proj_b = Linear(s.hidden, self.heads, bias=False)
        self.in_proj_a = Linear(s.hidden, self.heads, bias=False)
        self.conv1d = Conv(3 * width, s.kernel)
        # Memories from some tokens to thousands of tokens long at the start of training.
        self.A_log = nn.Parameter(torch.linspace(0.0, 2.0, self.heads))
        self.dt_bias = nn.Parameter(torch.linspace(-7.0, -2.0, self.heads))
        self.norm = GatedNorm(self.dim, s.eps)
        self.out_proj = Linear(width, s.hidden, bias=False)

    def forward(self, x, packing, _rope):
        b, t, _ = x.shape
        mixed = self.conv1d(self.in_proj_qkv(x), packing.same).float()
        q, k, v = mixed.view(b, t, 3, self.heads, self.dim).unbind(2)
        q = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) * self.dim**-0.5
        k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
        g = -self.A_log.float().exp() * F.softplus(self.in_proj_a(x).float() + self.dt_bias)
        # A conversation that begins forgets what stood before it: exp(-40) is nothing, and unlike exp(-inf) harmless.
        g = g - 40.0 * packing.start[..., None]
        beta = self.in_proj_b(x).float().sigmoid()
        rest = -t % CHUNK
        if rest:
            q, k, v = (F.pad(y, (0, 0, 0, 0, 0, rest)) for y in (q, k, v))
            g, beta = F.pad(g, (0, 0, 0, rest)), F.pad(beta, (0, 0, 0, rest))
        with torch.autocast(x.device.type, enabled=False):
            out = delta_rule(q, k, v, g, beta)[:, :t]
        z = self.in_proj_z(x).view(b, t, self.heads, self.dim)
        return self.out_proj(self.norm(out, z).reshape(b, t, -1))


def rotate(x, rope):
    """x [batch, tokens, heads, d]; only the first dims, in two halves, are turned."""
    cos, sin = rope
    r = cos.shape[-1]
    turned, rest = x[..., :r], x[..., r:]
    a, b = turned.chunk(2, -1)
    half = torch.cat([-b, a], -1)
    return torch.cat([(turned * cos + half * sin).to(x.dtype), rest], -1)


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.kv_heads, self.dim = s.heads, s.kv_heads, s.head_dim
        self.q_proj = Linear(s.hidden, 2 * s.heads * s.head_dim, bias=False)
        self.k_proj = Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.v_proj = Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.o_proj = Linear(s.heads * s.head_dim, s.hidden, bias=False)
        self.q_norm, self.k_norm = Norm(s.head_dim, s.eps), Norm(s.head_dim, s.eps)

    def parts(self, x, rope):
        """Queries, their gate, keys and values; all but the gate as [batch, heads, tokens, d]."""
        b, t, _ = x.shape
        q, gate = self.q_proj(x).view(b, t, self.heads, 2 * self.dim).chunk(2, -1)
        q = rotate(self.q_norm(q), rope)
        k = rotate(self.k_norm(self.k_proj(x).view(b, t, self.kv_heads, self.dim)), rope)
        v = self.v_proj(x).view(b, t, self.kv_heads, self.dim)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 2).transpose(1, 2) for y in (k, v))
        return q.transpose(1, 2), gate, k, v

    def mixed(self, q, gate, k, v, mask):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2) * gate.sigmoid()
        return self.o_proj(y.flatten(2))

    def forward(self, x, packing, rope):
        return self.mixed(*self.parts(x, rope), packing.mask)


class Mlp(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = Linear(s.hidden, s.ffn, bias=False)
        self.up_proj = Linear(s.hidden, s.ffn, bias=False)
        self.down_proj = Linear(s.ffn, s.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s, attention):
        super().__init__()
        if attention:
            self.self_attn = Attention(s)
        else:
            self.linear_attn = DeltaNet(s)
        self.mlp = Mlp(s)
        self.input_layernorm, self.post_attention_layernorm = Norm(s.hidden, s.eps), Norm(s.hidden, s.eps)
        self.attention = attention

    def forward(self, x, packing, rope):
        mixer = self.self_attn if self.attention else self.linear_attn
        x = x + mixer(self.input_layernorm(x), packing, rope)
        return x + self.mlp(self.post_attention_layernorm(x))


class Embedding(nn.Embedding):
    """Also the output matrix."""

    bits = 0

    def table(self):
        return straight_through(self.weight, self.bits) if self.bits else self.weight


class Text(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed_tokens = Embedding(s.vocab, s.hidden)
        self.layers = nn.ModuleList(Layer(s, s.is_attention(i)) for i in range(s.layers))
        self.norm = Norm(s.hidden, s.eps)


class TowerAttention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.tower_heads
        self.qkv, self.proj = Linear(s.tower, 3 * s.tower), Linear(s.tower, s.tower)

    def forward(self, x, rope):
        n, p, _ = x.shape
        q, k, v = self.qkv(x).view(n, p, 3, self.heads, -1).unbind(2)
        q, k = rotate(q, rope), rotate(k, rope)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return self.proj(y.transpose(1, 2).reshape(n, p, -1))


class TowerMlp(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.linear_fc1, self.linear_fc2 = Linear(s.tower, s.tower_ffn), Linear(s.tower_ffn, s.tower)

    def forward(self, x):
        return self.linear_fc2(F.gelu(self.linear_fc1(x), approximate="tanh"))


class LayerNorm(nn.LayerNorm):
    """In the precision of what it is given: autocast would go to fp32 and back."""

    def forward(self, x):
        with torch.autocast(x.device.type, enabled=False):
            return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class TowerBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.norm1, self.norm2 = LayerNorm(s.tower, 1e-6), LayerNorm(s.tower, 1e-6)
        self.attn, self.mlp = TowerAttention(s), TowerMlp(s)

    def forward(self, x, rope):
        x = x + self.attn(self.norm1(x), rope)
        return x + self.mlp(self.norm2(x))


class Merger(nn.Module):
    def __init__(self, s):
        super().__init__()
        wide = s.tower * s.merge**2
        self.norm = LayerNorm(s.tower, 1e-6)
        self.linear_fc1, self.linear_fc2 = Linear(wide, wide), Linear(wide, s.hidden)

    def forward(self, x):
        n, p, d = x.shape
        x = self.norm(x).view(n, p // 4, 4 * d)
        return self.linear_fc2(F.gelu(self.linear_fc1(x)))


class PatchEmbed(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.proj = nn.Conv3d(3, s.tower, (2, s.patch, s.patch), (2, s.patch, s.patch))

    def forward(self, patches):
        """patches [n, p, 3 * patch * patch]: both frames of a still picture are the same, so the halves add."""
        w = self.proj.weight.sum(2).flatten(1)
        return F.linear(patches, w, self.proj.bias)


class Tower(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.side, self.patch, self.merge, self.head = s.grid, s.patch, s.merge, s.tower // s.tower_heads
        self.patch_embed = PatchEmbed(s)
        self.pos_embed = nn.Embedding(s.grid**2, s.tower)
        self.blocks = nn.ModuleList(TowerBlock(s) for _ in range(s.tower_layers))
        self.merger = Merger(s)

    def cut(self, pictures):
        """[n, 3, h, w] in -1..1 -> patches in the order of merged blocks."""
        n, _, h, w = pictures.shape
        p, m = self.patch, self.merge
        x = pictures.view(n, 3, h // p // m, m, p, w // p // m, m, p)
        return x.permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(n, -1, 3 * p * p)

    def places(self, rows, cols, device):
        """Row and column of each patch, in the order of merged blocks."""
        m = self.merge
        at = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij"))
        return at.view(2, rows // m, m, cols // m, m).permute(0, 1, 3, 2, 4).reshape(2, -1).to(device)

    def table(self, at, rows, cols):
        """The learned positions, interpolated from side x side to rows x cols with corners on corners."""
        taps = []
        for place, count in ((at[0], rows), (at[1], cols)):
            x = place * ((self.side - 1) / max(count - 1, 1))
            low = x.floor().long()
            taps.append(((low, 1 - (x - low)), ((low + 1).clamp(max=self.side - 1), x - low)))
        return sum(self.pos_embed(r * self.side + c) * (a * b)[:, None] for r, a in taps[0] for c, b in taps[1])

    def forward(self, pictures):
        rows, cols = pictures.shape[2] // self.patch, pictures.shape[3] // self.patch
        at = self.places(rows, cols, pictures.device)
        freq = 10000.0 ** -(torch.arange(0, self.head // 2, 2, device=pictures.device) / (self.head // 2))
        angle = (at.T[..., None] * freq).flatten(1)
        angle = torch.cat([angle, angle], -1)[:, None]
        x = self.patch_embed(self.cut(pictures))
        x = x + self.table(at, rows, cols).to(x.dtype)
        for block in self.blocks:
            x = block(x, (angle.cos(), angle.sin()))
        return self.merger(x)


class Drafter(nn.Module):
    """From a token and the trunk's vector that proposed it: the token after it."""

    def __init__(self, s):
        super().__init__()
        self.fc = Linear(2 * s.hidden, s.hidden, bias=False)
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = Norm(s.hidden, s.eps), Norm(s.hidden, s.eps)
        self.layers = nn.ModuleList([Layer(s, True)])
        self.norm = Norm(s.hidden, s.eps)

    def forward(self, embedded, hidden, packing, rope):
        return self.norm(self.layers[0](self.joined(embedded, hidden), packing, rope))

    def joined(self, embedded, hidden):
        return self.fc(torch.cat([self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)], -1))

    def chain(self, embedded, hidden, packing, rope, depth):
        """Results of 1 to `depth` guesses in a row: each takes the vector of the one before in place of the trunk's, at
        the next token. A guess sees what the head made of the trunk's vectors up to where its chain began, and then
        the chain itself, as it does when it is served."""
        layer, keys, values, results = self.layers[0], [], [], []
        t = embedded.shape[1]
        ahead = torch.arange(t, device=embedded.device)
        ahead = ahead[:, None] - ahead[None, :]  # of a query, to a key
        for d in range(depth):
            x = self.joined(embedded, hidden)
            q, gate, k, v = layer.self_attn.parts(layer.input_layernorm(x), rope)
            keys, values = [*keys, k], [*values, v]
            own = [ahead >= d] + [ahead == d - e for e in range(1, d + 1)]
            mask = torch.cat([packing.mask.masked_fill(~seen, float("-inf")) for seen in own], -1)
            x = x + layer.self_attn.mixed(q, gate, torch.cat(keys, 2), torch.cat(values, 2), mask)
            results.append(self.norm(x + layer.mlp(layer.post_attention_layernorm(x))))
            hidden = torch.roll(results[-1], 1, 1)
        return results


class Trunk(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.visual, self.language_model = Tower(s), Text(s)


class Box(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        self.model, self.mtp = Trunk(s), Drafter(s)
        self.apply(self._begin)
        for name, p in self.named_parameters():
            if name.endswith(
                ("o_proj.weight", "out_proj.weight", "down_proj.weight", "fc2.weight", "attn.proj.weight")
            ):
                p.data.mul_((2 * s.layers) ** -0.5)

    @staticmethod
    def _begin(module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def rope(self, positions):
        """Three axes take turns over the frequencies, time taking what is left at the end."""
        s = self.shape
        r = int(s.head_dim * s.rotary)
        freq = s.theta ** -(torch.arange(0, r, 2, device=positions.device) / r)
        axis = torch.zeros(r // 2, dtype=torch.long)
        for i in (1, 2):
            axis[i : 3 * s.sections[i] : 3] = i
        angle = positions[axis.to(positions.device)].permute(1, 2, 0) * freq
        angle = torch.cat([angle, angle], -1)[:, :, None]
        return angle.cos(), angle.sin()

    def embed(self, ids, pictures=None, slots=None):
        """slots: for each picture's tokens the flat places in ids; one place past the end takes what is padding."""
        text = self.model.language_model
        x = F.embedding(ids, text.embed_tokens.table()).flatten(0, 1)
        if pictures is not None and len(pictures):
            seen = self.model.visual(pictures).flatten(0, 1).to(x.dtype)
            x = torch.cat([x, x[:1]]).index_copy(0, slots, seen)[:-1]
        return x.view(*ids.shape, -1)

    def hidden(self, x, packing, rope):
        for layer in self.model.language_model.layers:
            x = layer(x, packing, rope)
        return self.model.language_model.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.model.language_model.embed_tokens.table())

    def quantise(self, on):
        """Train as the export will round: 4 bits in the text layers and the embedding; 8 in the drafter."""
        for module in self.model.language_model.modules():
            if isinstance(module, (Linear, Embedding)) and module.weight.shape[1] % 64 == 0:
                module.bits = 4 if on else 0
        for module in self.mtp.modules():
            if isinstance(module, Linear):
                module.bits = 8 if on else 0

    @torch.no_grad()
    def round_off(self):
        """Makes the weights what their quantised form stands for."""
        for module in self.modules():
            if isinstance(module, (Linear, Embedding)) and module.bits:
                module.weight.copy_(rounded(module.weight, module.bits))
                module.bits = 0
