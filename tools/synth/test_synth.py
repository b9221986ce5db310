#!/usr/bin/env python3
"""usage: test_synth.py SYNTH [MOTET]

Writes small checkpoints and checks them as a reader would: headers, offsets, shapes, the index, the range of the
numbers, the same bytes for the same arguments. With MOTET, `motet info` must understand what motet supports."""

import json
import math
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SIZE = {"BF16": 2, "F32": 4, "U32": 4, "U8": 1, "F8_E4M3": 1}
WIDE = "wide wide-moe wide-sinks wide-eyes wide-pairs wide-company wide-latents wide-windows wide-short wide-hybrid".split()
SYNTH = MOTET = None


def read_header(path):
    """The tensors of one file; fails where the format's rules are broken."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__")
    assert length % 8 == 0, "the data are not aligned"
    end = 0
    for name, tensor in header.items():
        begin, size = tensor["data_offsets"][0], SIZE[tensor["dtype"]]
        assert begin == end and begin % size == 0, f"{name} starts at {begin}, after {end}"
        end = tensor["data_offsets"][1]
        assert end - begin == size * math.prod(tensor["shape"]), f"{name} has another size than its shape"
        tensor["bytes"] = data[8 + length + begin : 8 + length + end]
    assert len(data) == 8 + length + end, "bytes after the last tensor"
    return header


def bf16(data):
    return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]


class Synth(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return Path(self.folder.name) / name

    def synth(self, name, model, *options):
        done = subprocess.run([SYNTH, model, self.path(name), *options], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(name)

    def tensors(self, folder):
        found = {}
        for file in sorted(folder.glob("*.safetensors")):
            found.update(read_header(file))
        return found

    def test_hugging_face_layout(self):
        tensors = self.tensors(self.synth("a", "--wide-test"))
        self.assertEqual(tensors["model.embed_tokens.weight"]["shape"], [1009, 320])
        self.assertEqual(tensors["model.layers.2.self_attn.k_norm.weight"]["shape"], [80])
        values = bf16(tensors["model.layers.1.mlp.down_proj.weight"]["bytes"])
        self.assertAlmostEqual(sum(values) / len(values), 0, delta=0.001)
        self.assertAlmostEqual(math.sqrt(sum(v * v for v in values) / len(values)), 0.5 / math.sqrt(448), delta=0.001)

    def test_quantised_layout(self):
        folder = self.synth("a", "wide-moe", "--layout", "mlx-4bit", "--group", "32")
        tensors = self.tensors(folder)
        stacked = "model.layers.0.mlp.switch_mlp.down_proj"
        self.assertEqual(tensors[stacked + ".weight"]["shape"], [10, 320, 192 * 4 // 32])
        self.assertEqual(tensors[stacked + ".scales"]["shape"], [10, 320, 6])
        scales, biases = (bf16(tensors[stacked + part]["bytes"]) for part in (".scales", ".biases"))
        for scale, bias in zip(scales, biases):
            self.assertAlmostEqual(bias / scale, -7.5, delta=0.05)
        quantization = json.loads((folder / "config.json").read_text())["quantization"]
        self.assertEqual(quantization["model.layers.2.mlp.gate"], {"group_size": 32, "bits": 8})
        self.assertEqual(tensors["model.layers.2.mlp.gate.weight"]["shape"], [10, 320 * 8 // 32])

    def test_microscaled_layout(self):
        """Exponents that give E2M1 codes the spread of weights; gate and up in one matrix where it is published so."""
        tensors = self.tensors(self.synth("a", "wide-sinks"))
        blocks, scales = (tensors["model.layers.0.mlp.experts.gate_up_proj" + part] for part in ("_blocks", "_scales"))
        self.assertEqual(blocks["shape"], [10, 2 * 192, 10, 16])
        self.assertEqual(scales["shape"], [10, 2 * 192, 10])
        self.assertEqual(set(scales["bytes"]), {127 + round(math.log2(1 / math.sqrt(320) / 2.93))})
        self.assertEqual(len(set(blocks["bytes"])), 256)
        tensors = self.tensors(self.synth("b", "wide-sinks", "--layout", "mlx-4bit"))
        self.assertEqual(tensors["model.layers.1.mlp.experts.up_proj.weight"]["shape"], [10, 192, 320 // 8])
        self.assertEqual(tensors["model.layers.1.mlp.experts.up_proj.scales"]["shape"], [10, 192, 320 // 32])

    def test_fp8_layout(self):
        """No byte is NaN, scales give bytes the spread of weights, and embeddings stay as they are."""
        folder = self.synth("a", "wide", "--layout", "fp8")
        tensors = self.tensors(folder)
        weight, scales = (tensors["model.layers.1.mlp.down_proj" + part] for part in (".weight", ".weight_scale_inv"))
        self.assertEqual((weight["dtype"], weight["shape"]), ("F8_E4M3", [320, 448]))
        self.assertEqual((scales["dtype"], scales["shape"]), ("F32", [3, 4]))
        self.assertEqual(set(weight["bytes"]), set(range(256)) - {0x7F, 0xFF})
        for scale in struct.unpack("<12f", scales["bytes"]):
            self.assertAlmostEqual(scale * 107.2 * math.sqrt(448) / 0.5, 1, delta=0.5)
        self.assertEqual(tensors["model.embed_tokens.weight"]["dtype"], "BF16")
        self.assertEqual(json.loads((folder / "config.json").read_text())["quantization_config"]["quant_method"], "fp8")

    def test_experts_beside_one_for_every_token(self):
        """The first layer is dense, and routers stay as they are published."""
        for layout in "bf16", "mlx-4bit":
            tensors = self.tensors(self.synth(layout, "wide-company", "--layout", layout))
            self.assertNotIn("model.layers.0.mlp.gate.weight", tensors)
            self.assertNotIn("model.layers.1.mlp.down_proj.weight", tensors)
            self.assertIn("model.layers.0.mlp.down_proj.weight", tensors)
            self.assertEqual(tensors["model.layers.1.mlp.gate.weight"]["shape"], [10, 320])
            self.assertEqual(tensors["model.layers.2.mlp.gate.e_score_correction_bias"]["dtype"], "F32")
            self.assertIn("model.layers.2.mlp.shared_experts.down_proj.weight", tensors)

    def test_same_arguments_same_bytes(self):
        folders = [self.synth(name, "wide", "--seed", seed) for name, seed in (("a", "7"), ("b", "7"), ("c", "8"))]
        a, b, c = ((folder / "model.safetensors").read_bytes() for folder in folders)
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_shards_hold_the_same_tensors(self):
        whole = self.tensors(self.synth("a", "wide"))
        folder = self.synth("b", "wide", "--shard-mb", "1")
        self.assertEqual(
            {n: t["bytes"] for n, t in whole.items()}, {n: t["bytes"] for n, t in self.tensors(folder).items()}
        )
        index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
        for name, file in index.items():
            self.assertIn(name, read_header(folder / file))

    def test_refusals(self):
        self.synth("a", "wide")
        for arguments in (
            ["wide", "a"],
            ["wide", "b", "--group", "48"],
            ["none", "b"],
            ["wide"],
            ["wide", "b", "--layers"],
        ):
            arguments[1:2] = [self.path(name) for name in arguments[1:2]]
            done = subprocess.run([SYNTH, *arguments], capture_output=True, text=True)
            self.assertIn(done.returncode, (1, 2))
            self.assertRegex(done.stderr, "^synth: .")

    def test_motet_understands(self):
        if not MOTET:
            self.skipTest("no motet given")
        for layout in ("bf16", "mlx-4bit", "mlx-8bit"):
            for model in WIDE:
                folder = self.synth(f"{model}-{layout}", model, "--layout", layout)
                done = subprocess.run([MOTET, "info", folder], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    SYNTH, MOTET = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    outcome = unittest.main(argv=sys.argv[:1], exit=False).result
    failed, skipped = len(outcome.failures) + len(outcome.errors), len(outcome.skipped)
    print(f"synth: {outcome.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(bool(failed))
