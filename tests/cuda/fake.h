/* A libcuda.so.1 of our own: the driver's calls that src/device/cuda/host/driver.h names, on a GPU that is this
   machine's memory. It knows the rules of order and of lifetimes and ends the program with a sentence where one is
   broken; any call can be made to fail. Kernels compute nothing but what the host cannot do without, and choices
   (effect.c).

   Work on a stream is done when somebody waits for it, as late as a real GPU may: what the host changes or reads too
   early is noticed. Memory is never given out twice, so that an old address is known as one. Memory, streams and
   modules belong to the context that was current; another one may not touch them.

   MOTET_FAKE_CUDA, or fake_cuda_set, is a list: "fail=NAME:N:CODE" the N-th call of that name fails with the driver's
   number for a fault (one from 700 on spoils the context, so that all that follows fails, too); "lost" what failed so
   stays so in every context; "when=PATH" only calls count while there is such a file, which is removed
   with the fault; "launches=PATH" which kernels were asked for ("has NAME") and launched ("ran NAME") is written there;
   "memory=MIB", "count=GPUS", "capability=NN", "code=NN", "version=NNNNN". */
#ifndef TESTS_CUDA_FAKE_H
#define TESTS_CUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cuda/host/driver.h"

#define FAKE_API __attribute__((visibility("default")))

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, FIRST_FATAL = 700 };

/* ---- control.c: what calls have in common ---- */

typedef struct fake_settings {
    int count, capability, code, version;
    size_t memory;
    bool lost;
} fake_settings;

extern fake_settings fake;

/* Begins every call: 0, or what it fails with. in_context: it is one that wants a current context. The lock is held
   until the call returns, since several threads may have a context each. */
#define FAKE_CALL(in_context)                                             \
    __attribute__((cleanup(fake_leave), unused)) const int call_ends = 0; \
    const CUresult error = fake_enter(__func__, in_context)
CUresult fake_enter(const char *name, bool in_context);
void fake_leave(const int *call);
CUcontext fake_context(void); /* the current one */

/* A rule is broken: says so and ends the program. */
void fake_broken(const char *call, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

void fake_noted(const char *what, const char *kernel); /* writes both, once */

/* ---- memory.c ---- */

bool fake_memory_has(uint64_t at, size_t bytes);     /* memory of the GPU and of this context, alive, all of it */
bool fake_memory_ours(uint64_t at);                  /* an address that was, is or could be one of the GPU's */
bool fake_memory_is_zero(uint64_t at, size_t bytes); /* as it was given out */
void fake_memory_written(uint64_t at);
bool fake_pinned_has(const void *at, size_t bytes);                /* the same of pinned memory */
void fake_memory_check_empty(const char *call, CUcontext context); /* nothing is left of it */
void fake_memory_drop(CUcontext context);                          /* with the context; NULL: of all */

/* ---- stream.c ---- */

void fake_streams_run(void); /* all that waits in the current context is done */
void fake_streams_check_empty(const char *call, CUcontext context);
void fake_streams_drop(CUcontext context); /* NULL: of all */

/* ---- effect.c ---- */

typedef struct fake_launch {
    const char *kernel;
    const unsigned *grid, *block;
    const void *parameter;
    size_t size;
} fake_launch;

void fake_effect(const fake_launch *launch);

/* ---- for tests in the same process ---- */

FAKE_API void fake_cuda_set(const char *settings); /* and counts calls from here on */
FAKE_API size_t fake_cuda_calls(const char *name);
FAKE_API const char *fake_cuda_name(size_t i); /* the i-th call there is; NULL behind the last */

#endif
