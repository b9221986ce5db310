#!/usr/bin/env python3
"""usage: test_net.py

The network against what it must equal: the recurrence token by token, conversations run alone, and transformers' own
Qwen3.5 with the same weights, in fp32 on the CPU."""

import tempfile
import unittest
from pathlib import Path

import torch

from delta import delta_rule, delta_rule_stepwise
from export import checkpoint, export_bf16, export_mlx, mlx, read
from net import Box, Norm, Packing
from quantise import affine, packed, rounded, unpacked
from shape import TOY, config

IDS = {
    "<|endoftext|>": 0,
    "<|im_end|>": 2,
    "<|image_pad|>": 5,
    "<|video_pad|>": 6,
    "<|vision_start|>": 3,
    "<|vision_end|>": 4,
}


def made(seed=1):
    torch.manual_seed(seed)
    box = Box(TOY).eval()
    with torch.no_grad():
        for name, p in box.named_parameters():
            if p.ndim == 1 and "A_log" not in name and "dt_bias" not in name:
                p.add_(torch.randn_like(p) * 0.1)
    return box


def places(grid, before, after):
    """Positions of text, a picture of merged grid (rows, cols), and text again."""
    rows, cols = grid
    text = torch.arange(before).expand(3, -1)
    at = torch.stack(torch.meshgrid(torch.arange(1), torch.arange(rows), torch.arange(cols), indexing="ij"))
    end = before + max(rows, cols)
    return torch.cat([text, at.reshape(3, -1) + before, torch.arange(end, end + after).expand(3, -1)], 1)


class Net(unittest.TestCase):
    def test_chunks_equal_the_recurrence(self):
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 192, 3, 32) for _ in range(3))
        k = torch.nn.functional.normalize(k + 2, dim=-1)  # alike, as in a plain picture: the hardest to invert
        g, beta = -torch.rand(2, 192, 3) * 0.1, torch.rand(2, 192, 3)
        inputs = [x.clone().requires_grad_() for x in (q, k, v, g, beta)]
        again = [x.clone().requires_grad_() for x in (q, k, v, g, beta)]
        fast, slow = delta_rule(*inputs), delta_rule_stepwise(*again)
        self.assertLess((fast - slow).abs().max().item(), 1e-4)
        weight = torch.randn_like(fast)
        (fast * weight).sum().backward()
        (slow * weight).sum().backward()
        for a, b in zip(inputs, again):
            self.assertLess((a.grad - b.grad).abs().max().item(), 2e-3 * b.grad.abs().max().item())

    def test_packed_conversations_do_not_see_each_other(self):
        box, ids = made(), torch.randint(0, 3000, (1, 150))
        document = torch.tensor([[0] * 70 + [1] * 80])
        positions = torch.cat([torch.arange(70), torch.arange(80)]).expand(3, 1, -1)
        both = box.hidden(box.embed(ids), Packing.of(positions, document, torch.float32), box.rope(positions))
        alone = torch.arange(80).expand(3, 1, -1)
        second = box.hidden(box.embed(ids[:, 70:]), Packing.of(alone, document[:, 70:], torch.float32), box.rope(alone))
        self.assertLess((both[:, 70:] - second).abs().max().item(), 1e-4)

    def test_a_chain_is_what_one_guess_after_the_other_gives(self):
        box, ids = made(), torch.randint(0, 3000, (1, 40))
        positions, document = torch.arange(40).expand(3, 1, -1), torch.zeros(1, 40)
        packing, rope = Packing.of(positions, document, torch.float32), box.rope(positions)
        with torch.no_grad():
            shown = box.embed(ids)
            hidden, following = box.hidden(shown, packing, rope), torch.roll(shown, -1, 1)
            results = box.mtp.chain(following, hidden, packing, rope, 3)
            self.assertLess((results[0] - box.mtp(following, hidden, packing, rope)).abs().max().item(), 1e-5)
            for begin in (3, 20, 35):
                given = hidden.clone()
                for d in range(3):
                    said = box.mtp(following, given, packing, rope)[:, begin + d]
                    self.assertLess((results[d][:, begin + d] - said).abs().max().item(), 1e-5)
                    given[:, begin + d + 1] = said

    def test_transformers_gives_the_same_logits(self):
        from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

        box = made()
        theirs = Qwen3_5ForConditionalGeneration(Qwen3_5Config(**config(TOY, IDS))).float().eval()
        missing, unexpected = theirs.load_state_dict(checkpoint(box, torch.float32), strict=False)
        self.assertEqual([m for m in missing if m != "lm_head.weight"], [])
        self.assertTrue(all(name.startswith("mtp.") for name in unexpected), unexpected)
        theirs.tie_weights()
        pixels, (rows, cols) = torch.rand(1, 3, 96, 128) * 2 - 1, (3, 4)
        ids = torch.cat([torch.randint(10, 3000, (1, 20)), torch.full((1, 12), 5), torch.randint(10, 3000, (1, 70))], 1)
        positions = places((rows, cols), 20, 70)[:, None]
        packing = Packing.of(positions, torch.zeros_like(ids), torch.float32)
        with torch.no_grad():
            mine = box.logits(box.hidden(box.embed(ids, pixels, torch.arange(20, 32)), packing, box.rope(positions)))
            cut = box.model.visual.cut(pixels)[0].view(-1, 3, 1, 256).expand(-1, -1, 2, -1).reshape(-1, 1536)
            said = theirs(
                input_ids=ids,
                pixel_values=cut,
                image_grid_thw=torch.tensor([[1, 6, 8]]),
                mm_token_type_ids=(ids == 5).int(),
            ).logits
        self.assertLess((mine - said).abs().max().item(), 2e-4)

    def test_mlx_norms_hold_the_one(self):
        box = made()
        tensors, _ = mlx(box)
        for name, module in box.named_modules():
            if isinstance(module, Norm):
                name = name.replace("model.language_model.", "language_model.model.")
                self.assertTrue(torch.equal(tensors[name + ".weight"], (1 + module.weight).bfloat16()), name)

    def test_packed_words_hold_the_rounded_weight(self):
        w = torch.randn(6, 128)
        for bits in (4, 8):
            words, scales, biases = packed(w, bits)
            self.assertEqual(words.shape, (6, 128 * bits // 32))
            self.assertEqual(words[0, 0].item() & (2**bits - 1), int(affine(w, bits)[0][0, 0, 0]))
            self.assertTrue(torch.equal(unpacked(words, scales, biases), rounded(w, bits)))

    def test_exports_are_read_back(self):
        box, other = made(), made(2)
        with tempfile.TemporaryDirectory() as folder:
            export_mlx(box, Path(folder, "mlx"), IDS)
            export_bf16(box, Path(folder, "bf16"), IDS)
            other.load_state_dict(read(other, Path(folder, "bf16")))
            for a, b in zip(other.parameters(), box.parameters()):
                self.assertLess((a - b).abs().max().item(), 0.01 * b.abs().max().item())
            other.load_state_dict(read(other, Path(folder, "mlx")))
        box.quantise(True)
        box.round_off()
        for (name, a), b in zip(other.named_parameters(), box.parameters()):
            size = max(b.abs().max().item(), 0.5)  # norms are stored with one added
            self.assertLess((a - b).abs().max().item(), 0.01 * size, name)


if __name__ == "__main__":
    unittest.main()
