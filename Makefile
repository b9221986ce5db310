# A thin front for Meson and Ninja. `make help` lists the targets.
#
# BUILD=folder         where to build; another folder is another configuration
# TESTS="arguments"    passed on to `meson test`: names of tests, --suite unit, ...
# TIME=1h              how long `make soak` runs; SOAK="options" are passed on
# ROUNDS=n             how often `make kills` kills
# FUZZ_SECONDS=n       how long `make fuzz` runs each fuzzer
# CORPUS=folder        what `make test-corpus` checks against
# MODEL=folder         what `make serve` serves; SERVE="options" are passed on
# PREFIX=folder        where `make install` puts motet; DESTDIR=folder stands before it, for packagers
# SHIPPED="arguments"  passed on to tests/shipped/run.py: names of stages, --ccache FOLDER
# DEB=folder           where `make deb` builds
BUILD ?= build
TESTS ?=
TIME ?= 1h
SOAK ?=
ROUNDS ?= 1000
FUZZ_SECONDS ?= 600
CORPUS ?= ../shared/corpus
MODEL ?= models/box
SERVE ?=
PREFIX ?= /usr/local
DEB ?= build-deb

# A value as one word of the shell, whatever it has in it.
word_of = '$(subst ','\'',$(1))'

.PHONY: all serve test test-full test-gpu test-vulkan test-shipped test-sdk test-clients test-grafana test-routers test-web test-corpus checkkernels bench docs format \
        lint asan asan-stores ubsan tsan fuzz fuzz-merge clean help setup develop test-schema mutants install uninstall deb test-deb soak kills overload \
        coverage valgrind faults

all: $(BUILD)/build.ninja ## build build/motet and all other programs
	@ninja -C $(BUILD) --quiet

serve: $(BUILD)/build.ninja ## serve MODEL on port 8000; without one, the model in the box
	@ninja -C $(BUILD) --quiet motet
	@tools/serve.sh $(call word_of,$(BUILD)) $(call word_of,$(MODEL)) $(SERVE)

install: $(BUILD)/build.ninja ## install motet, man pages, completions and a systemd unit with its user: PREFIX=folder, DESTDIR=folder
	@tools/install.sh $(BUILD) $(call word_of,$(PREFIX)) $(call word_of,$(DESTDIR))

uninstall: ## remove what the last `make install` of this build has brought; DESTDIR=folder as then
	@tools/uninstall.py $(BUILD) $(call word_of,$(DESTDIR))

deb: ## build a Debian package in DEB, and look at it with lintian
	@tools/setup.sh deb
	@tools/deb.sh $(DEB)

test-deb: deb ## install the package in a fresh Debian (root, debootstrap) and talk to it with clients that npm fetches
	@tests/package/deb.sh $(DEB)

test-shipped: ## run what is shipped as it is: package, image, pages, other systems, balancers, in fresh Debians (root, debootstrap)
	@tests/shipped/run.py $(SHIPPED)

test-sdk: all ## test the server with OpenAI's and Cohere's SDKs for Node, which npm fetches into ~/.cache
	@tests/api/sdk.py --motet $(BUILD)/motet --install
	@tests/api/sdk.py --motet $(BUILD)/motet --package cohere-ai --install

test-clients: all ## test the server with real clients and agents, which npm fetches into ~/.cache
	@tests/clients/run.py --motet $(BUILD)/motet --install
	@tests/clients/cache.py --motet $(BUILD)/motet --install

test-grafana: all ## ask a Prometheus, which apt-get installs, all that the dashboard for Grafana asks
	@tools/setup.sh watch
	@tests/api/test_grafana.py --motet $(BUILD)/motet

test-routers: all ## test KV events, and replicas behind HAProxy and nginx, with packages that apt-get installs
	@tools/setup.sh routers
	@tests/api/test_events.py --motet $(BUILD)/motet
	@tests/e2e/test_routers.py --motet $(BUILD)/motet --conversations 200

test-web: all ## test the pages in Chromium, which apt-get installs, with packages that npm fetches into ~/.cache
	@tools/setup.sh pages
	@tests/web/run.py --fetch
	@tests/run.py $(BUILD) --suite web
test-schema: all ## follow schemas at random and let ajv judge, which npm fetches: SUITE=folder of JSON-Schema-Test-Suite
	@tests/constraint/schema.py --walk $(BUILD)/tests/constraint/constraint_walk --install $(if $(SUITE),--suite $(SUITE))

test: all ## build, run every test, say how many passed
	@tests/run.py $(BUILD) $(TESTS)

test-full: all ## the same with all cases of each kind, where `make test` takes each kind once: before a release
	@MOTET_TEST_FULL=1 tests/run.py $(BUILD) $(TESTS)

test-vulkan: all ## run all tests of the device for GPUs of any vendor, on a GPU or (tools/setup.sh vulkan) on the CPU
	@tools/setup.sh vulkan
	@python3 tests/device/vulkan.py --checkdevice $(BUILD)/checkdevice --motet $(BUILD)/motet --full

test-gpu: all ## run the tests that compute on an NVIDIA GPU of this machine, and print one table
	@tools/gpu_suite.py $(BUILD) $(TESTS)

faults: all ## fail in every place where something can fail, and write what becomes of it to BUILD/faults.txt
	@tests/faults/run.py --motet $(BUILD)/tests/faults/motet_faulty --report $(BUILD)/faults.txt \
	    --parts 24 --keep $(BUILD)/faults --rounds 4 $(FAULTS)

mutants: setup ## try bugs on purpose, and say which the tests do not notice: MUTANTS="names" for some of them
	@tests/mutants/run.py $(MUTANTS)

