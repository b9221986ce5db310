/* Confines the process: gives up rights that it does not need, so that an attacker who takes it over does not have them
   either. confine.c says how. */
#ifndef MT_BASE_CONFINE_H
#define MT_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* The rights that were given up, as bits. */
enum {
    MT_CONFINED_CALLS = 1,        /* running programs, and calls that only administrators need (seccomp) */
    MT_CONFINED_FILES = 2,        /* files outside of the given paths (Landlock) */
    MT_CONFINED_CAPABILITIES = 4, /* capabilities of root, except three that confine.c names */
    MT_CONFINED_ALL = 7
};

typedef struct mt_confine_path {
    const char *path; /* a folder with all below it, or a file; one that does not exist is ignored */
    bool write;       /* it may also be written, and files below it made and removed */
    bool run;         /* programs below it may be run */
} mt_confine_path;

/* In a build with the address sanitizer: has it read what its reports need and the kernel will refuse from now on. Call
   before the process gives up files or system calls; mt_confine does. */
void mt_confine_prepare(void);

/* Confines the calling thread and all that it starts later, for good. Returns what the kernel could do, as bits
   above. */
unsigned mt_confine(const mt_confine_path *paths, size_t count);

/* The files alone, for a process that then runs a program; and its capabilities are gone. The caller has made sure of
   PR_SET_NO_NEW_PRIVS. False: the kernel cannot. */
bool mt_confine_to_run(const mt_confine_path *paths, size_t count);

bool mt_confine_has_files(void); /* whether it has given up files */

#endif
