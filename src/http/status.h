#ifndef MT_HTTP_STATUS_H
#define MT_HTTP_STATUS_H

/* "Not Found" for 404; "Status" for what has no name here. */
const char *mt_http_status_name(int status);

#endif
