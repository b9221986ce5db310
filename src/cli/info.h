/* What a checkpoint holds, as text or JSON on standard output. */
#ifndef MT_CLI_INFO_H
#define MT_CLI_INFO_H

#include "models/info.h"

/* What would compute here. */
typedef struct mt_info_device {
    char name[200];        /* "" where there is a problem */
    bool apart;            /* it has memory of its own */
    uint64_t memory, host; /* bytes: of the device that are free, of the machine */
    mt_error problem;      /* why there is none, or MT_OK */
} mt_info_device;

/* name: by which it was found; NULL: by its folder */
void mt_info_print_json(const mt_info *info, const mt_info_device *device, const char *name);

#endif
