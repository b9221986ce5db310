# A thin front for Meson and Ninja. `make help` lists what there is.
BUILD ?= build
CLANG ?= clang

.PHONY: all test lint asan ubsan tsan fuzz bench checkkernels docs format clean help
.PHONY: setup develop

all: $(BUILD)/build.ninja ## build build/motet
	@ninja -C $(BUILD) --quiet

test: all ## build, run every test, print how many passed
	@tests/run.py $(BUILD)

checkkernels: $(BUILD)/build.ninja ## test each kernel at each instruction-set level
	@ninja -C $(BUILD) --quiet checkkernels
	@$(BUILD)/checkkernels

bench: all ## measure the thread pool and the kernels on this machine
	@$(BUILD)/bench/bench_pool

setup:
	@tools/setup.sh build

develop:
	@tools/setup.sh develop

$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD) >/dev/null || { cat $(BUILD)/meson-logs/meson-log.txt; exit 1; }

clean: ## remove every build folder
	rm -rf build build-*

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'
