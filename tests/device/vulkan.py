#!/usr/bin/env python3
"""The Vulkan device: every operation against the definition, bit for bit, with the validation layers where they are
installed, and with --full models' answers against those of transformers.

    vulkan.py --checkdevice build/checkdevice --motet build/motet          a part, in seconds
    vulkan.py ... --full                                                   all of it
    vulkan.py ... --device vulkan:1
"""
import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARE = os.path.join(HERE, "..", "oracle", "compare.py")
SOME = ["op_add", "op_norm", "op_heads", "op_glu", "op_embed", "op_gather"]
REPORTS = re.compile(r"Validation (Error|Warning)|UNASSIGNED|VUID-")

passed, failed = 0, 0


def check(name, ok, said):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("{}:\n{}".format(name, said))


def said_by(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **more), check=False)
    return done.returncode, done.stdout


def end(skipped=0):
    print("device_vulkan: {} passed, {} failed, {} skipped".format(passed, failed, skipped))
    sys.exit(1 if failed else 0)


def layers():
    """What turns the validation layers on; nothing where they are not installed."""
    folders = ["/usr/share/vulkan/explicit_layer.d", "/etc/vulkan/explicit_layer.d"]
    there = any("VkLayer_khronos_validation.json" in os.listdir(f) for f in folders if os.path.isdir(f))
    return {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"} if there else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkdevice", required=True)
    parser.add_argument("--motet", required=True)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    device = ["--device", arguments.device]
    version = said_by([arguments.motet, "--version"])[1]
    if "vulkan" not in version:
        print("this motet was built without Vulkan")
        end(skipped=1)
    code, said = said_by([arguments.checkdevice, *device, "op_add"])
    if code != 0 and re.search("there is no Vulkan|finds no GPU", said):
        print(said.splitlines()[0])
        end(skipped=1)
    if not layers():
        print("the validation layers are not installed (vulkan-validationlayers)")
    trials = [] if arguments.full else ["--quick", "--trials", "1", *SOME]
    code, said = said_by([arguments.checkdevice, *device, *trials], **layers())
    check("checkdevice", code == 0 and not REPORTS.search(said), said)
    if not arguments.full:
        code, said = said_by([arguments.checkdevice, *device, "--trials", "1", "--only", "35"], **layers())
        check("products", code == 0 and not REPORTS.search(said), said)
    code, said = said_by([arguments.checkdevice, "--device", "vulkan:99", "op_add"])
    check("a device that is not there", "there is no device vulkan:99" in said, said)
    code, said = said_by([arguments.checkdevice, *device, "--native", "op_add"])
    check("an arithmetic it has not", "--arithmetic native is for NVIDIA GPUs" in said, said)
    if arguments.full:
        code, said = said_by([sys.executable, COMPARE, "--motet", arguments.motet], MOTET_DEVICE=arguments.device)
        check("answers of models", code == 0, said)
    nowhere = {"VK_DRIVER_FILES": "/dev/null", "VK_ICD_FILENAMES": "/dev/null"}
    code, said = said_by([arguments.checkdevice, *device, "op_add"], **nowhere)
    check("no driver", code != 0 and "there is no Vulkan driver here" in said, said)
    end()


if __name__ == "__main__":
    main()