soak: all ## work for TIME under a mixed and partly hostile load, be killed, compare every answer; draws BUILD/soak.svg
	@tests/e2e/soak.py --motet $(BUILD)/motet --time $(TIME) --picture $(BUILD)/soak.svg $(SOAK)

kills: all ## kill a server ROUNDS times under load, damage its files, fill its disk, compare every answer
	@tests/e2e/test_kill.py --motet $(BUILD)/motet --rounds $(ROUNDS) --questions 240

overload: all ## ask ten times what can be done for ten minutes, and hold 10,000 connections
	@tests/api/overload.py --motet $(BUILD)/motet

checkkernels: $(BUILD)/build.ninja ## test each kernel at each instruction-set level
	@ninja -C $(BUILD) --quiet checkkernels
	@$(BUILD)/checkkernels

test-corpus: all ## check against recorded answers for well-known models: CORPUS=folder
	@tools/corpus.sh $(BUILD) $(CORPUS)

bench: all ## measure the thread pool and the kernels on this machine
	@$(BUILD)/bench/bench_pool
	@$(BUILD)/checkkernels --bench

docs: all ## write docs/options.md and the tables of docs/coming-from.md anew from src/options/options*.def
	@tools/docs.sh $(BUILD)/motet docs

format: develop ## lay out all C files with clang-format
	@tools/c_files.sh | xargs clang-format -i

lint: build-gcc/build.ninja build-asan/build.ninja ## check layout, layers, headers, symbols, functions, warnings, docs
	@tools/lint.sh build-gcc build-asan

asan: build-asan/build.ninja ## run the tests under the address and the undefined-behaviour sanitizer
	@tools/sanitize.sh build-asan $(TESTS)

asan-stores: build-asan/build.ninja ## the same for pictures, the hub, a Redis (which apt-get installs), the disk and the sandbox alone
	@tools/setup.sh routers
	@tools/sanitize.sh build-asan --stores $(TESTS)

ubsan: build-ubsan/build.ninja ## run the tests under the undefined-behaviour sanitizer alone
	@tools/sanitize.sh build-ubsan $(TESTS)

tsan: build-tsan/build.ninja ## run the tests under the thread sanitizer
	@tools/sanitize.sh build-tsan $(TESTS)

fuzz: build-asan/build.ninja ## run every fuzzer for FUZZ_SECONDS
	@tools/fuzz.sh build-asan $(FUZZ_SECONDS)

fuzz-merge: build-asan/build.ninja ## keep what `make fuzz` has found that runs new lines
	@tools/fuzz_merge.sh build-asan

coverage: build-coverage/build.ninja ## which lines of parsers the tests and the corpora run; fails below 90 %
	@tools/coverage.sh build-coverage

valgrind: all ## look for errors of memory with valgrind, which apt-get installs, where the sanitizers do not look
	@tools/setup.sh memory
	@tools/valgrind.sh $(BUILD)

clean: ## remove every build folder
	rm -rf build build-*

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

# Missing packages are installed here. Silent and quick when there are none.
setup:
	@tools/setup.sh build

develop:
	@tools/setup.sh develop

# One build serves several targets: gcc's without sanitizers is tested and looked at by lint; clang's is tested under two
# sanitizers, fuzzed, and the proof that clang has no warning. Only the first compiles kernels for GPUs, where nvcc is,
# each of them once and without optimizing, for the kind of card that needs the most of them (-Dcuda=enabled compiles for
# all kinds, to run); the others have the host's part of that device, which needs none. And only the first has MPI, where
# that is (tools/setup.sh ranks). A compiler that is named here would do without ccache, which Meson finds for others.
# Who reads where a test failed needs lines, not the types of variables: -g1, which compiles in a tenth less time. There
# are two hundred programs to link: lld does that in a fifth of the time.
CCACHE := $(shell command -v ccache)
build-gcc/build.ninja: CONFIGURE = -Dc_args=-g1 -Dwerror=true -Dgpu_archs=90a -Dgpu_speed=false -Dmpi=auto
build-gcc/build.ninja: export CC = $(CCACHE) gcc
build-asan/build.ninja: CONFIGURE = -Db_sanitize=address,undefined -Dc_args='-g1 -fno-sanitize-recover=all' \
                                    -Dfuzz=true -Dwerror=true -Dgpu_archs=
build-asan/build.ninja: export CC = $(CCACHE) clang
build-gcc/build.ninja build-asan/build.ninja build-tsan/build.ninja: | develop
build-ubsan/build.ninja: CONFIGURE = -Db_sanitize=undefined -Dc_args='-g1 -fno-sanitize-recover=all' -Dgpu_archs=
# clang's thread sanitizer compiles AVX-512 in a third of gcc's time, and its calls are what takes time, not what -O2 saves.
build-tsan/build.ninja: CONFIGURE = -Db_sanitize=thread -Doptimization=1 -Dc_args=-g1 -Dgpu_archs=
build-tsan/build.ninja: export CC = $(CCACHE) clang
build-coverage/build.ninja: CONFIGURE = -Db_coverage=true -Doptimization=1 -Dgpu_archs=

$(sort $(BUILD)/build.ninja $(patsubst %,build-%/build.ninja,gcc asan ubsan tsan coverage)): | setup
	@$(if $(CONFIGURE),if command -v ld.lld >/dev/null; then export CC_LD=lld; fi;) \
	meson setup $(@D) $(CONFIGURE) >$(@D).log || { cat $(@D).log; rm -f $(@D).log; exit 1; }
	@rm -f $(@D).log
