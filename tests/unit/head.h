/* Checkpoints with heads that guess ahead, in the test's folder. */
#ifndef MT_TESTS_HEAD_H
#define MT_TESTS_HEAD_H

#include "folder.h"

#define HEADS "tests/oracle/guesses"
#define DRAFTS "tests/oracle/drafts" /* drafters, in folders of their own that have the checkpoints' names */

/* The checkpoint of this name with the head that the oracle made for it. */
static inline void put_head(const char *name)
{
    char command[512];
    snprintf(command, sizeof(command), "rm -rf '%s'/* && cp tests/oracle/checkpoints/%s/* " HEADS "/%s/* '%s'", folder,
             name, name, folder);
    assert_int_equal(system(command), 0);
}

#endif
