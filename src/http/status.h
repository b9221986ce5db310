/* Names of HTTP status codes. */
#ifndef MT_HTTP_STATUS_H
#define MT_HTTP_STATUS_H

/* "Not Found" for 404; "Status" for a code without a name here. */
const char *mt_http_status_name(int status);

#endif
