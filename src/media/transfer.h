/* The facts that libcurl has about a finished transfer. */
#ifndef MT_MEDIA_TRANSFER_H
#define MT_MEDIA_TRANSFER_H

#include <stdbool.h>

#include <curl/curl.h>

/* HTTP status of the last response; 0: there was none. */
static inline long mt_transfer_status(CURL *curl)
{
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static inline bool mt_transfer_is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

#endif
