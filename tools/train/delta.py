"""The gated delta rule over whole sequences: parallel within chunks of 64 tokens, one small product a chunk between
them. The recurrence it equals, per head, with the state S of keys x values:

    S = exp(g) S;  S = S + k (beta (v - S'k))';  o = S'q

Two steps are operators of their own, so that the compiler need not look into them and their gradients are short: the
inverse of a unit lower triangle, which must not be rounded to tf32, and the walk over the chunks."""

import torch

CHUNK = 64
BASE = 16


def _inverse(a):
    """(I + a)^-1 for strictly lower triangles [n, 64, 64]. Blocks of 16 by a product of powers, which stay small there;
    larger ones from their halves."""
    n, c, _ = a.shape
    blocks = c // BASE
    diagonal = torch.stack([a[:, i * BASE : (i + 1) * BASE, i * BASE : (i + 1) * BASE] for i in range(blocks)], 1)
    power = -diagonal.reshape(n * blocks, BASE, BASE)
    eye = torch.eye(BASE, dtype=a.dtype, device=a.device)
    done = eye + power
    for _ in range(3):
        power = power @ power
        done = done + done @ power
    parts, size = list(done.view(n, blocks, BASE, BASE).unbind(1)), BASE
    while len(parts) > 1:
        joined = []
        for i in range(0, len(parts), 2):
            top, bottom, at = parts[i], parts[i + 1], i * size
            corner = -(bottom @ a[:, at + size : at + 2 * size, at : at + size] @ top)
            upper = torch.cat([top, torch.zeros_like(top)], 2)
            joined.append(torch.cat([upper, torch.cat([corner, bottom], 2)], 1))
        parts, size = joined, size * 2
    return parts[0]


@torch.library.custom_op("box::inverse", mutates_args=())
def inverse(a: torch.Tensor) -> torch.Tensor:
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        return _inverse(a).contiguous()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


@inverse.register_fake
def _(a):
    return torch.empty_like(a)


def _inverse_backward(ctx, grad):
    (t,) = ctx.saved_tensors
    return -(t.transpose(1, 2) @ (grad @ t.transpose(1, 2)))


inverse.register_autograd(_inverse_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))


@torch.library.custom_op("box::walk", mutates_args=())
def walk(m: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The states before each chunk: S[0] = 0, S[n + 1] = m[n] S[n] + b[n]; all [chunks, heads, d, d]."""
    states = torch.zeros_like(b)
    for n in range(b.shape[0] - 1):
        torch.baddbmm(b[n], m[n], states[n], out=states[n + 1])
    return states


@walk.register_fake
def _(m, b):
    return torch.empty_like(b)


@torch.library.custom_op("box::walk_back", mutates_args=())
def walk_back(m: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """Gradients of b: what later states owe to each."""
    owed = torch.zeros_like(grad)
    for n in range(grad.shape[0] - 1, 0, -1):
        torch.baddbmm(grad[n], m[n].transpose(1, 2), owed[n], out=owed[n - 1])
    return owed


@walk_back.register_fake
def _(m, grad):
    return torch.empty_like(grad)


def _walk_backward(ctx, grad):
    m, states = ctx.saved_tensors
    owed = walk_back(m, grad.contiguous())
    return owed @ states.transpose(2, 3), owed


walk.register_autograd(
    _walk_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], output)
)


def _chunks(x):
    """[batch, tokens, heads, d] -> [chunks * batch * heads, 64, d]"""
    b, t, h, d = x.shape
    return x.view(b, t // CHUNK, CHUNK, h, d).permute(1, 0, 3, 2, 4).reshape(-1, CHUNK, d)


def delta_rule(q, k, v, g, beta):
    """q, k, v [batch, tokens, heads, d], g and beta [batch, tokens, heads], all fp32; tokens % 64 == 0."""
    b, t, h, d = q.shape
    n = t // CHUNK
    q, k, v = _chunks(q), _chunks(k), _chunks(v)
    total = _chunks(g[..., None]).squeeze(2).cumsum(1)
    beta = _chunks(beta[..., None])
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    decay = (total[:, :, None] - total[:, None, :]).masked_fill(~lower, float("-inf")).exp()
    grown = total.exp()[..., None]
    rest = (total[:, -1:] - total).exp()[..., None]
    solve = inverse(((beta * k) @ k.transpose(1, 2) * decay).tril(-1))
    u = solve @ (beta * v)
    w = solve @ (beta * k * grown)
    kept = (k * rest).transpose(1, 2)
    move = torch.diag_embed(grown[:, -1].expand(-1, d)) - kept @ w
    states = walk(move.view(n, b * h, d, d), (kept @ u).view(n, b * h, d, d)).view(-1, d, d)
    out = (q * grown) @ states + (q @ k.transpose(1, 2) * decay) @ (u - w @ states)
    return out.view(n, b, h, CHUNK, d).permute(1, 0, 3, 2, 4).reshape(b, t, h, d)


def delta_rule_stepwise(q, k, v, g, beta):
    """The same, token by token: what the fast one is tested against."""
    b, t, h, d = q.shape
    state, out = q.new_zeros(b, h, d, d), []
    for i in range(t):
        state = state * g[:, i, :, None, None].exp()
        change = beta[:, i, :, None] * (v[:, i] - (state * k[:, i, :, :, None]).sum(2))
        state = state + k[:, i, :, :, None] * change[:, :, None, :]
        out.append((state * q[:, i, :, :, None]).sum(2))
    return torch.stack(out, 1)
