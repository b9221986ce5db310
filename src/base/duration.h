/* Times as people write them: "90s", "1h30m". */
#ifndef MT_BASE_DURATION_H
#define MT_BASE_DURATION_H

#include <stdbool.h>

#include "base/compiler.h"

/* Parses "90", "90s", "1.5m", "1h30m" or "250ms" into seconds; "never" or a negative number is -1. False: it is none of
   these. */
bool mt_duration_parse(const char *text, double *seconds) MT_NODISCARD;

#endif
