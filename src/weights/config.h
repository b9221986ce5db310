/* Typed reading of config.json: each getter checks type and range and says what is wrong, by key. */
#ifndef MT_WEIGHTS_CONFIG_H
#define MT_WEIGHTS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct mt_config mt_config; /* a JSON object and the path that leads to it */

/* Parses text (an object). Free with mt_config_free; sub-objects belong to their root. */
mt_config *mt_config_parse(const char *text, size_t len, mt_error *err) MT_NODISCARD;
mt_config *mt_config_read(const char *path, mt_error *err) MT_NODISCARD;
void mt_config_free(mt_config *c);

/* The object under key, or NULL when it is absent or null. A value of another type is treated as absent. */
const mt_config *mt_config_object(const mt_config *c, const char *key);
bool mt_config_has(const mt_config *c, const char *key);   /* present and not null */
bool mt_config_names(const mt_config *c, const char *key); /* present, be it null */
bool mt_config_empty(const mt_config *c);                  /* no keys at all */

/* The string under key, or fallback when absent, null or no string. */
const char *mt_config_string(const mt_config *c, const char *key, const char *fallback);
bool mt_config_bool(const mt_config *c, const char *key, bool fallback);

/* Absent or null gives the fallback; a wrong type or a value outside [min, max] is an error that names key, value and
   range. When required is meant, pass a fallback outside the range: then absence is an error too. */
bool mt_config_int(const mt_config *c, const char *key, int64_t fallback, int64_t min, int64_t max, int64_t *out,
                   mt_error *err) MT_NODISCARD;
bool mt_config_float(const mt_config *c, const char *key, double fallback, double min, double max, double *out,
                     mt_error *err) MT_NODISCARD;

/* Arrays: length 0 when absent; items of the wrong type give NULL or the fallback. */
size_t mt_config_array(const mt_config *c, const char *key);
const char *mt_config_array_string(const mt_config *c, const char *key, size_t i);
int64_t mt_config_array_int(const mt_config *c, const char *key, size_t i, int64_t fallback);
double mt_config_array_float(const mt_config *c, const char *key, size_t i, double fallback);

#endif
