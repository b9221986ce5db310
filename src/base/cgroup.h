/* Limits of the control groups that a process is in: of its own and of those around it. */
#ifndef MT_BASE_CGROUP_H
#define MT_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Reads the beginning of a small file of the system. False: it is missing or empty. */
MT_PRINTF(3, 4) bool mt_cgroup_read(char *text, size_t size, const char *fmt, ...);

/* The least that limit_of makes of this file's text in the process's group and those around it; UINT64_MAX: there is no
   such file. controller: "" for groups of version 2, else a controller of version 1. /sys and /proc are below root. */
uint64_t mt_cgroup_least(const char *root, const char *controller, const char *file,
                         uint64_t (*limit_of)(const char *));

#endif
