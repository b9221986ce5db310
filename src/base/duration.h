/* Spans of time as people write them. */
#ifndef MT_BASE_DURATION_H
#define MT_BASE_DURATION_H

#include <stdbool.h>

#include "base/compiler.h"

/* "90", "90s", "1.5m", "1h30m", "250ms", in seconds; "never", or what is below 0, is -1: for ever. False: it is
   none. */
bool mt_duration_parse(const char *text, double *seconds) MT_NODISCARD;

#endif
