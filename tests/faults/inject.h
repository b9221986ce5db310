/* What the program that fails on purpose shares with who makes it fail: a file that both have mapped. It is named by
   MOTET_FAULTS, and laid out by tests/faults/control.py. */
#ifndef MT_TESTS_FAULTS_INJECT_H
#define MT_TESTS_FAULTS_INJECT_H

#include <stdatomic.h>
#include <stdint.h>

#define FAULT_DOORS 512
#define FAULT_SITES 16384 /* a power of two */

typedef enum fault_kind {
    FAULT_ALLOC,
    FAULT_OPEN,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_MAP,
    FAULT_SOCKET,
    FAULT_THREAD,
    FAULT_FORK,
    FAULT_DEVICE,
    FAULT_NAN,
    FAULT_HANG, /* a step that takes as long as it is told to; by name only, never at random */
    FAULT_KINDS
} fault_kind;

typedef enum fault_mode { FAULT_OFF, FAULT_WATCH, FAULT_NTH, FAULT_RANDOM } fault_mode;

/* Where something could fail: its kind, and the place in the program that asked for it. */
typedef struct fault_site {
    atomic_uint_fast64_t key; /* kind + 1 in the top byte, and the offset of the call; 0: free */
    atomic_uint_fast64_t passes;
} fault_site;

typedef struct fault_control {
    atomic_uint_fast64_t mode;
    atomic_uint_fast64_t key;    /* what fails; 0 with NTH: whatever comes n-th */
    atomic_uint_fast64_t nth;    /* pass of it, from now on; counts down */
    atomic_uint_fast64_t kinds;  /* that fail at random: a bit each */
    atomic_uint_fast64_t seed;   /* of chance */
    atomic_uint_fast64_t rate;   /* of 2^32 */
    atomic_uint_fast64_t fired;  /* so many have failed */
    atomic_uint_fast64_t last;   /* the key of the last that did */
    atomic_uint_fast64_t passes; /* of anything */
    atomic_uint_fast64_t hang;   /* milliseconds */
    atomic_uint_fast64_t lost;   /* sites for which there was no room */
    uint64_t door_count;
    uint64_t door[FAULT_DOORS][2]; /* [first, last) offsets of functions that are not where something was asked for,
                                      but on the way from there */
    fault_site site[FAULT_SITES];
} fault_control;

#endif
