/* Replaces fetch.c in a build without libcurl: every URL is refused. */
#include "media/fetch.h"

const bool mt_fetch_present = false;

bool mt_fetch(mt_buf *bytes, const char *url, const mt_fetch_rules *rules, mt_error *err)
{
    (void)bytes, (void)rules;
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "\"%.200s\" cannot be fetched, since this motet was built without libcurl: send the bytes as a data "
                   "URL",
                   url);
}
