/* Giving up what a program does not need: what the kernel then refuses, nobody who takes the program over has either.
   See confine.c. */
#ifndef MT_BASE_CONFINE_H
#define MT_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* What was given up, as bits. */
enum {
    MT_CONFINED_CALLS = 1,        /* running programs, and what only administrators need of the kernel (seccomp) */
    MT_CONFINED_FILES = 2,        /* files that are not below the folders given (Landlock) */
    MT_CONFINED_CAPABILITIES = 4, /* those of root, but for the three that confine.c names */
    MT_CONFINED_ALL = 7
};

typedef struct mt_confine_path {
    const char *path; /* a folder with all that is below it, or a file; one that does not exist is left out */
    bool write;       /* it may be changed, too, and what is below it made and removed */
} mt_confine_path;

/* For the calling thread and all that it starts later, for ever. Returns what the kernel could do. */
unsigned mt_confine(const mt_confine_path *paths, size_t count);

#endif
