"""Two optimisers in one: matrices move by orthogonalised momentum (Muon), all else by Adam."""

import torch


def orthogonal(x):
    """Nearest orthogonal matrices, roughly: five Newton-Schulz steps over a stack of matrices."""
    x = x.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.transpose(1, 2) if tall else x


def is_matrix(name, p):
    return p.ndim == 2 and min(p.shape) >= 32 and "embed" not in name


class Optimiser:
    def __init__(self, named, matrix_rate, other_rate, decay=0.05):
        self.matrix_rate, self.decay = matrix_rate, decay
        self.stacks = {}
        rest = []
        for name, p in named:
            if is_matrix(name, p):
                self.stacks.setdefault(tuple(p.shape), []).append(p)
            else:
                rest.append(p)
        self.momentum = {s: torch.zeros(len(ps), *s, device=ps[0].device) for s, ps in self.stacks.items()}
        self.adam = torch.optim.Adam(rest, lr=other_rate, betas=(0.9, 0.95), fused=rest[0].is_cuda)
        self.other_rate = other_rate

    @torch.no_grad()
    def step(self, scale):
        """scale: the share of the full rate."""
        for shape, ps in self.stacks.items():
            if any(p.grad is None for p in ps):
                used = [i for i, p in enumerate(ps) if p.grad is not None]
            else:
                used = list(range(len(ps)))
            if not used:
                continue
            grad = torch.stack([ps[i].grad for i in used])
            keep = torch.tensor(used, device=grad.device)
            momentum = self.momentum[shape][keep].lerp(grad, 0.05)
            self.momentum[shape][keep] = momentum
            rate = self.matrix_rate * scale
            change = orthogonal(grad.lerp(momentum, 0.95)) * (-rate * max(1, shape[0] / shape[1]) ** 0.5)
            torch._foreach_mul_([ps[i] for i in used], 1 - rate * self.decay)
            torch._foreach_add_([ps[i] for i in used], list(change.float().unbind(0)))
        for group in self.adam.param_groups:
            group["lr"] = self.other_rate * scale
        self.adam.step()

    def zero_grad(self):
        for ps in self.stacks.values():
            for p in ps:
                p.grad = None
        self.adam.zero_grad(set_to_none=True)

    def state(self):
        return {"momentum": self.momentum, "adam": self.adam.state_dict()}

    def load(self, state):
        self.momentum = state["momentum"]
        self.adam.load_state_dict(state["adam"])
