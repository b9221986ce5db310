/* What /dashboard shows, as a stream of events; docs/dashboard.md describes them. Io thread. See dashboard.c. */
#ifndef MT_SERVER_DASHBOARD_H
#define MT_SERVER_DASHBOARD_H

#include "http/http.h"
#include "server/account.h"
#include "server/pulse.h"

#define MT_DASHBOARD_ERRORS 64 /* that are kept */

struct event;
struct mt_server;
typedef struct mt_viewer mt_viewer;

/* A call that was answered with an error. */
typedef struct mt_fault {
    uint64_t at; /* mt_clock_ns */
    char id[48];
    int status;
    char text[MT_LIMIT_ERROR_TEXT];
    const mt_account *account;
} mt_fault;

typedef struct mt_dashboard {
    mt_viewer *viewers;
    size_t count;
    struct event *tick, *beat; /* while somebody looks; always */
    mt_pulse pulse;
    mt_voices_page page; /* what is read at a time, while somebody looks */
    mt_fault faults[MT_DASHBOARD_ERRORS];
    uint64_t fault_count; /* ever */
} mt_dashboard;

/* The engine runs: from now on there is something to see. False: the event loop has no room. */
bool mt_dashboard_open(struct mt_server *server) MT_NODISCARD;

/* Ends all streams, and begins no more: nobody waits for those who look on. */
void mt_dashboard_end(struct mt_server *server);
void mt_dashboard_close(struct mt_server *server);

void mt_dashboard_fault(struct mt_server *server, const mt_account *account, const char *id, int status,
                        const char *text);

/* GET /dashboard/events */
extern mt_http_handler mt_dashboard_get;

/* ---- what events say: dashboard_write.c ---- */

/* A snapshot without its lists: what does not change, and the names of things. */
void mt_dashboard_write_head(struct mt_server *server, const mt_account *account, mt_buf *out);

/* "live", "ended" and "notes" of a page, as an account may see them. */
void mt_dashboard_write_page(struct mt_server *server, const mt_account *account, const mt_voices_page *page,
                             mt_buf *out);

/* "errors" from number *from on, which moves on. */
void mt_dashboard_write_faults(struct mt_server *server, const mt_account *account, uint64_t *from, mt_buf *out);

#endif
