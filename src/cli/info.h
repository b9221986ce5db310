/* Prints the facts about a checkpoint as JSON. Shared by info.c and info_json.c. */
#ifndef MT_CLI_INFO_H
#define MT_CLI_INFO_H

#include "models/info.h"

/* The device that the model would run on here. */
typedef struct mt_info_device {
    char name[200];        /* "" if there is a problem */
    bool apart;            /* it has memory of its own */
    uint64_t memory, host; /* bytes that are free: of the device, and of the machine */
    mt_error problem;      /* why no device can be used, or MT_OK */
} mt_info_device;

/* Prints to standard output. `name`: the model name that the user gave; NULL: a folder was given. */
void mt_info_print_json(const mt_info *info, const mt_info_device *device, const char *name);

#endif
