/* Reads config.json with checked types: each getter checks type and range, and its error names the key. */
#ifndef MT_WEIGHTS_CONFIG_H
#define MT_WEIGHTS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct mt_config mt_config; /* a JSON object and its path in the file */

/* Parse text, or a file, that is a JSON object; NULL with a sentence. Free with mt_config_free; objects within it
   belong to it. */
mt_config *mt_config_parse(const char *text, size_t len, mt_error *err) MT_NODISCARD;
mt_config *mt_config_read(const char *path, mt_error *err) MT_NODISCARD;
void mt_config_free(mt_config *c);

/* The object under key, or NULL where it is absent, null or of another type. */
const mt_config *mt_config_object(const mt_config *c, const char *key);
bool mt_config_has(const mt_config *c, const char *key);   /* present and not null */
bool mt_config_names(const mt_config *c, const char *key); /* present, even if null */
bool mt_config_empty(const mt_config *c);                  /* no keys at all */

/* The string under key, or fallback when absent, null or no string. */
const char *mt_config_string(const mt_config *c, const char *key, const char *fallback);
bool mt_config_bool(const mt_config *c, const char *key, bool fallback);

/* Absent or null gives the fallback; a wrong type, or a value outside [min, max], is an error that names key, value and
   range. Where the key is required, pass a fallback outside the range: then absence is an error, too. */
bool mt_config_int(const mt_config *c, const char *key, int64_t fallback, int64_t min, int64_t max, int64_t *out,
                   mt_error *err) MT_NODISCARD;
bool mt_config_float(const mt_config *c, const char *key, double fallback, double min, double max, double *out,
                     mt_error *err) MT_NODISCARD;

/* Arrays: length 0 when absent; elements of a wrong type give NULL or the fallback. */
size_t mt_config_array(const mt_config *c, const char *key);
const char *mt_config_array_string(const mt_config *c, const char *key, size_t i);
int64_t mt_config_array_int(const mt_config *c, const char *key, size_t i, int64_t fallback);
double mt_config_array_float(const mt_config *c, const char *key, size_t i, double fallback);

#endif
